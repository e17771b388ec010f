"""A training run with a learner's own model, loss, schedule and batches, where their file has them (chapter 12)."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import Batch, shift_right, token_batches
from transformer_ref.learner.own_file import MODEL, LearnersFile, OwnCodeError
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.training.first_weights import draw_weights, is_table
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.parts import Parts
from transformer_ref.training.schedule import rate_factor

AVERAGE_DECAY = 0.99
MOVED = 1e-3  # a logit that moves by more has seen what it should not


class OwnParts(Parts):
    """A learner's model, and their loss, schedule, batches and shift if their file has them."""

    def __init__(self, code: LearnersFile) -> None:
        self.code = code
        self.hidden_matrices, self.batches, self.shift = own_hidden_matrices, own_packer(code), own_shift(code)

    def model(self, config: ModelConfig, seed: int) -> OwnTransformer:
        """Return the learner's model with weights initialized as the package's are."""
        return new_own_model(self.code, config, seed)

    def loss(self, pad: int, smoothing: float) -> MeanLoss:
        """Return the learner's loss."""
        return OwnLoss(self.code, pad, smoothing)

    def rate(self, d_model: int) -> Callable[[TrainingConfig, int, float], float]:
        """Return the learner's schedule."""
        return own_rate(self.code, d_model)

    def notes(self) -> dict[str, Any]:
        """Return the author of each part, and the digest of the code."""
        return {"parts": self.code.whose(), "code_sha256": self.code.sha256}


def own_settings(config: TrainingConfig, code: LearnersFile) -> TrainingConfig:
    """Return a recipe's settings adapted to the learner's code: fp32, since a table that is not a buffer is not
    converted to bf16; and an average of the weights instead of the last small steps, since their `noam_lr` never falls
    to 0.
    """
    precision = "fp32" if config.precision == "auto" else config.precision
    if code.part("noam_lr") is None:
        return replace(config, precision=precision)
    mean = config.ema_decay or AVERAGE_DECAY
    return replace(config, precision=precision, schedule="inverse_sqrt", ema_decay=mean)


def new_own_model(code: LearnersFile, config: ModelConfig, seed: int) -> OwnTransformer:
    """Return the learner's model with weights initialized as the package's are (see `draw_weights`)."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # of the CPU: a GPU's own goes on undisturbed
        model = OwnTransformer(code, config)
        draw_weights(model, config)
    return model


def own_hidden_matrices(model: OwnTransformer) -> Iterator[Tensor]:
    """Yield the matrices between hidden vectors, which Muon may update: all but the tables of a vocabulary."""
    for weight in model.parameters():
        if weight.dim() == 2 and min(weight.shape) > 1 and not is_table(weight, model.config):
            yield weight


class OwnLoss(MeanLoss):
    """The mean loss, from the learner's `masked_ce` or, with label smoothing, from their `smooth_targets`."""

    def __init__(self, code: LearnersFile, pad: int, smoothing: float) -> None:
        super().__init__(pad, smoothing)
        self.code = code

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss, a scalar. Raises OwnCodeError if the learner's function returns no scalar."""
        targets_of = self.code.part("smooth_targets")
        if (targets_of if self.smoothing else self.code.part("masked_ce")) is None:
            return super().__call__(model, batch)
        logits, labels = model(batch.source, batch.target_input), batch.target_labels  # (batch, target, vocabulary)
        if not self.smoothing:
            return self.cross_entropy(logits, labels)
        vocabulary, sizes = logits.shape[-1], f"labels {tuple(labels.shape)}"
        with self.code.called(f"smooth_targets({sizes}, {vocabulary}, {self.smoothing}, {self.pad})"):
            with torch.device(labels.device):
                targets = targets_of(labels, vocabulary, self.smoothing, self.pad)  # (batch, target, vocabulary)
        _expect(self.code, "smooth_targets", targets, tuple(logits.shape))
        real = (labels != self.pad).sum().clamp(min=1)
        return -(targets * logits.log_softmax(dim=-1)).sum() / real

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, pad: int | None = None, real: Tensor | None = None
    ) -> Tensor:
        """Return the mean loss, by the learner's `masked_ce` or the package's. pad: not used, since it is known."""
        own = self.code.part("masked_ce")
        if own is None:
            return super().cross_entropy(logits, labels, self.pad, real)
        sizes = f"logits {tuple(logits.shape)}, labels {tuple(labels.shape)}"
        with self.code.called(f"masked_ce({sizes}, {self.pad})"), torch.device(labels.device):
            loss = own(logits, labels, self.pad)
        _expect(self.code, "masked_ce", loss, ())
        return loss


def _expect(code: LearnersFile, name: str, got: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(got, Tensor) or tuple(got.shape) != shape:
        said = tuple(got.shape) if isinstance(got, Tensor) else repr(got)[:60]
        raise OwnCodeError(f"{code.name}: {name}: expected a tensor of shape {shape}, got {said}")


def own_rate(code: LearnersFile, d_model: int) -> Callable[[TrainingConfig, int, float], float]:
    """Return the function that gives each step its share of the peak rates: the learner's `noam_lr` divided by its peak
    if the schedule is "inverse_sqrt", else the package's."""
    own = code.part("noam_lr")

    def factor(config: TrainingConfig, step: int, progress: float) -> float:
        if own is None or config.schedule != "inverse_sqrt":
            return rate_factor(config, step, progress)
        warmup_steps = max(config.warmup_steps, 1)
        with code.called(f"noam_lr({step}, {d_model}, {warmup_steps})"):
            return float(own(step, d_model, warmup_steps)) / float(own(warmup_steps, d_model, warmup_steps))

    return factor


def own_packer(code: LearnersFile) -> Callable[..., list[list[int]]]:
    """Return the function that batches lengths: the package's, or the learner's, shuffled as the package's are."""
    own = code.part("token_batches")
    if own is None:
        return token_batches

    def batches(lengths: Sequence[int], max_tokens: int, generator: torch.Generator | None = None) -> list[list[int]]:
        order = list(range(len(lengths)))
        if generator is not None:
            order = torch.randperm(len(lengths), generator=generator).tolist()
        state = random.getstate()
        with code.called(f"token_batches({len(lengths)} lengths, {max_tokens})"), torch.random.fork_rng(devices=[]):
            random.seed(len(lengths))  # whatever it draws: a resumed training gets the batches of an uninterrupted one
            torch.default_generator.manual_seed(len(lengths))  # of the CPU: a GPU's own goes on undisturbed
            made = [[int(i) for i in batch] for batch in own([int(lengths[i]) for i in order], max_tokens)]
        random.setstate(state)
        _expect_each_once(code, made, len(order))
        made = [[order[i] for i in batch] for batch in made]
        if generator is None:
            return made
        return [made[place] for place in torch.randperm(len(made), generator=generator).tolist()]

    return batches


def _expect_each_once(code: LearnersFile, batches: list[list[int]], count: int) -> None:
    found = sorted(item for batch in batches for item in batch)
    if found != list(range(count)) or not all(batches):
        raise OwnCodeError(
            f"{code.name}: token_batches: expected each of {count:,} indices once and no empty batch, got "
            f"{len(found):,} indices, {len(set(found)):,} of them different, in {len(batches):,} batches"
        )


def own_shift(code: LearnersFile) -> Callable[[Tensor, int], Tensor]:
    """Return the function that makes the decoder's input from labels: the learner's `shift_right`, or the package's."""
    own = code.part("shift_right")
    if own is None:
        return shift_right

    def shift(labels: Tensor, bos: int) -> Tensor:
        with code.called(f"shift_right(labels {tuple(labels.shape)}, {bos})"):
            shifted = own(labels, bos)
        _expect(code, "shift_right", shifted, tuple(labels.shape))
        return shifted

    return shift


def rehearse(model: OwnTransformer, batch: Batch, loss: MeanLoss) -> list[str]:
    """Run one batch forward and backward, so that a model that cannot be trained is reported now, not later.

    Returns sentences about what will train but not translate. Raises OwnCodeError. No weight changes.
    """
    code = model.code
    model.train()
    mean = loss(model, batch)
    if not mean.requires_grad:
        raise OwnCodeError(
            f"{code.name}: the loss: expected one that gradients flow from, got a constant; look for detach, item, "
            f"numpy or no_grad in {MODEL}.forward, masked_ce and smooth_targets"
        )
    with code.called("the backward pass"):
        mean.backward()
    without = [name for name, weight in model.own.named_parameters() if weight.grad is None]
    model.zero_grad(set_to_none=True)
    return [*_doubts(model, batch), *([f"no gradient reaches {', '.join(without[:4])}"] if without else [])]


@torch.no_grad()
def _doubts(model: OwnTransformer, batch: Batch) -> list[str]:
    """Return sentences about errors that spoil translations at a low loss, or make them depend on their batch."""
    model.eval()
    source, target = batch.source[:4], batch.target_input[:4]
    room = model.config.max_length - source.shape[1]
    if room < 1 and source.shape[1] > 1:  # the pads below need a position
        source, room = source[:, :-1], 1
    said, doubts = model(source, target), []
    half = target.shape[1] // 2
    if half:
        other = target.clone()
        other[:, half:] = model.config.bos
        if (model(source, other) - said)[:, :half].abs().max() > MOVED:
            doubts.append("the decoder sees later words of the answer: the loss will fall and no translation be right")
    padded = torch.cat([source, torch.full_like(source[:, : min(room, 2)], model.config.pad)], dim=1)
    real = target != model.config.pad
    if (model(padded, target) - said)[real].abs().max() > MOVED:
        doubts.append("padding changes its output: a sentence gets a different translation by itself than in a batch")
    model.train()
    return doubts
