"""What the built-in corpus consists of, without the grammar that writes it."""

from typing import NamedTuple


class Sense(NamedTuple):
    """Which sense an ambiguous word has, its Italian forms, and the cue noun that tells if there is one."""

    word: str
    group: str
    forms: tuple[str, ...]
    cue: str | None


class Pair(NamedTuple):
    """A sentence, its translation, and the sense of its ambiguous word if it has one."""

    english: str
    italian: str
    sense: Sense | None = None


class Corpus(NamedTuple):
    """Sentences to learn from, to choose by, to judge by.

    `held_out` has the combinations of word and cue that the others never show.
    """

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]
    held_out: list[Pair]
