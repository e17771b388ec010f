"""What the exercises of chapter 16 share."""

from typing import Any

from autograder.catalogue.sections import of_chapter

sections = of_chapter("16")


class Seen(dict):
    """The judged parts of a result, by key; `told` is only quoted."""

    def __init__(self, judged: dict[str, Any], told: dict[str, Any]) -> None:
        super().__init__(judged)
        self.told = told
