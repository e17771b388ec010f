"""Observations of an answer, as data: what a probe returned and where it differs from the correct result. No
sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from autograder.catalogue.exercise import Case, Probe


@dataclass(frozen=True)
class Raised:
    """An exception in the learner's code, with the last of their own lines in the traceback.

    kinds: the names of its class and base classes. about: facts that do not depend on its message (see
    `responder.describe`). shapes: of the tensors in this line, at that moment. parameters: the names of the arguments
    in the learner's own definition. in_constructor: whether a class could not be constructed.
    """

    type: str
    message: str
    line: int = 0
    source: str = ""
    kinds: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    parameters: tuple[str, ...] = ()
    in_constructor: bool = False


def raised_in_cell(error: Mapping[str, Any]) -> Raised:
    """The error that ended a cell, from its description (see `runner.Ran`)."""
    return Raised(error["type"], error["message"], error["line"], error["source"].strip())


@dataclass(frozen=True)
class Structure:
    """The observation of a class whose parameters cannot be matched with the required roles."""

    module: bool
    parameters: tuple[tuple[str, tuple[int, ...]], ...]
    shapes: tuple[str, ...]
    repeatable: bool
    unregistered: tuple[str, ...]
    troubles: tuple = ()  # of blocks, what there are too few or too many of (see `blocks.Trouble`)
    unused: tuple[str, ...] = ()  # parameters of a class of blocks that forward does not use

    def outline(self) -> tuple:
        """A structure that is equal for classes that differ only in names."""
        if self.troubles:
            return self.module, self.troubles, self.unregistered
        sizes = sorted(tuple(sorted(shape)) for _, shape in self.parameters if len(shape) > 1)
        return self.module, tuple(sizes), self.shapes, self.repeatable, self.unregistered


@dataclass(frozen=True)
class Observation:
    """The result of one probe.

    changed: what is not as it was before the call, in the responder's words. elsewhere: whether the result depends on
    random numbers that the generator did not draw. gradients: by argument or projection (see `Part`). dictionaries:
    where the result was one before `Exercise.normalize`: "" for the whole, else keys of the one that a stage made.
    """

    result: Any
    inputs: tuple = ()
    changed: tuple[str, ...] = ()
    drawn: bool = False
    reseeded: bool = False
    elsewhere: bool = False
    gradients: "dict[Part, torch.Tensor | None]" = field(default_factory=dict)
    dictionaries: frozenset[str] = frozenset()


class Part(NamedTuple):
    """A step of the path from a result to a part of it, or something besides the result.

    kind: "result" (of several, by position), "index" (of a list), "key" (of a dictionary); "argument" (by position),
    "projection" (by role), "setting" (of torch, by name).
    """

    kind: str
    name: int | str


@dataclass(frozen=True, eq=False)
class Difference:
    """The first difference of two observations.

    where: the path to the part of the result, from outside; or the argument, projection or setting. index: the position
    in a tensor. `expected` and `got` hold, by kind:

        error        got: the `Raised`
        not raised   expected: the `Raised`; got: a `Raised` if the error came only after the constructor
        type         the two values
        value, nan   the two values, whole tensors; a tuple in a list or a dictionary is one value
        shape, dtype the shapes, the dtypes
        length       the two lists
        keys         the keys of the two dictionaries
        structure    got: the `Structure`, or what came in its place
        inputs       the argument as it should be left, and as it was
        gradient     the two gradients; "no gradient" where none arrives
        score        the `Scale`, and how good the result is on it
        state        a setting was left changed; "undrawn", "reseeded": so the generator that was passed in;
                     "elsewhere": not all draws are from it
        gone         got: why nothing could be asked, in the words of the part that saw it; "" where it was not tried
    """

    kind: str
    where: tuple[Part, ...] = ()
    expected: Any = None
    got: Any = None
    index: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One probe of one answer. `got` is None if the probe could not be run.

    disclosed: whether a hidden probe may be shown like a visible one, since its numbers were drawn only for this check.
    """

    probe: Probe
    case: Case
    cotangent: Any
    expected: Observation
    got: Observation | None
    difference: Difference | None
    disclosed: bool = False

    @property
    def secret(self) -> bool:
        """Whether numbers, strings and names of the probe and the answer must not be shown."""
        return self.probe.hidden and not self.disclosed

    @property
    def passed(self) -> bool:
        return self.difference is None

    @property
    def share(self) -> float:
        """The share of its probe's points that it earns; other values than 0 and 1 only on a scale."""
        if self.difference is not None and self.difference.kind == "score":
            return self.difference.expected.share(self.difference.got)
        return float(self.passed)
