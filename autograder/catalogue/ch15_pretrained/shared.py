"""What the exercises of chapter 15 share."""

from collections.abc import Iterable

from autograder.catalogue.sections import of_chapter

sections = of_chapter("15")


def listed(names: Iterable[str], most: int = 3) -> str:
    """Names as a sentence has them: all of a few, else the first and how many more."""
    names = list(names)
    told = ", ".join(names[:most])
    return f"{told} and {len(names) - most} more" if len(names) > most else told or "nothing"
