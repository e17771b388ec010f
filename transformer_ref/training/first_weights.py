"""Initial weights for a model that is not the package's, such as a learner's (chapters 10 and 12)."""

from torch import Tensor, nn

from transformer_ref.config import ModelConfig


def draw_weights(model: nn.Module, config: ModelConfig) -> None:
    """Initialize the weights of any model as the package does, so that none starts too large.

    Tables of a vocabulary have variance 1 / d_model, other matrices that of Glorot and Bengio; vectors are not changed.
    """
    for weight in model.parameters():
        if weight.dim() == 2 and not is_table(weight, config):
            nn.init.xavier_uniform_(weight)
        elif weight.dim() >= 2:
            nn.init.normal_(weight, std=config.d_model**-0.5)


def is_table(weight: Tensor, config: ModelConfig) -> bool:
    """Return whether a weight has a row or a column for each word of a vocabulary."""
    return bool({config.source_vocabulary, config.target_vocabulary} & set(weight.shape))
