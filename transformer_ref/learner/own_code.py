"""Builds the model in a learner's file for a checkpoint and a translator."""

from dataclasses import dataclass

from torch import nn

from transformer_ref.config import ModelConfig
from transformer_ref.learner.own_file import LearnersFile
from transformer_ref.learner.own_marian import OwnMarian
from transformer_ref.learner.own_model import OwnTransformer


@dataclass(frozen=True)
class OwnCode(LearnersFile):
    """A learner's file that defines a model."""

    def transformer(self, config: ModelConfig) -> OwnTransformer:
        """Return the learner's model of these sizes. Raises OwnCodeError."""
        return OwnTransformer(self, config)

    def on_marian(self, model: nn.Module) -> OwnMarian:
        """Return the learner's model with a pretrained Marian model's weights. Raises OwnCodeError."""
        return OwnMarian(self, model)
