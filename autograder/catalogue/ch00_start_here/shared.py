"""What the exercises of chapter 00 share."""

from torch import Tensor

from autograder.catalogue.exercise import Evidence
from autograder.catalogue.sections import of_chapter

sections = of_chapter("00")

NEW_IS_FLOAT32 = (
    "float64 went in and float32 came out. A result keeps the dtype of its input; a new tensor is float32 unless you "
    "give it a dtype."
)
NO_NUMPY = """The values are correct, but your code stops when a gradient is computed: NumPy has no gradients. Use torch
    from beginning to end."""


def plain(tensor: Tensor) -> str:
    """The numbers of a row, whole ones without a point."""
    return " ".join(f"{value:g}" for value in tensor.tolist())


def is_list(evidence: Evidence) -> bool:
    return isinstance(evidence.got, list)
