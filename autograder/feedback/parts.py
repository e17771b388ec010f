"""What a report is made of: its parts, as data. `report` puts them together, `render` makes text or HTML of them."""

from dataclasses import dataclass

from autograder.catalogue.exercise import Section


@dataclass(frozen=True)
class Head:
    """The first line: what was checked, and what it earns of what."""

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
    """A failed check with the numbers that should have come, and the learner's, one by one."""

    name: str
    label: str
    wanted: tuple[str, ...]
    yours: tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """The smallest input on which an answer still fails: (name, value) of each argument, the right result, theirs."""

    arguments: tuple[tuple[str, str], ...]
    wanted: str
    yours: str


@dataclass(frozen=True)
class Source:
    """A line of the learner's."""

    number: int
    text: str


@dataclass(frozen=True)
class Reread:
    """Where to look it up, and a hint or ""."""

    section: Section
    hint: str


Part = Head | Line | Row | Example | Source | Reread
