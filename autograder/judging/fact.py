"""One thing that can be seen in a wrong answer, as data; `noticed_words` makes a sentence of it."""

from dataclasses import dataclass

FEWEST = 3  # different numbers that a result must hold before a pattern in it says something


@dataclass(frozen=True)
class Noticed:
    """One fact.

    kind: what was seen (see the functions below). axis, axes, size: where, if it concerns an axis of the result, of how
    many, and how long it is; where "scaled" and "offset" speak of one plain number, size is 1. argument: its place, if
    it concerns one. factor: the constant of "scaled" and "offset". sure: seen in more than one failure. beside: the
    message of a known mistake to whose result it applies, where that is not the right one. where: the setting to which
    it is confined (see `diagnose.setting`). part: which of several results it is about, from 1; 0 where there is one,
    or it is the first that is wrong.
    """

    kind: str
    axis: int = 0
    axes: int = 0
    size: int = 0
    argument: int = 0
    factor: float = 0.0
    sure: bool = True
    beside: str = ""
    where: tuple = ()
    part: int = 0
