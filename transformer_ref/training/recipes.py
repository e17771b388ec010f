"""The defaults of the two built-in trainings, written once: corpus, sizes, rates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformer_ref.config import TrainingConfig
from transformer_ref.data.grammar import build_corpus
from transformer_ref.data.multi30k import load_multi30k
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.text.tokenizer import SubwordTokenizer, Tokenizer, WordTokenizer

MULTI30K_VOCABULARY = 8_000


@dataclass(frozen=True)
class Recipe:
    """What a corpus is trained with. Both languages share one tokenizer, and so one tied table."""

    languages: tuple[str, str]
    output: str
    learn_tokenizer: Callable[[list[str]], Tokenizer]
    model: dict[str, Any]
    training: TrainingConfig


RECIPES = {
    "grammar": Recipe(
        languages=("en", "it"), output="build/translator", learn_tokenizer=WordTokenizer.build,
        model=dict(d_model=128, heads=4, encoder_layers=2, decoder_layers=1, d_ff=256, dropout=0.0,
                   norm_first=True, tie_embeddings=True, max_length=128),
        training=TrainingConfig()),
    "multi30k": Recipe(
        languages=("en", "de"), output="build/multi30k",
        learn_tokenizer=lambda lines: SubwordTokenizer.learn(lines, MULTI30K_VOCABULARY),
        model=dict(d_model=256, heads=4, encoder_layers=3, decoder_layers=3, d_ff=1_024, dropout=0.1,
                   norm_first=True, tie_embeddings=True, max_length=256),
        training=TrainingConfig(steps=2_000, tokens_per_batch=2_048, learning_rate=2e-3, muon_rate=3e-3,
                                average_decay=0.99, precision="auto")),
}


def load_split(corpus: str, split: str, source: str, target: str, folder: str | None = None) -> Parallel:
    """Return the lines of a split: train, validation, test or, in the built-in corpus, held_out.

    Raises ValueError for a split or a pair of languages that the corpus does not have.
    """
    if corpus == "multi30k":
        names = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
        if split not in names:
            raise ValueError(f'split: expected one of {", ".join(names)}, got "{split}"')
        return load_multi30k(names[split], source, target, folder)
    if (source, target) != RECIPES["grammar"].languages:
        raise ValueError(
            f'languages: expected "en" to "it" for the built-in corpus, got "{source}" to "{target}"')
    splits = build_corpus()._asdict()
    if split not in splits:
        raise ValueError(f'split: expected one of {", ".join(splits)}, got "{split}"')
    return Parallel([pair.english for pair in splits[split]], [pair.italian for pair in splits[split]])
