"""Where the slip of an answer is, if one small change repairs it, although no known mistake explains it.

Fault localization by search: changes to the answer's own source are tried (`mutations`) until all checks pass. The
report names the place and what kind of change it is, and never the change itself. So what it claims was seen to hold,
and it needs no entry of the catalogue.
"""

import dataclasses
import os
import re
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.mutations import Change, Program
from autograder.judging import compare
from autograder.judging.observation import Outcome, Raised
from autograder.judging.observe import Candidate, Endpoint, LocalEndpoint
from autograder.sandbox import limited_process

MOST_CHANGES = 600  # that are tried
MOST_SECONDS = 6.0  # of a large answer, or on a slow machine
MEMORY = 2 << 30  # bytes
MOST_CODE = 44  # letters of the learner's that a sentence quotes
WORDS = {
    "name": "another name where {code} stands",
    "function": "another function where {code} stands",
    "operator": "another operator in {code}",
    "operands": "the two sides of {code} exchanged",
    "items": "two of {code} exchanged",
    "layer": "a layer that is made and never used, around {code}",
    "sign": "{code} without what stands before it",
    "constant": "another value where {code} stands",
    "condition": "the opposite of the condition {code}",
    "arguments": "two arguments of {code} exchanged",
    "argument too many": "one argument less in {code}",
    "argument too few": "one argument more in {code}",
    "call too many": "only the argument of {code}, without the call",
    "method too many": "leaving out {code}",
    "bounds": "other bounds in {code}",
    "part": "only a part of {code}",
    "side": "only one of the two sides of {code}",
    "opposite": "the opposite of {code}",
    "axes": "the axes of {code} in another order",
    "by one": "one more or less than {code}",
    "copy": "a copy of {code}",
    "line too many": "leaving this line out",
    "lines exchanged": "this line and the next exchanged",
    "values exchanged": "the values of this line and the next exchanged",
    "condition too many": "doing this without the condition",
    "indented": "this line after the block instead of inside it",
    "not indented": "this line inside the block before it",
}
LEAVING_OUT = (
    "line too many",
    "call too many",
    "method too many",
    "side",
    "part",
    "argument too many",
)  # which say more than anything exchanged
AT_THE_END = (
    "",
    "function",
    "call too many",
    "method too many",
    "argument too many",
    "argument too few",
    "side",
    "part",
)


@dataclass(frozen=True)
class OneChange:
    """A change that repairs an answer. code: what is changed; around: what it is a part of, if the line has it twice;
    line, source: the learner's line. checks: how many pass then; visible: whether
    these are the visible ones, as no others ran."""

    kind: str
    code: str
    around: str
    line: int
    source: str
    checks: int
    visible: bool

    def say(self) -> str:
        """Return the sentence, to be read before the line of code."""
        code, around = (f"`{_quoted(each, self.kind)}`" for each in (self.code, self.around))
        kind = "visible check" if self.visible else "check"
        passing = f"makes all {self.checks} {kind}s pass" if self.checks > 1 else f"makes the {kind} pass"
        if not self.kind:
            return f"One change to {code} {passing}."
        where = f", in {around}" if self.around else ""
        return f"One change {passing}: {WORDS[self.kind].format(code=code)}{where}."


def _quoted(code: str, kind: str) -> str:
    """Code that is not too long: where the change may be at its end, the end as well as the beginning."""
    if len(code) <= MOST_CODE or kind not in AT_THE_END:
        return textwrap.shorten(code, MOST_CODE, placeholder=" ...")
    half = (MOST_CODE - len(" ... ")) // 2
    return f"{code[:half].rstrip()} ... {code[-half:].lstrip()}"


def one_change(exercise: Exercise, endpoint: Endpoint, outcomes: Sequence[Outcome], source: str) -> OneChange | None:
    """The change to the source that makes all checks pass; None if none was found. Nothing is tried on hidden checks.

    source: the cell that defines the answer, which the endpoint can run again in a copy of its namespace. Raises
    EndpointGone when the answer's process is lost.
    """
    if exercise.trained or any(each.secret or each.got is None for each in outcomes) or _is_told(outcomes):
        return None
    if not isinstance(endpoint, LocalEndpoint):
        return _searched(exercise, endpoint, outcomes, source)
    if not hasattr(os, "fork"):
        return None  # a change may crash torch, and with it the learner's notebook

    def in_a_child() -> dict | None:
        torch.set_num_threads(1)  # those of this process are not there
        found = _searched(exercise, endpoint, outcomes, source)
        return found and dataclasses.asdict(found)

    try:
        found = limited_process.run(in_a_child, MOST_SECONDS + 1, MEMORY, quiet=True, clock=2 * MOST_SECONDS)
    except limited_process.Stopped:
        return None
    return found and OneChange(**found)


def _searched(exercise: Exercise, endpoint: Endpoint, outcomes: Sequence[Outcome], source: str) -> OneChange | None:
    try:
        program = Program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a cell with commands of IPython's, or too deep
        return None
    try:
        found = _repairs(exercise, endpoint, sorted(outcomes, key=lambda outcome: outcome.passed), program)
    finally:
        endpoint.ask({"do": "vary", "with": {"source": ""}})
    return _told(found, program, source, exercise, len(outcomes)) if found else None


def _repairs(exercise: Exercise, endpoint: Endpoint, outcomes: Sequence[Outcome], program: Program) -> list[Change]:
    """The simplest change that was found, and what else could be meant in its line."""
    if _passes(exercise, endpoint, outcomes, program.definitions):  # it is not what was judged
        return []
    until = time.monotonic() + MOST_SECONDS
    found: list[Change] = []
    tried = {program.definitions, ""}
    errors = [each.got.result for each in outcomes if not each.passed and each.difference.kind == "error"]
    for change in program.simplest_first({each.line for each in errors if isinstance(each, Raised)}):
        if time.monotonic() > until or (found and change.effort > found[0].effort + 1):
            break
        if found and change.line != found[0].line:
            continue
        text = program.changed(change)
        if text in tried:
            continue
        tried.add(text)
        if len(tried) > MOST_CHANGES:
            break
        if _passes(exercise, endpoint, outcomes, text):
            found.append(change)
    return found


def _is_told(outcomes: Sequence[Outcome]) -> bool:
    """Whether the report explains the failure without a search: an undefined name, a changed argument."""
    failing = [each for each in outcomes if not each.passed]
    undefined = any(isinstance(each.got.result, Raised) and each.got.result.type == "NameError" for each in failing)
    return undefined or {each.difference.kind for each in failing} <= {"inputs", "state", "undrawn", "reseeded"}


def _passes(exercise: Exercise, endpoint: Endpoint, outcomes: Sequence[Outcome], source: str) -> bool:
    if "error" in endpoint.ask({"do": "vary", "with": {"source": source}}):
        return False
    for forbidden in ((), exercise.forbidden) if exercise.forbidden else ((),):  # to watch for calls takes time
        changed = Candidate(exercise, endpoint, forbidden)
        for outcome in outcomes:
            got = changed.observe(outcome.probe, outcome.case, outcome.expected, outcome.cotangent)
            if changed.called or compare.difference(outcome.expected, got, outcome.probe) is not None:
                return False
    return True


def _told(found: Sequence[Change], program: Program, source: str, exercise: Exercise, checks: int) -> OneChange:
    """What the changes that were found have in common."""
    line = found[0].line
    simpler = [each for each in found if each.kind in LEAVING_OUT and each.effort <= found[0].effort]
    simpler = [each for each in found if each.kind == "line too many"] or simpler
    places = {(each.kind, program.code(each)) for each in simpler or found}
    kind, code = places.pop() if len(places) == 1 else ("", max((code for _, code in places), key=len))
    written = source.splitlines()[line - 1].strip()
    before = r"(?<!\w)" if code[:1].isidentifier() else ""
    twice = len(re.findall(rf"{before}{re.escape(code)}(?!\w)", written)) > 1
    around = program.around((simpler or found)[0]) if kind and twice else ""
    return OneChange(kind, code, around, line, written, checks, checks < len(exercise.probes))
