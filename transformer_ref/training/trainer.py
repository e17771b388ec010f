"""One training step, and many of them (chapter 10). The trainer knows batches and a loss, no model class."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import nn

from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import Batch, BatchStream, NextBatch
from transformer_ref.device import choose_precision
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.gradients import DivergedError, Gradients
from transformer_ref.training.interrupt import interrupts_held_back
from transformer_ref.training.loss import MeanLoss, masked_cross_entropy
from transformer_ref.training.optimizer import OptimizerGroup
from transformer_ref.training.processes import ALONE, Processes
from transformer_ref.training.schedule import rate_factor

LARGE = 1_000_003  # a prime, so that seeds, steps and processes do not meet
SIMPLE = Gradients()


class StepResult(NamedTuple):
    """A step's loss in nats per token, number of real target tokens, norm of the gradients before clipping."""

    loss: float
    tokens: int
    gradient_norm: float


class Progress(NamedTuple):
    """The progress of the training after a step."""

    step: int
    share: float  # of the whole training, from 0 to 1
    loss: float
    tokens: int  # real target tokens of this step
    seconds: float  # since the beginning, pauses between runs left out


@dataclass
class Training:
    """The state of a training run, all that a resumed one needs."""

    model: nn.Module
    optimizer: OptimizerGroup
    stream: BatchStream
    config: TrainingConfig
    loss: MeanLoss
    average: WeightAverage | None = None
    processes: Processes = ALONE
    rate: Callable[[TrainingConfig, int, float], float] = rate_factor  # config, step, share done -> share of the peak
    schedule_from: tuple[float, float] = (0.0, 0.0)  # share done and progress of the schedule at the last new length
    step: int = 0
    seconds: float = 0.0
    tokens: int = 0  # real target tokens read so far
    losses: list[float] = field(default_factory=list)  # of each step
    validations: list[tuple[int, float]] = field(default_factory=list)  # step, loss
    saved_step: int | None = None  # of the state in the folder; None if this training has not saved one
    patience_from: int = 0  # number of validations that early stopping ignores: their best model was not kept


def train_step(
    model: nn.Module,
    batch: Batch,
    optimizer: OptimizerGroup | torch.optim.Optimizer,
    loss: MeanLoss,
    max_grad_norm: float,
    gradients: Gradients = SIMPLE,
    meanwhile: Callable[[], None] = lambda: None,
) -> StepResult:
    """Update the weights once and return the result of the step. model: as the loss calls it; batch: on its device or
    on the CPU; loss: is minimized. max_grad_norm: all gradients together are clipped to this norm; gradients: computes
    them; meanwhile: called while a GPU computes them. Raises DivergedError if the loss or a gradient is not finite, and
    TrainingError if there is not enough memory; the weights are then unchanged.
    """
    if not model.training:
        model.train()
    optimizer.zero_grad()
    batch = batch.counted(loss.pad)
    shares = gradients.of(model, batch, loss)  # (parts,)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    meanwhile()
    *of_parts, norm = torch.cat([shares, norm[None]]).tolist()  # the only line that waits for a GPU
    mean = sum(of_parts)
    _expect_finite(loss=mean, gradient=norm)
    optimizer.step()
    return StepResult(mean, loss.tokens(batch), norm)


def _expect_finite(**numbers: float) -> None:
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise DivergedError(f"{name}: expected a finite number, got {number}; a smaller learning rate may help")


def fit(training: Training, on_step: Callable[[Progress], bool | None] = lambda progress: None) -> None:
    """Train from the state of `training` until `config.steps` or `config.minutes` are reached.

    on_step: called after each step, for the progress line, a validation, a checkpoint; True ends the training.
        Its time does not count as training time.
    Dropout draws from torch's own generator, which is seeded at each step: the random numbers depend only on the step,
    and a resumed training equals the uninterrupted one. Ctrl-C takes effect after the step, one later where it comes
    to one of several processes during `on_step`; then, and after a TrainingError, `training` can be saved and resumed.
    """
    device = next(training.model.parameters()).device
    _settle_precision(training, device)
    bf16_copy = BF16Copy(training.model) if training.config.precision == "bf16" else None
    gradients = Gradients(bf16_copy, training.config.grad_accumulation_steps, training.processes)
    batches = NextBatch(training.stream)
    with interrupts_held_back() as was_interrupted:
        while share_done(training) < 1:
            progress, is_interrupted = _advance(training, batches, device, gradients, was_interrupted)
            ended = on_step(progress)
            if is_interrupted or (training.processes.count == 1 and was_interrupted()):
                raise KeyboardInterrupt
            if ended:
                return


def _settle_precision(training: Training, device: torch.device) -> None:
    """Replace a precision "auto" by this machine's choice, the same for all processes and for a resumed run."""
    is_fast = choose_precision(training.config.precision, device) == torch.bfloat16
    is_fast = bool(training.processes.of_first(float(is_fast), device))
    muon = training.optimizer.settle_muon(training.config.muon_precision, device)
    training.config = dataclasses.replace(training.config, precision="bf16" if is_fast else "fp32", muon_precision=muon)


def _advance(
    training: Training,
    batches: NextBatch,
    device: torch.device,
    gradients: Gradients,
    was_interrupted: Callable[[], bool],
) -> tuple[Progress, bool]:
    """Take one step; return the progress, and whether a process was interrupted: a signal to one ends all."""
    config, stream, processes = training.config, training.stream, training.processes
    start, before = time.perf_counter(), (stream.epoch, stream.position)
    try:
        torch.manual_seed(((config.seed * LARGE + training.step) * LARGE + processes.rank) % 2**63)
        training.optimizer.scale_rates(training.rate(config, training.step + 1, schedule_progress(training)))
        step = training.model, batches.take(), training.optimizer, training.loss, config.max_grad_norm, gradients
        result = train_step(*step) if device.type == "cpu" else train_step(*step, meanwhile=batches.build)
    except BaseException:  # such as an error in a learner's code: the batch has not been learned from
        stream.epoch, stream.position = before
        raise
    if training.average:
        training.average.update(training.model)
    training.step += 1
    training.tokens += result.tokens
    training.losses.append(result.loss)
    seconds = time.perf_counter() - start if processes.is_first else 0.0
    seconds, interrupts = processes.sums([seconds, float(was_interrupted())], device)
    training.seconds += seconds
    return Progress(training.step, share_done(training), result.loss, result.tokens, training.seconds), interrupts > 0


@torch.inference_mode()
def validation_loss(
    model: nn.Module, batches: Iterable[Batch], pad: int, measure: Callable[..., torch.Tensor] = masked_cross_entropy
) -> float:
    """Return the mean cross-entropy on validation batches, in nats per real token, without smoothing.

    measure: (logits, labels, pad, `real_indices(labels, pad)`) -> the mean of a batch.
    """
    model.eval()
    device = next(model.parameters()).device
    means, tokens = [], []
    for batch in batches:
        batch = batch.counted(pad).to(device)
        tokens.append(len(batch.real))
        logits = model(batch.source, batch.target_input)  # (batch, target, vocabulary)
        means.append(measure(logits, batch.target_labels, pad, batch.real))
    if not means:
        return 0.0
    means = torch.stack(means).tolist()  # now, once: reading each mean would wait for a GPU
    return sum(mean * real for mean, real in zip(means, tokens, strict=True)) / max(sum(tokens), 1)


def schedule_progress(training: Training) -> float:
    """Return the progress in the schedule, from 0 to 1.

    It equals the completed share of the training, unless a resumed training has another length: then the rest of the
    schedule is stretched over the rest of the training, so that the rate is continuous.
    """
    share, progress = training.schedule_from
    if share >= 1:
        return progress
    return progress + (1 - progress) * (share_done(training) - share) / (1 - share)


def share_done(training: Training) -> float:
    """Return the completed share of the training, from 0 to 1."""
    config = training.config
    if config.minutes is not None:
        return min(training.seconds / (60 * config.minutes), 1.0)
    return min(training.step / config.steps, 1.0)
