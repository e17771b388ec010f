"""What the built-in corpus consists of, without the grammar that writes it."""

from typing import NamedTuple


class Sense(NamedTuple):
    """The sense of an ambiguous word, its Italian forms, and the cue noun that decides the sense, if there is one."""

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
    """The splits for training, validation and testing.

    `held_out` has the combinations of word and cue that no other split has.
    """

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]
    held_out: list[Pair]
