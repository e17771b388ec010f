"""One training step, and many of them (chapter 10). The trainer knows batches and logits, no model class."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import Batch, BatchStream
from transformer_ref.device import choose_precision
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.loss import label_smoothed_cross_entropy, masked_cross_entropy
from transformer_ref.training.optimizer import OptimizerGroup
from transformer_ref.training.precision import BF16Copy
from transformer_ref.training.schedule import cosine_factor


class StepResult(NamedTuple):
    """What one step tells: loss in nats a token, real target tokens, norm of the gradients before clipping."""

    loss: float
    tokens: int
    gradient_norm: float


class Progress(NamedTuple):
    """Where the training stands after a step."""

    step: int
    share: float  # of the whole training, from 0 to 1
    loss: float
    tokens: int  # real target tokens of this step
    seconds: float  # since the beginning, pauses between runs left out


@dataclass
class Training:
    """All that a training consists of and a resumed one needs."""

    model: nn.Module
    optimizer: OptimizerGroup
    stream: BatchStream
    config: TrainingConfig
    pad: int
    average: WeightAverage | None = None
    step: int = 0
    seconds: float = 0.0


class TrainingError(RuntimeError):
    """The training cannot go on."""


def train_step(model: nn.Module, batch: Batch, optimizer: OptimizerGroup | torch.optim.Optimizer, pad: int,
               clip: float, smoothing: float = 0.0, bf16_copy: BF16Copy | None = None) -> StepResult:
    """Move the weights once and return what the step tells.

    model: called as model(source, target_input) -> logits (batch, target, vocabulary); batch: on its device.
    clip: the greatest norm of all gradients together; smoothing: see `label_smoothed_cross_entropy`.
    bf16_copy: the model's copy in bf16, which then computes in its place; the weights that move are the model's.
    Raises TrainingError when the loss is not a number; the weights are then as before.
    """
    model.train()
    optimizer.zero_grad()
    computing = bf16_copy.refreshed() if bf16_copy else model
    logits = computing(batch.source, batch.target_input)  # (batch, target, vocabulary)
    loss = label_smoothed_cross_entropy(logits, batch.target_labels, pad, smoothing)
    if not math.isfinite(loss.item()):
        raise TrainingError(
            f"loss: expected a finite number, got {loss.item()}; a smaller learning rate may help")
    loss.backward()
    if bf16_copy:
        bf16_copy.hand_over_gradients()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return StepResult(loss.item(), int((batch.target_labels != pad).sum()), float(norm))


def fit(training: Training, on_step: Callable[[Progress], None] = lambda progress: None) -> None:
    """Train until `config.steps` or `config.minutes` are over, from wherever `training` stands.

    on_step: called after each step, for the progress line, a validation, a checkpoint. What it takes does not
    count as training time. A KeyboardInterrupt leaves `training` whole, ready to be saved and resumed.
    """
    device = next(training.model.parameters()).device
    precision = choose_precision(training.config.precision, device)
    bf16_copy = BF16Copy(training.model) if precision == torch.bfloat16 else None
    batches = iter(training.stream)
    while (share := _share(training)) < 1:
        start = time.perf_counter()
        config, stream = training.config, training.stream
        before = stream.epoch, stream.position
        try:
            training.optimizer.scale_rates(cosine_factor(training.step + 1, config.warm_up, share))
            batch = next(batches).to(device)
            result = train_step(training.model, batch, training.optimizer, training.pad, config.clip,
                                config.label_smoothing, bf16_copy)
        except (KeyboardInterrupt, TrainingError):
            stream.epoch, stream.position = before
            raise
        if training.average:
            training.average.update(training.model)
        training.step += 1
        training.seconds += time.perf_counter() - start
        on_step(Progress(training.step, _share(training), result.loss, result.tokens, training.seconds))


@torch.inference_mode()
def validation_loss(model: nn.Module, batches: Iterable[Batch], pad: int) -> float:
    """Return the mean cross-entropy, in nats a real token and without smoothing, over batches never trained on."""
    model.eval()
    device = next(model.parameters()).device
    total, tokens = 0.0, 0
    for batch in batches:
        batch = batch.to(device)
        real = int((batch.target_labels != pad).sum())
        logits = model(batch.source, batch.target_input)  # (batch, target, vocabulary)
        total += masked_cross_entropy(logits, batch.target_labels, pad).item() * real
        tokens += real
    return total / max(tokens, 1)


def _share(training: Training) -> float:
    """Return which share of the training is done."""
    config = training.config
    if config.minutes is not None:
        return min(training.seconds / (60 * config.minutes), 1.0)
    return min(training.step / config.steps, 1.0)
