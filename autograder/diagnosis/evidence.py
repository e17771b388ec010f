"""What is known of why an answer fails, as data; `sentences` and `feedback` put it into words."""

from dataclasses import dataclass, fields, replace

from autograder.catalogue.exercise import Evidence, Misconception
from autograder.judging.observation import Outcome
from autograder.judging.verdict import Verdict

FEWEST = 3  # different numbers that a result must hold before a pattern in it says something


@dataclass(frozen=True)
class Noticed:
    """One fact.

    kind: what was seen (see the functions below). axis, axes, size: where, if it concerns an axis of the result, of how
    many, and how long it is; where "scaled" and "offset" speak of one plain number, size is 1. argument: its place, if
    it concerns one. factor: the constant of "scaled" and "offset". sure: seen in more than one failure. beside: the
    message of a known mistake to whose result it applies, where that is not the right one. where: the setting to which
    it is confined (see `known_mistakes.setting`). part: which of several results it is about, from 1; 0 where there is
    one, or it is the first that is wrong. partial: it holds in the first check that fails and in others, but not in
    all; without it, it holds in every check that fails.
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
    partial: bool = False


@dataclass(frozen=True)
class Explained(Verdict):
    """A verdict, and why the answer fails; nothing here changes its points.

    diagnosis: the known mistake, with what of the outcomes shows it. noticed: facts about a failure that no known
    mistake explains. failed_explanation: the traceback of an exception of ours that ended the explanation.
    counterexample: the smallest input that was found on which the answer still fails. alike: a fingerprint of what the
    answer shows, where no known mistake explains it (see `alike`).
    """

    diagnosis: tuple[Misconception, Evidence | None] | None = None
    noticed: tuple[Noticed, ...] = ()
    failed_explanation: str = ""
    counterexample: Outcome | None = None
    alike: tuple[str, ...] = ()

    @property
    def misconception(self) -> Misconception | None:
        return self.diagnosis[0] if self.diagnosis else None


def explained(verdict: Verdict, **found: object) -> Explained:
    """The verdict with what was found; without an explanation where none was looked for."""
    if isinstance(verdict, Explained):
        return replace(verdict, **found)
    return Explained(**{field.name: getattr(verdict, field.name) for field in fields(Verdict)}, **found)
