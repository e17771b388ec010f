"""A corpus becomes a checkpoint: what `python -m transformer_ref train` does."""

import dataclasses
import math
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from transformer_ref.checkpoint import CARD_FILE, CURVES_FILE, MODEL_FILE, PAGE_FILE, Checkpoint, save_checkpoint
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import Batch, BatchStream
from transformer_ref.data.parallel_text import Parallel, ParallelFiles, is_usable
from transformer_ref.data.prepared import Store, prepared, prepared_tokenizer
from transformer_ref.faster import accelerate
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import Tokenizer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.early_stopping import stops_early, validations_since_best
from transformer_ref.training.gradients import DivergedError
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.parts import Parts
from transformer_ref.training.processes import ALONE, Processes
from transformer_ref.training.recipes import RECIPES, Recipe
from transformer_ref.training.resume import TRAINING_FILE, save_training
from transformer_ref.training.trainer import Progress, Training, fit, share_done, validation_loss

MOST_LOGITS = 2**26  # in a batch of the validation: 256 MB
FIRST_SAVE, SECONDS_BETWEEN_SAVES = 5.0, 120.0  # after 5, 10, 20, 40, 80, 160 seconds and then every two minutes


class Watcher(Protocol):
    """A listener that follows a training run."""

    def __call__(self, progress: Progress) -> None:
        """Receive the result of a step."""

    def validated(self, progress: Progress, loss: float) -> None:
        """Receive the loss of a validation, in nats per token."""


class Run(NamedTuple):
    """A training, with the data for its checkpoint and its card."""

    training: Training
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    validation: BatchStream
    notes: dict[str, Any]
    data: dict[str, dict[str, Any]]  # of each split: pairs, how many were left out and why, a fingerprint


def prepare(
    corpus: str,
    train: Parallel | ParallelFiles,
    validation: Parallel | ParallelFiles,
    languages: tuple[str, str],
    config: TrainingConfig,
    device: torch.device,
    recipe: Recipe | None = None,
    processes: Processes = ALONE,
    start: Checkpoint | None = None,
    parts: Parts | None = None,
    store: Store | None = None,
) -> Run:
    """Return a training run at its beginning; equal arguments on one machine give equal training runs.

    corpus: its name, and that of its recipe where none is given; languages: of source and target.
    config: the recipe's, possibly changed; processes: those that train together.
    start: a model to continue from, with its tokenizers and sizes, instead of a new one; dropout is still the recipe's.
    parts: a learner's model, loss, schedule and batches instead of the package's.
    store: where splits that are files are prepared, once for all processes and for later runs; needed for those. Raises
    ValueError for a split without a usable pair, OwnCodeError for parts that cannot be trained.
    """
    recipe = recipe or RECIPES[corpus]
    if start:
        tokenizers = start.source_tokenizer, start.target_tokenizer
        model_config = dataclasses.replace(start.model.config, dropout=recipe.model["dropout"])
    else:
        tokenizers = (_tokenizer(train, recipe, store, processes),) * 2
        model_config = ModelConfig(tokenizers[0].size, tokenizers[1].size, **recipe.model)
    parts = parts or Parts()
    model = parts.model(model_config, config.seed).to(device)
    if start:
        model.load_state_dict(start.model.state_dict())
    model = accelerate(model)
    streams, data = {}, {}
    for split, lines in (("train", train), ("validation", validation)):
        streams[split], data[split] = _stream(split, lines, tokenizers, model_config, config, parts, processes, store)
    average = WeightAverage(model, config.ema_decay) if config.ema_decay else None
    optimizer = build_optimizer(model, config, processes, parts.hidden_matrices)
    smoothing = model_config.pad, config.label_smoothing
    loss, rate = parts.loss(*smoothing), parts.rate(model_config.d_model)
    training = Training(model, optimizer, streams["train"], config, loss, average, processes, rate)
    notes = dict(corpus=corpus, source=languages[0], target=languages[1]) | parts.notes()
    return Run(training, *tokenizers, streams["validation"], notes, data)


def train(run: Run, output: Path, watchers: Sequence[Watcher]) -> None:
    """Train, validate at intervals, and write a checkpoint into `output`.

    watchers: called after every step and validation. If Ctrl-C or an error ends the training early, a checkpoint is
    written too, and the exception is raised again. After a DivergedError nothing is written: the state that was saved
    last is worth more than weights that have diverged. The state for a resumed run is saved soon after the beginning,
    then every two minutes of training. Raises OSError if a file cannot be written; the model, which is smaller, is
    written before the training state.
    """
    training, config = run.training, run.training.config
    last_save, milestone = training.seconds, int(share_done(training) * config.num_validations)

    def after_step(progress: Progress) -> bool:
        nonlocal last_save, milestone
        for watcher in watchers:
            watcher(progress)
        if int(progress.share * config.num_validations) > milestone:
            milestone = int(progress.share * config.num_validations)
            validated = progress.step, _validation_loss(run)
            if config.patience and validations_since_best([*_counted(training), validated]) == 0:
                save_model(run, output)  # first, so that whatever cuts this off, the best one is in the folder
            training.validations.append(validated)
            for watcher in watchers:
                watcher.validated(progress, validated[1])
        if progress.seconds - last_save > min(max(last_save, FIRST_SAVE), SECONDS_BETWEEN_SAVES):
            last_save = progress.seconds
            _save_training(run, output)
        return stops_early(_counted(training), config.patience)

    if config.patience and _counted(training) and not _is_there(output / MODEL_FILE, training):
        training.patience_from = len(training.validations)
    try:
        if not stops_early(_counted(training), config.patience):  # a resumed run may have stopped early
            fit(training, after_step)
    except DivergedError:
        raise
    except BaseException:
        _save_all(run, output)
        raise
    _save_all(run, output)


def _save_all(run: Run, output: Path) -> None:
    """Write the model, unless the best one is in the folder already, and the training state."""
    if not (run.training.config.patience and _counted(run.training)):
        save_model(run, output)
    _save_training(run, output)


def _counted(training: Training) -> list[tuple[int, float]]:
    """Return the validations that early stopping looks at: the model of the best one is in the folder."""
    return training.validations[training.patience_from :]


def _is_there(path: Path, training: Training) -> bool:
    """Return whether the first process sees the file, so that all processes decide alike."""
    return bool(training.processes.of_first(float(path.is_file()), next(training.model.parameters()).device))


def save_model(run: Run, output: Path) -> None:
    """Write the current model, with its averaged weights if there is an average.

    A card in the folder describes another model, so it is removed; the caller writes this model's card afterwards.
    """
    training = run.training
    if training.processes.is_first:
        for name in (CARD_FILE, PAGE_FILE, CURVES_FILE):
            (output / name).unlink(missing_ok=True)
        notes = {**run.notes, "step": training.step}
        save_checkpoint(output, to_be_judged(training), run.source_tokenizer, run.target_tokenizer, notes)


def expect_nothing_to_lose(output: Path, how: str) -> None:
    """Raise ValueError if a folder holds a model or an unfinished training, which a new one would overwrite.

    how: what helps, for the error, such as the options for a different folder, for resuming and for overwriting.
    """
    if there := [name for name in (MODEL_FILE, TRAINING_FILE) if (output / name).exists()]:
        raise ValueError(
            f"output: expected a folder without a model, got {output} with {' and '.join(there)}; use {how}"
        )


def expect_writable(folder: Path) -> None:
    """Check, before hours of training, that the folder, or the one that it will be created in, is writable.

    Raises ValueError for a file, and for a folder without write permission.
    """
    try:
        exists = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        tempfile.TemporaryFile(dir=exists).close()
    except OSError as error:
        raise ValueError(f"output: expected a folder to write into, got {folder} ({error.strerror})") from error


def changed(config: TrainingConfig, **changes: Any) -> TrainingConfig:
    """Return the config with the fields that are not None; a number of steps replaces `minutes`."""
    given = {name: value for name, value in changes.items() if value is not None}
    if "steps" in given:
        given["minutes"] = None
    return dataclasses.replace(config, **given)


def _stream(
    split: str,
    lines: Parallel,
    tokenizers: tuple[Tokenizer, Tokenizer],
    model: ModelConfig,
    config: TrainingConfig,
    parts: Parts,
    processes: Processes,
    store: Store | None,
) -> tuple[BatchStream, dict[str, Any]]:
    """Return the usable pairs, and the number of pairs of each kind."""
    longest = min(model.max_length, config.tokens_per_batch) - 1  # eos follows
    special, own = (model.pad, model.bos, model.eos), (parts.batches, parts.shift)
    if isinstance(lines, ParallelFiles):
        found = processes.first_alone(lambda: prepared(lines, tokenizers, longest, _expect_store(store)))
        _expect_pairs(split, longest, config, len(found.sources), len(found.sources) + found.empty + found.too_long)
        data = dict(pairs=len(found.sources), empty=found.empty, too_long=found.too_long, longest=longest)
        stream = BatchStream(found.sources, found.targets, config.tokens_per_batch, *special, config.seed, *own)
        stream.sha256 = found.sha256
        return stream, data | {"sha256": found.lines_sha256}
    sources, targets, empty = [], [], 0
    for pair in zip(lines.source, lines.target, strict=True):
        source, target = (
            array("i", tokenizer.encode(line))  # a tenth of a list's memory
            for tokenizer, line in zip(tokenizers, pair, strict=True)
        )
        empty += not (source and target)
        if is_usable(len(source), len(target), longest):
            sources.append(source)
            targets.append(target)
    _expect_pairs(split, longest, config, len(sources), len(lines.source))
    data = dict(
        pairs=len(sources),
        empty=empty,
        too_long=len(lines.source) - len(sources) - empty,
        longest=longest,
        sha256=lines.sha256(),
    )
    return BatchStream(sources, targets, config.tokens_per_batch, *special, config.seed, *own), data


def _expect_pairs(split: str, longest: int, config: TrainingConfig, pairs: int, lines: int) -> None:
    if not pairs:
        limit = "tokens_per_batch" if longest == config.tokens_per_batch - 1 else "max_length"
        raise ValueError(
            f"{split}: expected a pair of lines with 1 to {longest} tokens on both sides, got none among {lines:,}; "
            f"the limit is {limit} - 1"
        )


def _expect_store(store: Store | None) -> Store:
    if store is None:
        raise ValueError("store: expected a folder in which files are prepared, got none")
    return store


def _tokenizer(train: Parallel | ParallelFiles, recipe: Recipe, store: Store | None, processes: Processes) -> Tokenizer:
    """Return the tokenizer of both sides, as the recipe learns it from the training pairs."""
    if isinstance(train, ParallelFiles):
        store = _expect_store(store)
        return processes.first_alone(lambda: prepared_tokenizer(train, recipe.learn_tokenizer, store))
    return recipe.learn_tokenizer([*train.source, *train.target])


def _validation_loss(run: Run) -> float:
    """Return the current loss on the validation data, the same for all processes."""
    training = run.training
    of_loss = training.loss.pad, training.loss.cross_entropy
    loss = validation_loss(to_be_judged(training), _pieces(run), *of_loss)
    return training.processes.of_first(loss, next(training.model.parameters()).device)


def _pieces(run: Run) -> Iterator[Batch]:
    """Yield the validation data in batches that need no more memory than a training step, with few logits at once."""
    training, vocabulary = run.training, run.target_tokenizer.size
    of_a_step = training.config.grad_accumulation_steps * training.processes.count
    for batch in run.validation.one_epoch():
        pieces = max(of_a_step, math.ceil(batch.target_labels.numel() * vocabulary / MOST_LOGITS))
        yield from (batch.rows(first, pieces) for first in range(min(pieces, len(batch.source))))


def _save_training(run: Run, output: Path) -> None:
    if run.training.processes.is_first:
        save_training(output, run.training)
    run.training.saved_step = run.training.step


def to_be_judged(training: Training) -> Transformer:
    """Return the model, or a copy with its averaged weights, if there is an average."""
    return training.average.of(training.model) if training.average else training.model
