"""The recipe of each corpus, written once: its files, sizes and rates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from transformer_ref.config import ModelConfig, TrainingConfig, fields_from
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.data.multi30k import load_multi30k
from transformer_ref.data.parallel_text import Parallel, ParallelFiles, find_parallel
from transformer_ref.text.tokenizer import SubwordTokenizer, Tokenizer, WordTokenizer

SIZES = {  # Vaswani et al. 2017, table 3; the big model's dropout is that of English-German
    "base": dict(d_model=512, heads=8, encoder_layers=6, decoder_layers=6, d_ff=2_048, dropout=0.1),
    "big": dict(d_model=1_024, heads=16, encoder_layers=6, decoder_layers=6, d_ff=4_096, dropout=0.3),
}
PRE_NORM = dict(norm_first=True, tie_embeddings=True)
SMALL = PRE_NORM | dict(
    d_model=256, heads=4, encoder_layers=3, decoder_layers=3, d_ff=1_024, dropout=0.1, max_length=256
)
SMALL_TRAINING = TrainingConfig(
    steps=2_000, tokens_per_batch=2_048, learning_rate=2e-3, muon_rate=3e-3, ema_decay=0.99, precision="auto"
)


@dataclass(frozen=True)
class Recipe:
    """The settings for training on a corpus. Both languages share one tokenizer, and so one tied table.

    splits: the names of the splits' files, by their purpose; where: how to get them, for the error without a folder.
    """

    languages: tuple[str, str]
    output: str
    learn_tokenizer: Callable[[list[str]], Tokenizer]
    model: dict[str, Any]
    training: TrainingConfig
    splits: dict[str, str] = field(default_factory=dict)
    where: str = ""


@dataclass(frozen=True)
class Subwords:
    """Learns a tokenizer with this many ids."""

    size: int

    def __call__(self, lines: list[str]) -> Tokenizer:
        return SubwordTokenizer.learn(lines, self.size)


def varied(
    recipe: Recipe, size: str | None = None, vocabulary: int | None = None, model: Mapping[str, Any] | None = None
) -> Recipe:
    """Return the recipe with a size of SIZES, with subwords of another number, or with other fields of `ModelConfig`.

    Raises ValueError for a field that it does not have or that the vocabulary decides, or for too small a vocabulary,
    TypeError for no number.
    """
    changes = fields_from(ModelConfig, {**(SIZES[size] if size else {}), **(model or {})})
    if decided := sorted({"source_vocabulary", "target_vocabulary"} & set(changes)):
        raise ValueError(f"model: expected fields that the vocabulary does not decide, got {', '.join(decided)}")
    if vocabulary is not None and type(vocabulary) is not int:
        raise TypeError(f"vocabulary: expected int, got {vocabulary!r}")
    if vocabulary is not None and vocabulary < SubwordTokenizer.SMALLEST:
        raise ValueError(f"vocabulary: expected at least {SubwordTokenizer.SMALLEST}, got {vocabulary}")
    learn_tokenizer = recipe.learn_tokenizer if vocabulary is None else Subwords(vocabulary)
    return replace(recipe, learn_tokenizer=learn_tokenizer, model={**recipe.model, **changes})


RECIPES = {
    "grammar": Recipe(
        languages=("en", "it"),
        output="build/translator",
        learn_tokenizer=WordTokenizer.build,
        # one encoder layer for speed, with many heads: of four, some seeds leave one held-out combination unlearned
        model=PRE_NORM
        | dict(d_model=128, heads=8, encoder_layers=1, decoder_layers=1, d_ff=256, dropout=0.0, max_length=128),
        training=TrainingConfig(
            steps=1_000,
            tokens_per_batch=1_536,
            schedule="linear",
            learning_rate=1e-2,
            muon_rate=1.2e-2,
            muon_momentum=0.9,
            weight_decay=0.2,
            muon_weight_decay=0.2,
            label_smoothing=0.05,
            max_grad_norm=10.0,
            precision="auto",
        ),
    ),
    "multi30k": Recipe(
        languages=("en", "de"),
        output="build/multi30k",
        learn_tokenizer=Subwords(8_000),
        model=SMALL,
        training=SMALL_TRAINING,
        splits={
            "train": "train",
            "validation": "val",
            "test": "test_2016_flickr",
            "test_2017_flickr": "test_2017_flickr",
            "test_2017_mscoco": "test_2017_mscoco",
        },
    ),
    "wmt14": Recipe(  # Vaswani et al. 2017, section 5: 25,000 tokens of each side in a batch, 37,000 subwords
        languages=("en", "de"),
        output="build/wmt14",
        learn_tokenizer=Subwords(37_000),
        model=dict(**SIZES["base"], norm_first=False, tie_embeddings=True, max_length=256),
        training=TrainingConfig(
            steps=100_000,
            tokens_per_batch=25_000,
            schedule="inverse_sqrt",
            warmup_steps=4_000,
            learning_rate=7e-4,
            muon_rate=0.0,
            ema_decay=0.999,
            precision="auto",
        ),
        splits={"train": "train", "validation": "newstest2013", "test": "newstest2014"},
        where="; the parallel texts of www.statmt.org/wmt14/translation-task.html, joined, are train.en and train.de, "
        "and `sacrebleu -t wmt13 -l en-de --echo src` is newstest2013.en",
    ),
    "files": Recipe(
        languages=("en", "de"),
        output="build/files",
        learn_tokenizer=Subwords(8_000),
        model=SMALL,
        training=SMALL_TRAINING,
        splits={"train": "train", "validation": "val", "test": "test"},
        where=" with train.<language> and val.<language> for both",
    ),
}


def load_split(corpus: str, split: str, source: str, target: str, folder: str | None = None) -> Parallel:
    """Return the lines of a split: train, validation, test or another one that the corpus has.

    folder: where its files are; optional for multi30k, and the built-in corpus has no files.
    Raises ValueError for a split or a pair of languages that the corpus does not have, for a missing folder, and for a
    folder with the built-in corpus; and what `load_multi30k` and `load_parallel` raise.
    """
    if corpus == "grammar":
        if folder:
            raise ValueError(f"data: expected no folder for the built-in corpus, got {folder}; --corpus names another")
        return _built_in(split, source, target)
    if corpus not in RECIPES:
        raise ValueError(f"corpus: expected one of {', '.join(RECIPES)}, got {corpus!r}, which has no files")
    recipe = RECIPES[corpus]
    if split not in recipe.splits:
        raise ValueError(f'split: expected one of {", ".join(recipe.splits)}, got "{split}"')
    if corpus == "multi30k":
        return load_multi30k(recipe.splits[split], source, target, folder)
    return _files(recipe, split, source, target, folder).load()


def find_split(corpus: str, split: str, source: str, target: str, folder: str | None = None) -> ParallelFiles | None:
    """Return the files of a split that is two files in a folder, None for a corpus that is generated or downloaded.

    Raises as `load_split` does, as far as possible without reading the files.
    """
    if corpus in ("grammar", "multi30k"):
        return None
    return _files(RECIPES[corpus], split, source, target, folder)


def _files(recipe: Recipe, split: str, source: str, target: str, folder: str | None) -> ParallelFiles:
    if not folder:
        raise ValueError(f"data: expected a folder by --data-dir, got none{recipe.where}")
    return find_parallel(folder, recipe.splits[split], source, target)


def _built_in(split: str, source: str, target: str) -> Parallel:
    if (source, target) != RECIPES["grammar"].languages:
        raise ValueError(f'languages: expected "en" to "it" for the built-in corpus, got "{source}" to "{target}"')
    splits = build_corpus()._asdict()
    if split not in splits:
        raise ValueError(f'split: expected one of {", ".join(splits)}, got "{split}"')
    return Parallel([pair.english for pair in splits[split]], [pair.italian for pair in splits[split]])
