"""What an exercise is: one frozen entry that notebooks, local checks, grading, feedback and tests all read."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

LOOKED_AT = frozenset({"inputs", "state", "gradients", "training", "generator"})  # besides a result


@dataclass(frozen=True)
class Section:
    """A section of the book where something can be reread."""

    chapter: str
    title: str
    label: str


@dataclass(frozen=True)
class Case:
    """One set of inputs for an answer, drawn by a probe.

    arguments: passed to the function, or to the module's forward, by position. Callables travel as proxies.
    function: which of the exercise's functions is called; "" means its first.
    labels: names for the rows (second-to-last axis) of the result, for the report.
    construct: arguments of the class's constructor; weights: role -> tensor (inputs, outputs).
    before: arguments of a call that comes first, of the same function or object; its result is only looked at for
    whether it stays as it was, so that only what an answer keeps can be seen. After it, one more object of a class is
    constructed, with other weights.
    """

    arguments: tuple
    labels: tuple[str, ...] = ()
    function: str = ""
    construct: tuple = ()
    weights: Mapping[str, torch.Tensor] | None = None
    before: tuple = ()


def step(method: str, *arguments: Any, by: str = "first", given: int | None = None, around: tuple = ((), ())) -> dict:
    """One call of a method, as it is sent: on the object called `by`, which is constructed when it is first used.

    given: the step whose result, a list, is the last argument, with the items of `around` before and after it.
    """
    before, after = around
    return {"by": by, "method": method, "with": list(arguments), "given": given, "around": [list(before), list(after)]}


class Remark(str):
    """What a check found out about an answer, as the end of a sentence. It takes the place of a result."""


@dataclass(frozen=True)
class Law:
    """A property of a correct result, shown as a line in the report."""

    text: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Scale:
    """A score for texts that need not equal the expected ones; points grow in proportion from `none` to `full`.

    measure: (expected texts, returned texts) -> score, higher is better. unit: its name.
    """

    measure: Callable[[list[str], list[str]], float]
    none: float
    full: float
    unit: str

    def share(self, score: float) -> float:
        """The share of the points, from 0 to 1."""
        return min(max((score - self.none) / (self.full - self.none), 0.0), 1.0)

    def is_nearly_full(self, score: float) -> bool:
        """Whether so few points are missing that there is nothing to correct."""
        return self.share(score) >= 0.95


@dataclass(frozen=True)
class Probe:
    """A question put to an answer. It exists under a fixed name; only its values are drawn. checks: what is looked at
    in addition to the result: "inputs" (left unchanged), "state" (torch's global settings unchanged, as are results of
    earlier calls and a module's mode), "gradients" (equal to the reference's), "training" (the module is in training
    mode, and stays in it), "generator" (the generator that was passed in has been drawn from, and nothing else).
    hide_expected: the right result is itself the answer, so a report shows only what came
    back. announced_by: the words of the task or of the docstring that announce what a hidden probe asks, or
    `probes.PROMISED`. scale: for a list of texts, how good it is; a hidden probe then earns a share of its points.
    """

    name: str
    draw: Callable[[torch.Generator], Case]
    hidden: bool = True
    checks: frozenset[str] = frozenset()
    laws: tuple[Law, ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5
    hide_expected: bool = False
    announced_by: str = ""
    scale: Scale | None = None


@dataclass(frozen=True)
class Evidence:
    """The data that a misconception's message may quote: one probe's inputs, the correct result and the learner's."""

    arguments: tuple
    expected: Any
    got: Any


def usual_quote(evidence: Evidence) -> str:
    """Placeholder in a misconception for the `quotes` of its exercise; quotes nothing if it has none."""
    return ""


def sizes(evidence: Evidence) -> str:
    """The returned and the expected shape."""
    return f"You returned shape {tuple(evidence.got.shape)} where {tuple(evidence.expected.shape)} was expected."


def of_values(quotes: Callable[[Evidence], str]) -> Callable[[Evidence], str]:
    """The same quote for a result of the right form with wrong values; for another shape, both shapes."""

    def said(evidence: Evidence) -> str:
        got, expected = evidence.got, evidence.expected
        if isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor) and got.shape != expected.shape:
            return sizes(evidence)
        return quotes(evidence) if _other_values(got, expected) else ""

    return said


def _other_values(got: Any, expected: Any) -> bool:
    """Whether two results have the same form (types, keys, shapes, dtypes) and differ."""
    if isinstance(expected, torch.Tensor):
        alike = isinstance(got, torch.Tensor) and (got.shape, got.dtype) == (expected.shape, expected.dtype)
        return alike and not torch.allclose(got.double(), expected.double(), rtol=1e-4, atol=1e-5)
    if isinstance(expected, (list, tuple)) and isinstance(got, type(expected)) and len(got) == len(expected):
        pairs = list(zip(got, expected, strict=True))
    elif isinstance(expected, dict) and isinstance(got, dict) and got.keys() == expected.keys():
        pairs = [(got[name], expected[name]) for name in expected]
    else:
        return type(got) is type(expected) and got != expected
    return any(_other_values(*pair) for pair in pairs)


@dataclass(frozen=True)
class Misconception:
    """A known wrong answer, as source that can be submitted, and the message for it.

    message: why this comes out and what to look at, never the code. quotes: a sentence with the learner's own numbers,
    put before the message when a visible probe shows the mistake; None for none. shows: for an answer that differs from
    process to process (the order of a set), whether a failed probe's results bear its mark, or None where that probe
    cannot show it; asked instead of comparing with what the source returns.
    """

    name: str
    source: str
    message: str
    reread: Section
    quotes: Callable[[Evidence], str] | None = usual_quote
    shows: Callable[[Evidence], bool | None] | None = None

    def explain(self, evidence: Evidence | None) -> str:
        """The text for a learner; numbers are quoted only from visible probes."""
        if self.quotes is None or evidence is None:
            return self.message
        return f"{self.quotes(evidence)} {self.message}".strip()


@dataclass(frozen=True)
class Variant:
    """A correct answer in another style, which must earn all points."""

    name: str
    source: str


@dataclass(frozen=True)
class Role:
    """A projection that a class must have: its sizes, and the words by which parameter names are recognized.

    heads: the number of pieces that it may be split into, one per head, along its outputs or, with `cut_inputs`, its
    inputs.
    """

    name: str
    inputs: int
    outputs: int
    words: tuple[str, ...]
    heads: int = 1
    cut_inputs: bool = False


@dataclass(frozen=True)
class Block:
    """A part of a layer or of a model with parameters, in the order of use. kind: "attention", sizes (d_model, heads);
    "feed-forward", sizes (d_model, d_ff); "norm", sizes (d_model,); "table", sizes (vocabulary, d_model); "output",
    sizes (d_model, vocabulary); "projection", with a bias, sizes (inputs, outputs); "rows", such as positions, sizes
    (rows, d_model); "vector", such as a class token, sizes (d_model,).
    """

    name: str
    kind: str
    sizes: tuple[int, ...]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Role -> shape, matrices as (inputs, outputs): "norm 1.scale" and the like, by which weights are given."""
        width = self.sizes[0]
        if self.kind == "attention":
            parts = {part: (width, width) for part in ("query", "key", "value", "output")}
            shapes: dict[str, tuple[int, ...]] = {**parts, **{f"{part} bias": (width,) for part in parts}}
        elif self.kind == "feed-forward":
            inner = self.sizes[1]
            shapes = {
                "first": (width, inner),
                "first bias": (inner,),
                "second": (inner, width),
                "second bias": (width,),
            }
        elif self.kind == "norm":
            shapes = {"scale": (width,), "shift": (width,)}
        elif self.kind == "projection":
            shapes = {"weight": self.sizes, "bias": self.sizes[1:]}
        elif self.kind == "vector":
            shapes = {"numbers": self.sizes}
        else:
            shapes = {"scores" if self.kind == "output" else "rows": self.sizes}
        return {f"{self.name}.{part}": shape for part, shape in shapes.items()}


class EntryError(ValueError):
    """An entry that contradicts itself; the text says where, what was expected and what was found."""


@dataclass(frozen=True)
class Exercise:
    """One entry of the catalogue, checked when it is made. id: the kebab-case name used in `check("...")`, and the name
    of the entry's file; number: "05.2", for people. reference: the right function or class, under the name that is
    looked up in the notebook; several as a tuple, or as a mapping from those names. For a class, `roles` maps
    constructor arguments to the projections it must hold, or to the blocks that it is made of, in the order in which
    they are used; `kept_attributes` names attributes that forward leaves on the module, and they are looked at as
    further results. methods: a class of which objects are made and used by their methods; a case's one argument is a
    list of what `step` makes, the result what each gives. difficulty: 1 to 3; minutes: an honest guess. forbidden:
    function names that the exercise is about and an answer may not call. normalize: what of a result counts, from the
    case and the result, where several forms of it are right; a result that it can make nothing of is to come back as it
    is. mutable_args: the places of arguments that an answer may change, such as a cache. harness: what is set up around
    a function where it runs, by its name in `inside.fixtures.base`; arguments and results are then the harness's.
    seconds: limit for all questions together. mistakes, correct: known answers. quotes: what is quoted with a wrong one
    that names no quote of its own, where its result has the right form and other values; where it has another shape,
    both shapes are. hints: nudge, shape plan, pseudocode. omits: what the hidden probes of every exercise ask by
    default (see `defaults`) and these do not -> the reason. trained: the answer needs what the notebook has trained in
    minutes, so it runs only in a whole notebook; the known answers replace trained ones and know what a probe has
    drawn, so they are judged where it was drawn. Raises EntryError for what contradicts itself.
    """

    id: str
    number: str
    visible_points: float
    hidden_points: float
    section: Section
    reference: Any
    probes: tuple[Probe, ...]
    mistakes: tuple[Misconception, ...]
    correct: tuple[Variant, ...]
    hints: tuple[str, str, str]
    quotes: Callable[[Evidence], str] | None = None
    difficulty: int = 1
    minutes: int = 10
    forbidden: tuple[str, ...] = ()
    roles: Callable[..., tuple[Role, ...] | tuple[Block, ...]] | None = None
    kept_attributes: tuple[str, ...] = ()
    methods: bool = False
    trained: bool = False
    normalize: Callable[[Case, Any], Any] | None = None
    mutable_args: tuple[int, ...] = ()
    harness: str = ""
    seconds: float = 20.0
    omits: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.reference, Mapping):
            several = self.reference if isinstance(self.reference, tuple) else (self.reference,)
            object.__setattr__(self, "reference", {thing.__name__: thing for thing in several})
        if self.quotes is not None:
            usual = of_values(self.quotes)
            known = (replace(each, quotes=usual) if each.quotes is usual_quote else each for each in self.mistakes)
            object.__setattr__(self, "mistakes", tuple(known))
        for contradiction in self._contradictions():
            raise EntryError(f"{self.id}: {contradiction}")

    @property
    def names(self) -> tuple[str, ...]:
        """The objects that are looked up in the notebook."""
        return tuple(self.reference)

    @property
    def is_class(self) -> bool:
        """Whether a class is expected, not a function."""
        return self.roles is not None or self.methods

    @property
    def points(self) -> float:
        return self.visible_points + self.hidden_points

    @property
    def visible(self) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if not probe.hidden)

    @property
    def hidden(self) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if probe.hidden)

    def _contradictions(self) -> Iterator[str]:
        """The contradictions in the entry, one sentence each."""
        kinds = (
            ("visible", self.visible_points, self.visible),
            ("hidden", self.hidden_points, self.hidden),
        )
        for kind, points, probes in kinds:
            if points > 0 and not probes:
                yield f"probes: expected a {kind} one, since {kind}_points is {points:g}"
        for what, entries in (("probes", self.probes), ("mistakes", self.mistakes), ("correct", self.correct)):
            if twice := [name for name, times in Counter(entry.name for entry in entries).items() if times > 1]:
                yield f"{what}: expected different names, got {twice[0]!r} twice"
        for probe in self.probes:
            if unknown := sorted(probe.checks - LOOKED_AT):
                yield f"checks of {probe.name!r}: expected some of {', '.join(sorted(LOOKED_AT))}, got {unknown[0]!r}"
        if len(self.hints) != 3:
            yield f"hints: expected a nudge, a plan and pseudocode, got {len(self.hints)}"
        if self.difficulty not in (1, 2, 3):
            yield f"difficulty: expected 1, 2 or 3, got {self.difficulty!r}"


@dataclass(frozen=True)
class ByHand:
    """A cell of text that a person grades; its rubric is above it in the notebook.

    id: the cell's grade id; number, points, minutes: as for an exercise.
    """

    id: str
    number: str
    points: float
    minutes: int = 60


@dataclass(frozen=True)
class Assignment:
    """A notebook: its folder and file name, its exercises in order, the modules of transformer_ref it may import. load:
    exercise id -> entry, called when it is first needed. files: names of files that may be submitted next to the
    notebook; all others are ignored. by_hand: the cells that a person grades, after the exercises. trains: ids of cells
    that take minutes or depend on such cells; checking a single answer skips them.
    cell_seconds, notebook_seconds: time limits during grading instead of the usual ones (0: the usual).
    """

    id: str
    notebook: str
    exercise_ids: tuple[str, ...]
    load: Callable[[str], Exercise]
    visible_modules: tuple[str, ...]
    files: tuple[str, ...] = ()
    by_hand: tuple[ByHand, ...] = ()
    trains: tuple[str, ...] = ()
    cell_seconds: float = 0.0
    notebook_seconds: float = 0.0

    @classmethod
    def of(
        cls, id: str, notebook: str, exercises: Sequence[Any], visible_modules: tuple[str, ...] = ()
    ) -> "Assignment":
        """The assignment that consists of these entries."""
        entries = {exercise.id: exercise for exercise in exercises}
        return cls(id, notebook, tuple(entries), entries.__getitem__, visible_modules)

    @cached_property
    def exercises(self) -> tuple[Exercise, ...]:
        return tuple(map(self.load, self.exercise_ids))

    @property
    def points(self) -> float:
        return sum(each.points for each in (*self.exercises, *self.by_hand))
