"""Trains a translator from two lists of sentences (chapter 12). The command `train` is this for the corpora it
knows."""

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transformer_ref.config import ModelConfig, TrainingConfig, fields_from
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.device import choose_device
from transformer_ref.faster import freed_memory_kept
from transformer_ref.text.lines import is_blank, list_of_lines
from transformer_ref.training.recipes import SMALL, SMALL_TRAINING, Recipe, Subwords, varied
from transformer_ref.training.run import Watcher, changed, expect_nothing_to_lose, expect_writable, prepare, train
from transformer_ref.translate import Translator, open_model

CORPUS = "lists"  # what a checkpoint says it was trained on
VOCABULARY = 8_000
HELD_BACK, MOST_HELD_BACK = 0.02, 2_000  # share and number of the pairs that a training run is validated on


def learn(
    sources: Iterable[str],
    targets: Iterable[str],
    folder: str | Path,
    vocabulary: int | None = None,
    model: Mapping[str, Any] | None = None,
    languages: tuple[str, str] = ("source", "target"),
    device: str | torch.device = "auto",
    watchers: Sequence[Watcher] = (),
    start: str | Path | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> Translator:
    """Train on sentences and their translations, write a checkpoint into the folder, and return the translator.

    vocabulary: the maximum number of ids, shared by both languages, by default 8,000; model: fields of `ModelConfig`
    that differ from the small recipe's, such as dict(d_model=64); settings: fields of `TrainingConfig`, such as
    steps=500 or minutes=2. start: a folder with a model to continue from, with its tokenizers and its config except
    dropout. overwrite: whether a model in the folder may be replaced.
    Two percent of the pairs with text on both sides, drawn with the training's seed, are used for validation. Raises
    TypeError or ValueError naming what does not fit, and OSError for what cannot be read or written.
    """
    sources, targets = list_of_lines("sources", sources), list_of_lines("targets", targets)
    if len(sources) != len(targets) or len(sources) < 2:
        raise ValueError(f"targets: expected one for each of {len(sources)} sources (at least two), got {len(targets)}")
    if isinstance(languages, str) or len(languages) != 2:
        raise ValueError(f"languages: expected two names, of the source and of the target, got {languages!r}")
    expect_writable(Path(folder))
    if not overwrite:
        expect_nothing_to_lose(Path(folder), "a different folder, or overwrite=True")
    if start is not None and (vocabulary is not None or set(model or {}) - {"dropout"}):
        raise ValueError(
            "start: expected no vocabulary and no field of the model except dropout with it, got "
            + ", ".join([*(["vocabulary"] if vocabulary is not None else []), *(model or {})])
        )
    small = Recipe(languages, str(folder), Subwords(VOCABULARY), SMALL, SMALL_TRAINING)
    recipe = varied(small, vocabulary=vocabulary, model=model)
    if settings.get("steps") is not None and settings.get("minutes") is not None:
        raise ValueError(f"minutes: expected none together with steps, got {settings['minutes']!r}")
    config = changed(SMALL_TRAINING, **fields_from(TrainingConfig, settings))
    filled = [i for i, pair in enumerate(zip(sources, targets, strict=True)) if not any(map(is_blank, pair))]
    if len(filled) < 2:
        raise ValueError(f"targets: expected at least two pairs with text on both sides, got {len(filled)}")
    where = choose_device(device)
    begin = None if start is None else open_model(start)
    sizes = ModelConfig(VOCABULARY, VOCABULARY, **recipe.model) if begin is None else begin.model.config
    longest = min(sizes.max_length, config.tokens_per_batch) - 1
    # A word is at least one token: of a pair with more words than that nothing could be validated.
    fitting = [i for i in filled if max(len(sources[i].split()), len(targets[i].split())) <= longest] or filled
    held_back = min(max(int(HELD_BACK * len(filled)), 1), MOST_HELD_BACK, len(fitting))
    drawn = set(random.Random(config.seed).sample(fitting, held_back))  # a list may be sorted
    places = [[i for i in range(len(sources)) if (i in drawn) == validates] for validates in (False, True)]
    parts = [Parallel([sources[i] for i in part], [targets[i] for i in part]) for part in places]
    with freed_memory_kept():
        run = prepare(CORPUS, *parts, languages, config, where, recipe, start=begin)
        train(run, Path(folder), watchers)
    return Translator.load(folder, device)
