"""The model, loss, schedule, shift and batches of a training run: the package's own, which a learner's file may replace
(chapter 12)."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import shift_right, token_batches
from transformer_ref.faster import TrainingLoss
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.schedule import rate_factor


class Parts:
    """The package's parts. `learner.own_training.OwnParts` replaces them by a learner's, if their file has them.

    hidden_matrices: yields the matrices between hidden vectors, which Muon may update; None for those that the model
    names itself. batches: makes batches of lengths, as `token_batches` does; shift: makes the decoder's input of
    labels.
    """

    hidden_matrices: Callable[[nn.Module], Iterator[Tensor]] | None = None
    batches: Callable[..., list[list[int]]] = staticmethod(token_batches)
    shift: Callable[[Tensor, int], Tensor] = staticmethod(shift_right)

    def model(self, config: ModelConfig, seed: int) -> nn.Module:
        """Return a new model; its initial weights are drawn from the seed."""
        return Transformer(config, torch.Generator().manual_seed(seed))

    def loss(self, pad: int, smoothing: float) -> MeanLoss:
        """Return the function that computes the mean loss of a batch."""
        return TrainingLoss(pad, smoothing)

    def rate(self, d_model: int) -> Callable[[TrainingConfig, int, float], float]:
        """Return the function that gives each step its share of the peak learning rates."""
        return rate_factor

    def notes(self) -> dict[str, Any]:
        """Return the notes of a checkpoint about the parts."""
        return {}
