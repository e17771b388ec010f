"""A training run in replaceable parts: a sound model, the loss, the batches, one step, how it translates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_ref.data.batching import Batch
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.trainer import train_step


def sound_step(experiment: "Experiment", batch: Batch, optimizer: torch.optim.Optimizer) -> float:
    """Take one training step and return the loss."""
    return train_step(experiment.model, batch, optimizer, experiment.loss, max_grad_norm=1.0).loss


def sound_translations(experiment: "Experiment", source_ids: Tensor, max_length: int) -> Tensor:
    """Return the greedy translation of each source, (batch, at most max_length + 1)."""
    experiment.model.eval()
    return greedy_decode(experiment.model, source_ids, max_length, use_cache=False)


def every_weight(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that the optimizer updates."""
    return list(model.parameters())


@dataclass
class Experiment:
    """All parts of one training run, each replaceable."""

    model: Transformer
    loss: MeanLoss
    batch: Callable[[Batch], Batch] = lambda batch: batch  # what becomes of a batch before it is used
    step: Callable[["Experiment", Batch, torch.optim.Optimizer], float] = sound_step
    weights: Callable[[nn.Module], list[nn.Parameter]] = every_weight
    translate: Callable[["Experiment", Tensor, int], Tensor] = sound_translations
    rate: float = 1.0  # by which the learning rate is multiplied


class Fault(NamedTuple):
    """One mistake."""

    name: str  # as people call it
    code: str  # the line that is wrong
    sound: str  # the line as it should be
    test: str  # the name of the test that finds it, in book/recorded/laboratory_tests.py
    put: Callable[[Experiment], None]
