"""A corpus becomes a checkpoint: what `python -m transformer_ref train` does."""

import dataclasses
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.faster import TrainingLoss, accelerate
from transformer_ref.model.transformer import Transformer
from transformer_ref.special_tokens import BOS, EOS, PAD
from transformer_ref.text.tokenizer import Tokenizer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.checkpoint import save_checkpoint, save_training
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.processes import ALONE, Processes
from transformer_ref.training.recipes import RECIPES, SIZES, Recipe
from transformer_ref.training.trainer import Progress, Training, fit, share_done, validation_loss

SECONDS_BETWEEN_SAVES = 120.0


class Watcher(Protocol):
    """Somebody who is told how a training goes."""

    def __call__(self, progress: Progress) -> None:
        """Hear of a step."""

    def validated(self, progress: Progress, loss: float) -> None:
        """Hear of a validation's loss, in nats a token."""


class Run(NamedTuple):
    """A training with what its checkpoint and its card need."""

    training: Training
    tokenizer: Tokenizer
    validation: BatchStream
    notes: dict[str, str]
    data: dict[str, dict[str, Any]]  # of each split: pairs, how many were left out and why, a fingerprint


def prepare(corpus: str, train: Parallel, validation: Parallel, languages: tuple[str, str],
            config: TrainingConfig, device: torch.device, size: str | None = None,
            processes: Processes = ALONE, dropout: float | None = None, recipe: Recipe | None = None) -> Run:
    """Return a training that stands at its beginning; equal arguments on one machine give equal trainings.

    corpus: its name, and that of its recipe where none is given; languages: of source and target.
    config: the recipe's, perhaps changed.
    size: one of SIZES instead of the recipe's own; processes: those that train together.
    dropout: instead of the recipe's or the size's; the longer the training, the more of it pays.
    Raises ValueError for a split that holds no pair to learn from.
    """
    recipe = recipe or RECIPES[corpus]
    tokenizer = recipe.learn_tokenizer([*train.source, *train.target])
    settings = {**recipe.model, **(SIZES[size] if size else {}), **({} if dropout is None else {"dropout": dropout})}
    model_config = ModelConfig(tokenizer.size, tokenizer.size, **settings)
    model = accelerate(Transformer(model_config, torch.Generator().manual_seed(config.seed)).to(device))
    streams, data = {}, {}
    for split, lines in (("train", train), ("validation", validation)):
        streams[split], data[split] = _stream(split, lines, tokenizer, model_config, config)
    average = WeightAverage(model, config.average_decay) if config.average_decay else None
    optimizer = build_optimizer(model, config, processes)
    loss = TrainingLoss(PAD, config.label_smoothing)
    training = Training(model, optimizer, streams["train"], config, loss, average, processes)
    notes = dict(corpus=corpus, source=languages[0], target=languages[1])
    return Run(training, tokenizer, streams["validation"], notes, data)


def train(run: Run, output: Path, watchers: Sequence[Watcher]) -> None:
    """Fit, validate now and then, and leave a checkpoint in `output`.

    watchers: told of every step and validation. Whatever ends the training early, Ctrl-C or an error, leaves a
    checkpoint too, then is raised again.
    """
    training, config = run.training, run.training.config
    last_save, milestone = training.seconds, int(share_done(training) * config.validations)

    def after_step(progress: Progress) -> bool:
        nonlocal last_save, milestone
        for watcher in watchers:
            watcher(progress)
        if int(progress.share * config.validations) > milestone:
            milestone = int(progress.share * config.validations)
            _validate(run, progress, watchers)
            if config.patience and _validations_since_best(training) == 0:
                save_model(run, output)
        if progress.seconds - last_save > SECONDS_BETWEEN_SAVES:
            last_save = progress.seconds
            _save_training(run, output)
        return config.patience > 0 and _validations_since_best(training) >= config.patience

    try:
        fit(training, after_step)
    finally:
        _save_training(run, output)
        if not (config.patience and training.validations):  # else the best one lies there already
            save_model(run, output)


def save_model(run: Run, output: Path) -> None:
    """Write the model as it stands, with the mean of its weights if one is kept."""
    training = run.training
    if training.processes.is_first:
        notes = {**run.notes, "step": training.step}
        save_checkpoint(output, _to_be_judged(training), run.tokenizer, run.tokenizer, notes)


def changed(config: TrainingConfig, **changes: Any) -> TrainingConfig:
    """Return the config with what is not None changed; a number of steps takes the place of minutes."""
    given = {name: value for name, value in changes.items() if value is not None}
    if "steps" in given:
        given["minutes"] = None
    return dataclasses.replace(config, **given)


def _stream(split: str, lines: Parallel, tokenizer: Tokenizer, model: ModelConfig,
            config: TrainingConfig) -> tuple[BatchStream, dict[str, Any]]:
    """Return the pairs that can be learned from, and how many there were of which kind."""
    longest = min(model.max_length, config.tokens_per_batch) - 1  # eos follows
    sources, targets, empty = [], [], 0
    for pair in zip(lines.source, lines.target, strict=True):
        source, target = (array("i", tokenizer.encode(line)) for line in pair)  # a tenth of a list's memory
        empty += not (source and target)
        if source and target and max(len(source), len(target)) <= longest:
            sources.append(source)
            targets.append(target)
    if not sources:
        raise ValueError(f"{split}: expected a pair of lines with 1 to {longest} tokens on both sides, got none among "
                         f"{len(lines.source):,}")
    data = dict(pairs=len(sources), empty=empty, too_long=len(lines.source) - len(sources) - empty,
                longest=longest, sha256=lines.sha256())
    return BatchStream(sources, targets, config.tokens_per_batch, PAD, BOS, EOS, config.seed), data


def _validate(run: Run, progress: Progress, watchers: Sequence[Watcher]) -> None:
    training = run.training
    loss = validation_loss(_to_be_judged(training), run.validation.one_epoch(), training.loss.pad)
    loss = training.processes.of_first(loss, next(training.model.parameters()).device)
    training.validations.append((progress.step, loss))
    for watcher in watchers:
        watcher.validated(progress, loss)


def _validations_since_best(training: Training) -> int:
    losses = [loss for _, loss in training.validations]
    return len(losses) - 1 - losses.index(min(losses)) if losses else 0


def _save_training(run: Run, output: Path) -> None:
    if run.training.processes.is_first:
        save_training(output, run.training)


def _to_be_judged(training: Training) -> Transformer:
    """Return the model, or a copy with the mean of its weights if one is kept: whatever happens to that one, the
    training is whole."""
    return training.average.of(training.model) if training.average else training.model
