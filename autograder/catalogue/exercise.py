"""What an exercise is: one frozen entry that notebooks, local checks, grading, feedback and tests all read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Section:
    """A section of the book where something can be reread."""

    chapter: str
    title: str
    label: str


@dataclass(frozen=True)
class Case:
    """One set of inputs, drawn by a probe.

    arguments: passed to the function, or to the module's forward, by position. Callables travel as proxies.
    function: which of the exercise's functions is called; "" means its first.
    labels: names for the rows (second-to-last axis) of the result, for the report.
    construct: arguments of the class's constructor; weights: role -> tensor (inputs, outputs).
    """

    arguments: tuple
    labels: tuple[str, ...] = ()
    function: str = ""
    construct: tuple = ()
    weights: Mapping[str, torch.Tensor] | None = None


@dataclass(frozen=True)
class Law:
    """A property of a right result, shown as a line of its own in the report."""

    text: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Probe:
    """A question put to an answer. It exists under a fixed name; only its values are drawn.

    also: what is looked at beside the result: "inputs" (left unchanged), "state" (torch's global settings left
    alone), "gradients" (equal to the reference's), "training" (the module is in training mode), "generator" (the
    generator that was passed in has been drawn from).
    quiz: the right result is itself the answer, so a report shows only what came back.
    """

    name: str
    draw: Callable[[torch.Generator], Case]
    hidden: bool = True
    also: frozenset[str] = frozenset()
    laws: tuple[Law, ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5
    quiz: bool = False


@dataclass(frozen=True)
class Evidence:
    """What a misconception's message may quote: one probe's inputs, the right result and the learner's."""

    arguments: tuple
    expected: Any
    got: Any


@dataclass(frozen=True)
class Misconception:
    """A known wrong answer, as source that can be handed in, and the words that it deserves.

    message: why this comes out and what to look at, never the code. seen: a sentence with the learner's own numbers,
    put before the message when a visible probe shows the mistake. shows: for an answer that differs from process to
    process (the order of a set), whether a failed probe's results bear its mark; asked in place of comparing with what
    the source returns.
    """

    name: str
    source: str
    message: str
    reread: Section
    seen: Callable[[Evidence], str] | None = None
    shows: Callable[[Evidence], bool] | None = None

    def explain(self, evidence: Evidence | None) -> str:
        """The words a learner reads; numbers are quoted only from visible probes."""
        if self.seen is None or evidence is None:
            return self.message
        return f"{self.seen(evidence)} {self.message}"


@dataclass(frozen=True)
class Variant:
    """A right answer in another style, which must earn everything."""

    name: str
    source: str


@dataclass(frozen=True)
class Role:
    """A projection that a class must hold: how it maps sizes, and the words by which names reveal it."""

    name: str
    inputs: int
    outputs: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Exercise:
    """One entry of the catalogue.

    id: the kebab-case name used in `check("...")`; number: "05.2", for people; names: the objects looked up in the
    notebook. reference: name -> the right object; for a class, `roles` maps constructor arguments to the projections
    it must hold.
    forbidden: function names that the exercise is about and an answer may not call. seconds: limit for all
    questions together.
    hints: nudge, shape plan, pseudocode.
    """

    id: str
    number: str
    names: tuple[str, ...]
    visible_points: float
    hidden_points: float
    section: Section
    reference: Mapping[str, Any]
    probes: tuple[Probe, ...]
    misconceptions: tuple[Misconception, ...]
    variants: tuple[Variant, ...]
    hints: tuple[str, str, str]
    forbidden: tuple[str, ...] = ()
    roles: Callable[..., tuple[Role, ...]] | None = None
    seconds: float = 20.0

    @property
    def points(self) -> float:
        return self.visible_points + self.hidden_points

    @property
    def visible(self) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if not probe.hidden)

    @property
    def hidden(self) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if probe.hidden)


@dataclass(frozen=True)
class Assignment:
    """A notebook: its folder and file name, its exercises in order, the modules of transformer_ref it may import.

    files: names of what may be handed in beside the notebook; everything else there is ignored.
    """

    id: str
    notebook: str
    exercises: tuple[Exercise, ...]
    visible_modules: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        return sum(exercise.points for exercise in self.exercises)
