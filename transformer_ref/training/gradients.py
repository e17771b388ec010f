"""From a batch to its gradients (chapter 10): whole or in parts, in fp32 or bf16, in one process or several.

`trainer.train_step` clips the gradients.
"""

import torch
from torch import Tensor, nn

from transformer_ref.data.batching import Batch
from transformer_ref.shapes import expect_padding_last
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.processes import ALONE, Processes

NO_MEMORY = ("out of memory", "can't allocate memory")  # as torch says it of a GPU and of a CPU


class TrainingError(RuntimeError):
    """The training cannot go on."""


class DivergedError(TrainingError):
    """The loss or a gradient is not finite."""


class Gradients:
    """Runs a model forward and backward; up to rounding, the gradients do not depend on the settings. bf16_copy: the
    model's copy in bf16, which computes instead of it; the gradients are then added to the model's.

    parts: number of pieces of a batch; processes: those that share it.
    """

    def __init__(self, bf16_copy: BF16Copy | None = None, parts: int = 1, processes: Processes = ALONE) -> None:
        self.bf16_copy, self.parts, self.processes = bf16_copy, parts, processes

    def of(self, model: nn.Module, batch: Batch, loss: MeanLoss) -> Tensor:
        """Add the gradients of the batch's mean loss to the weights; return (parts,), which sum to it (nats).

        batch: on the model's device or on the CPU, where its tokens are counted without waiting for a GPU; its parts
        are copied to the device one by one.
        Raises TrainingError when there is not enough memory.
        """
        computing = self.bf16_copy.refreshed() if self.bf16_copy else model
        device = next(computing.parameters()).device
        if batch.source.device != device:
            expect_padding_last("source", batch.source, loss.pad)
        tokens, parts = loss.tokens(batch), self.processes.rows(batch, self.parts)
        shares = [_of_part(computing, part.counted(loss.pad), loss, tokens, device) for part in parts]
        self.processes.sum_gradients(computing.parameters())
        if self.bf16_copy:
            self.bf16_copy.hand_over_gradients()
        return self.processes.sum_of_parts(torch.stack(shares) if shares else torch.zeros(1, device=device))


def _of_part(model: nn.Module, part: Batch, loss: MeanLoss, tokens: int, device: torch.device) -> Tensor:
    """Add the gradients of one part and return its share of the loss, a mean over all `tokens` of the batch."""
    try:
        share = loss(model, part.to(device)) * (loss.tokens(part) / max(tokens, 1))
        share.backward()
        return share.detach()
    except RuntimeError as error:
        if not any(words in str(error) for words in NO_MEMORY):
            raise
        raise TrainingError(
            f"memory: expected room for {len(part.source)} sentences of {part.source.shape[1]} and "
            f"{part.target_labels.shape[1]} tokens at once, got too little; more accumulation needs "
            "less, with the same result"
        ) from error
