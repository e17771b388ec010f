"""A corpus becomes a checkpoint: what `python -m transformer_ref train` does."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import torch

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.model.transformer import Transformer
from transformer_ref.special_tokens import BOS, EOS, PAD
from transformer_ref.text.tokenizer import Tokenizer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.checkpoint import save_checkpoint, save_training
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.progress import ProgressLine
from transformer_ref.training.recipes import RECIPES, Recipe
from transformer_ref.training.trainer import Progress, Training, fit, validation_loss

VALIDATIONS = 5  # in the course of a training
SECONDS_BETWEEN_SAVES = 120.0


class Run(NamedTuple):
    """A training with what its checkpoint needs."""

    training: Training
    tokenizer: Tokenizer
    validation: BatchStream
    notes: dict[str, str]


def prepare(corpus: str, train: Parallel, validation: Parallel, languages: tuple[str, str],
            config: TrainingConfig, device: torch.device) -> Run:
    """Return a training that stands at its beginning; equal arguments on one machine give equal trainings.

    corpus: the recipe's name; languages: of source and target; config: the recipe's, perhaps changed.
    """
    recipe = RECIPES[corpus]
    tokenizer = recipe.learn_tokenizer([*train.source, *train.target])
    torch.manual_seed(config.seed)  # dropout draws from torch's own generator
    model = Transformer(ModelConfig(tokenizer.size, tokenizer.size, **recipe.model),
                        torch.Generator().manual_seed(config.seed)).to(device)
    training = Training(model, build_optimizer(model, config), _stream(train, tokenizer, recipe, config),
                        config, PAD,
                        WeightAverage(model, config.average_decay) if config.average_decay else None)
    notes = dict(corpus=corpus, source=languages[0], target=languages[1])
    return Run(training, tokenizer, _stream(validation, tokenizer, recipe, config), notes)


def train(run: Run, output: Path, line: ProgressLine) -> None:
    """Fit, validate now and then, and leave a checkpoint in `output`; Ctrl-C leaves one too, then raises again."""
    training = run.training
    last_save, validations = training.seconds, 0

    def after_step(progress: Progress) -> None:
        nonlocal last_save, validations
        line(progress)
        if progress.share * VALIDATIONS >= validations + 1:
            validations = int(progress.share * VALIDATIONS)
            line.interrupt(f"validation loss {_validated(run):.3f} after {progress.step:,} steps")
        if progress.seconds - last_save > SECONDS_BETWEEN_SAVES:
            last_save = progress.seconds
            save_training(output, training)

    try:
        fit(training, after_step)
    finally:
        save(run, output)


def save(run: Run, output: Path) -> None:
    """Write the training as it stands, and the model: with the mean of its weights if one is kept."""
    training = run.training
    save_training(output, training)
    _swap_average(training)
    save_checkpoint(output, training.model, run.tokenizer, run.tokenizer,
                    {**run.notes, "step": training.step})
    _swap_average(training)


def changed(config: TrainingConfig, steps: int | None, minutes: float | None,
            seed: int | None) -> TrainingConfig:
    """Return the config with what is not None changed."""
    if steps is not None:
        config = dataclasses.replace(config, steps=steps, minutes=None)
    if minutes is not None:
        config = dataclasses.replace(config, minutes=minutes)
    return config if seed is None else dataclasses.replace(config, seed=seed)


def _stream(lines: Parallel, tokenizer: Tokenizer, recipe: Recipe, config: TrainingConfig) -> BatchStream:
    longest = min(recipe.model["max_length"], config.tokens_per_batch) - 1  # eos follows
    pairs = [(tokenizer.encode(source), tokenizer.encode(target))
             for source, target in zip(lines.source, lines.target, strict=True)]
    fitting = [pair for pair in pairs if max(map(len, pair)) <= longest]
    sources, targets = zip(*fitting, strict=True)
    return BatchStream(sources, targets, config.tokens_per_batch, PAD, BOS, EOS, config.seed)


def _validated(run: Run) -> float:
    _swap_average(run.training)
    loss = validation_loss(run.training.model, run.validation.one_epoch(), run.training.pad)
    _swap_average(run.training)
    return loss


def _swap_average(training: Training) -> None:
    if training.average:
        training.average.swap(training.model)
