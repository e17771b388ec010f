"""From a batch to its gradients (chapter 10): whole or in parts, in fp32 or bf16, alone or with other processes."""

from torch import nn

from transformer_ref.data.batching import Batch
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.precision import BF16Copy
from transformer_ref.training.processes import ALONE, Processes

NO_MEMORY = ("out of memory", "can't allocate memory")  # as torch says it of a GPU and of a CPU


class TrainingError(RuntimeError):
    """The training cannot go on."""


class Gradients:
    """Runs a model forward and backward. However it is done, the gradients are the same, rounding apart.

    bf16_copy: the model's copy in bf16, which then computes in its place; the gradients end up in the model's weights.
    parts: pieces that the batch is read in; processes: those that share it.
    """

    def __init__(self, bf16_copy: BF16Copy | None = None, parts: int = 1, processes: Processes = ALONE) -> None:
        self.bf16_copy, self.parts, self.processes = bf16_copy, parts, processes

    def of(self, model: nn.Module, batch: Batch, loss: MeanLoss) -> float:
        """Add the gradients of the batch's mean loss to the weights and return that loss, in nats a real token.

        Raises TrainingError when the memory does not suffice.
        """
        computing = self.bf16_copy.refreshed() if self.bf16_copy else model
        tokens = loss.tokens(batch)
        mean = sum(_of_part(computing, part, loss, tokens) for part in self.processes.rows(batch, self.parts))
        self.processes.sum_gradients(computing.parameters())
        if self.bf16_copy:
            self.bf16_copy.hand_over_gradients()
        return self.processes.sum(float(mean), batch.source.device)


def _of_part(model: nn.Module, part: Batch, loss: MeanLoss, tokens: int) -> float:
    """Add a part's share of the gradients and return its share of the loss: a mean over all `tokens` of the batch."""
    try:
        share = loss(model, part) * (loss.tokens(part) / max(tokens, 1))
        share.backward()
        return share.item()
    except RuntimeError as error:
        if not any(words in str(error) for words in NO_MEMORY):
            raise
        raise TrainingError(
            f"memory: expected room for {len(part.source)} sentences of {part.source.shape[1]} and "
            f"{part.target_labels.shape[1]} tokens at once, got too little; more accumulation needs "
            "less, with the same result"
        ) from error
