"""What the exercises of chapter 02 share."""

import torch

from autograder.catalogue.exercise import Evidence
from autograder.catalogue.sections import of_chapter

SPECIALS = ["<pad>", "<bos>", "<eos>", "<unk>"]
CORPUS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}

sections = of_chapter("02")
(SMALL_PRINT,) = of_chapter("00")("contract")  # dtypes, changed inputs, gradients and sizes of 1


def choose(g: torch.Generator, low: int, high: int, count: int) -> list[int]:
    """So many different whole numbers, low <= number < high, in random order."""
    return [low + number for number in torch.randperm(high - low, generator=g)[:count].tolist()]


def letters(g: torch.Generator, *words: str) -> list[str]:
    """The words with other letters in the same alphabetical order: the ties stay."""
    used = sorted(set("".join(words)))
    drawn = sorted(choose(g, ord("a"), ord("z") + 1, len(used)))
    table = {old: chr(new) for old, new in zip(used, drawn, strict=True)}
    return ["".join(table[letter] for letter in word) for word in words]


def returned(evidence: Evidence) -> str:
    return f"You returned {evidence.got!r} where {evidence.expected!r} was expected."
