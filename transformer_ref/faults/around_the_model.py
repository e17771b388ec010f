"""Mistakes around a sound model: in its batches, its loss, its steps, and in how it is made to translate."""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.data.batching import Batch, shift_right
from transformer_ref.faults.experiment import Experiment
from transformer_ref.training.loss import MeanLoss


def batches(change: Callable[[Batch, int, int], Batch]) -> Callable[[Experiment], None]:
    """Return the fault that trains on modified batches. change: (batch, bos, pad) -> batch."""

    def put(experiment: Experiment) -> None:
        config = experiment.model.config
        experiment.batch = lambda batch: change(batch, config.bos, config.pad)

    return put


def not_shifted(batch: Batch, bos: int, pad: int) -> Batch:
    return batch._replace(target_input=batch.target_labels)


def shifted_twice(batch: Batch, bos: int, pad: int) -> Batch:
    return batch._replace(target_input=shift_right(batch.target_input, bos))


def without_end(batch: Batch, bos: int, pad: int) -> Batch:
    labels = batch.target_labels
    last = (labels != pad).sum(dim=1, keepdim=True) - 1
    return batch._replace(target_labels=labels.scatter(1, last, pad))


class PadsCounted(MeanLoss):
    """The mean loss over all positions, padding included."""

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the loss, a scalar."""
        return F.cross_entropy(model(batch.source, batch.target_input).flatten(0, 1), batch.target_labels.flatten())


class DoubleSoftmax(MeanLoss):
    """A softmax before a loss that already applies one."""

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the loss, a scalar."""
        shares_of_words = model(batch.source, batch.target_input).softmax(dim=-1)
        return F.cross_entropy(shares_of_words.flatten(0, 1), batch.target_labels.flatten(), ignore_index=self.pad)


def other_loss(kind: type[MeanLoss]) -> Callable[[Experiment], None]:
    def put(experiment: Experiment) -> None:
        experiment.loss = kind(experiment.loss.pad)

    return put


def step_without_zero_grad(experiment: Experiment, batch: Batch, optimizer: torch.optim.Optimizer) -> float:
    experiment.model.train()
    loss = experiment.loss(experiment.model, batch)
    loss.backward()
    nn.utils.clip_grad_norm_(experiment.model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def part(**parts) -> Callable[[Experiment], None]:
    """Return the fault that replaces fields of the experiment."""

    def put(experiment: Experiment) -> None:
        for name, value in parts.items():
            setattr(experiment, name, value)

    return put


@torch.inference_mode()
def by_hand(
    experiment: Experiment,
    source_ids: Tensor,
    max_length: int,
    training: bool = False,
    first: Literal["bos", "eos"] = "bos",
    place: int = -1,
) -> Tensor:
    """Return greedy translations, with the whole prefix read at each step.

    The arguments choose the faults. training: dropout is on; first: the special token that the decoder reads first;
    place: the position whose logits choose the next token.
    """
    model, config = experiment.model, experiment.model.config
    model.train(training)
    target = torch.full((len(source_ids), 1), getattr(config, first))
    done = torch.zeros(len(source_ids), dtype=torch.bool)
    for _ in range(max_length):
        chosen = model(source_ids, target)[:, place].argmax(dim=-1)  # (batch,)
        target = torch.cat([target, chosen.masked_fill(done, config.pad)[:, None]], dim=1)
        done |= chosen == config.eos
    model.eval()
    return target
