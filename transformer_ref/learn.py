"""Two lists of sentences become a translator (chapter 12). The command `train` is this for the corpora it knows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ref.config import TrainingConfig, fields_from
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.device import choose_device
from transformer_ref.training.recipes import SMALL, SMALL_TRAINING, Recipe, subwords
from transformer_ref.training.run import Watcher, changed, prepare, train
from transformer_ref.translate import Translator

CORPUS = "lists"  # what a checkpoint says it was trained on
HELD_BACK, MOST_HELD_BACK = 0.02, 2_000  # share and number of the pairs that a training is validated on


def learn(sources: Sequence[str], targets: Sequence[str], folder: str | Path, vocabulary: int = 8_000,
          model: Mapping[str, Any] | None = None, languages: tuple[str, str] = ("source", "target"),
          device: str = "auto", watchers: Sequence[Watcher] = (), **settings: Any) -> Translator:
    """Train on sentences and their translations, leave a checkpoint in the folder, and return the translator.

    vocabulary: ids that both languages share, at most; model: fields of `ModelConfig` that differ from the small
    recipe's, such as dict(d_model=64); settings: fields of `TrainingConfig`, such as steps=500 or minutes=2.
    The last pairs, two in a hundred, are held back for validation. Raises ValueError naming what does not fit.
    """
    if isinstance(sources, str) or isinstance(targets, str):
        raise TypeError("sources, targets: expected two lists of sentences, got a string")
    if len(sources) != len(targets) or len(sources) < 2:
        raise ValueError(f"targets: expected one for each of {len(sources)} sources (at least two), got {len(targets)}")
    recipe = Recipe(languages, str(folder), subwords(vocabulary), {**SMALL, **(model or {})}, SMALL_TRAINING)
    config = changed(SMALL_TRAINING, **fields_from(TrainingConfig, settings))
    held_back = min(max(int(HELD_BACK * len(sources)), 1), MOST_HELD_BACK)
    parts = [Parallel(list(sources[part]), list(targets[part]))
             for part in (slice(None, -held_back), slice(-held_back, None))]
    run = prepare(CORPUS, *parts, languages, config, choose_device(device), recipe=recipe)
    train(run, Path(folder), watchers)
    return Translator.load(folder, device)
