"""What a report is made of: its parts, as data. `report` puts them together, `render` makes text or HTML of them."""

from dataclasses import dataclass

from autograder.catalogue.exercise import Section


@dataclass(frozen=True)
class Head:
    """The first line: what was checked, the points earned and the maximum."""

    exercise: str
    points: float
    possible: float
    kind: str


@dataclass(frozen=True)
class Line:
    """A paragraph. passed: the mark before it, or None for none; below: whether it belongs to the line above it.

    ours: whether all words are the catalogue's, in which *stars* mean emphasis and `ticks` mean code.
    """

    text: str
    passed: bool | None = None
    below: bool = False
    ours: bool = False


@dataclass(frozen=True)
class Row:
    """A failed check with the expected and the returned numbers."""

    name: str
    label: str
    wanted: tuple[str, ...]
    yours: tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """The smallest failing input: (name, value) of each argument, the expected and the returned result."""

    arguments: tuple[tuple[str, str], ...]
    wanted: str
    yours: str


@dataclass(frozen=True)
class Source:
    """A line of the learner's code."""

    number: int
    text: str


@dataclass(frozen=True)
class Reread:
    """The section to reread, and a hint or ""."""

    section: Section
    hint: str


Part = Head | Line | Row | Example | Source | Reread
