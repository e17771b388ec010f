"""A verdict, and the report that a learner reads."""

import textwrap
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.catalogue.exercise import Evidence, Exercise, Misconception, Section
from autograder.judging.compare import Difference, inputs_difference, written, written_apart
from autograder.judging.diagnose import Outcome
from autograder.judging.observation import Raised, Structure
from autograder.judging.words import argument_names, named, unexplained

WIDTH = 82
MAX_ROW = 8
MAX_LIST = 60  # letters of a list that is shown whole
MAX_INPUT = 120  # letters of an argument
UNWRITTEN = "NotImplementedError"
MISSING, NOT_CHECKED = "missing", "not checked"  # why an answer was asked nothing


@dataclass(frozen=True)
class Verdict:
    """What was decided about one answer.

    graded: whether hidden probes were asked too. unasked: MISSING or NOT_CHECKED where nothing was asked. excused: that
    it was not checked is no fault of the answer, so a person has to look and no zero is final.
    """

    exercise: Exercise
    graded: bool
    outcomes: tuple[Outcome, ...] = ()
    diagnosis: tuple[Misconception, Evidence | None] | None = None
    message: str = ""
    forbidden: bool = False
    unasked: str = ""
    excused: bool = False

    @property
    def visible_points(self) -> float:
        visible = [outcome for outcome in self.outcomes if not outcome.probe.hidden]
        return self.exercise.visible_points if visible and all(outcome.passed for outcome in visible) else 0.0

    @property
    def hidden_points(self) -> float:
        hidden = [outcome for outcome in self.outcomes if outcome.probe.hidden]
        passed = sum(outcome.passed for outcome in hidden)
        return self.exercise.hidden_points * passed / len(hidden) if hidden else 0.0

    @property
    def points(self) -> float:
        return round(self.visible_points + self.hidden_points, 4)

    @property
    def possible(self) -> float:
        return self.exercise.points if self.graded else self.exercise.visible_points

    @property
    def passed(self) -> bool:
        return bool(self.outcomes) and all(outcome.passed for outcome in self.outcomes)

    @property
    def state(self) -> str:
        """How it ended: passed, wrong, blank, missing, forbidden or not checked."""
        if self.unasked or self.forbidden:
            return self.unasked or "forbidden"
        if self.passed:
            return "passed"
        return "blank" if self.blank else "wrong" if self.outcomes else MISSING

    @property
    def misconception(self) -> Misconception | None:
        return self.diagnosis[0] if self.diagnosis else None

    @property
    def blank(self) -> bool:
        """Whether the answer is still to be written."""
        first = self.outcomes[0].got if self.outcomes else None
        if first is None or not isinstance(first.result, Raised):
            return False
        return first.result.type == UNWRITTEN and "forward" not in first.result.message

    def explanation(self) -> str:
        """The sentences that say what is wrong, to be read without the lines of the report; empty when nothing is."""
        if self.known or self.passed:
            return self.known
        first = self._first_failure()
        if first.probe.hidden or first.got is None:
            return unexplained(self.exercise, first)
        seen = named(self.exercise, first, first.difference.text)
        return f"{first.probe.name}: {seen}. {unexplained(self.exercise, first)}".strip()

    @property
    def known(self) -> str:
        """What there is to say when the answer is right, blank, or wrong in a known way; else empty."""
        if self.message or self.passed:
            return self.message
        if self.blank:
            return "The answer still raises NotImplementedError: write it where the TODO is, and remove that line."
        return _explained(*self.diagnosis) if self.diagnosis else ""

    def below_the_lines(self) -> str:
        """The sentences that follow the lines of the report, which have shown what was seen."""
        return self.known or unexplained(self.exercise, self._first_failure())

    def _first_failure(self) -> Outcome:
        return next(outcome for outcome in self.outcomes if not outcome.passed)


def not_checked(exercise: Exercise, reason: str, excused: bool = False) -> Verdict:
    """The verdict where none could be reached; `excused` where the answer is not to blame."""
    message = f"Not checked: {reason}."
    if excused:
        message += " This is no fault of your answer: a person will look at it, and no zero is final until then."
    return Verdict(exercise, True, message=message, unasked=NOT_CHECKED, excused=excused)


def _explained(misconception: Misconception, evidence: Evidence | None) -> str:
    """What there is to say of a known mistake; without numbers where they are not of the kind that it quotes."""
    try:
        return misconception.explain(evidence)
    except Exception:  # a learner's result may be a list where a tuple is meant, or the like
        return misconception.message


def as_record(verdict: Verdict) -> dict[str, Any]:
    """What is kept of a verdict beside its report: plain values, nothing of a hidden input."""
    found = verdict.misconception
    return {
        "exercise": verdict.exercise.id,
        "points": verdict.points,
        "state": verdict.state,
        "excused": verdict.excused,
        "passed": verdict.passed,
        "blank": verdict.blank,
        "forbidden": verdict.forbidden,
        "asked": bool(verdict.outcomes),
        "checked": verdict.state != NOT_CHECKED,
        "misconception": found.name if found else None,
        "message": verdict.explanation() if verdict.outcomes else verdict.message,
    }


def render(verdict: Verdict) -> str:
    """The report, in the voice of LOOK: what was seen, what it means, where to reread, what comes next."""
    exercise = verdict.exercise
    kind = "points" if verdict.graded else "visible points so far"
    lines = [f"{exercise.id:<{WIDTH - 32}}{verdict.points:>8g} of {verdict.possible:g} {kind}"]
    if verdict.passed:
        checks = len(verdict.outcomes)
        passed = f"  ✓ {f'all {checks} checks' if checks > 1 else 'the check'} passed.{_next_step(verdict)}"
        return "\n".join([*lines, passed, *_touched_lines(verdict)])
    if not verdict.blank:
        lines += _visible_lines(verdict)
    lines += _wrapped(verdict.below_the_lines())
    if not verdict.forbidden and verdict.state != NOT_CHECKED:
        lines += _wrapped(_where_to_reread(verdict))
    lines += _hidden_lines(verdict)
    return "\n".join(lines)


def _touched_lines(verdict: Verdict) -> list[str]:
    """What a hidden check will find, said early: an argument that a right answer has changed."""
    if not any("inputs" in probe.also for probe in verdict.exercise.hidden):
        return []
    for outcome in verdict.outcomes:
        changed = inputs_difference(outcome.expected, outcome.got)
        if changed is not None:
            text = named(verdict.exercise, replace(outcome, difference=changed), changed.text)
            return _wrapped(f"But {text}, and a hidden check asks that it is left alone.")
    return []


def _next_step(verdict: Verdict) -> str:
    if verdict.graded:
        return ""
    if not verdict.exercise.hidden_points:
        return " On to the next one."
    more = f" {_more(verdict)}"
    return f"{more} On to the next one."


def _more(verdict: Verdict) -> str:
    points = verdict.exercise.hidden_points
    noun = "point is" if points == 1 else "points are"
    return f"{points:g} more {noun} decided by hidden checks when it is graded."


def _visible_lines(verdict: Verdict) -> list[str]:
    lines: list[str] = []
    told = False
    for position, outcome in enumerate(o for o in verdict.outcomes if not o.probe.hidden):
        if position == 0:
            lines += _contract_lines(outcome)
        if outcome.passed:
            lines.append(f"  ✓ {outcome.probe.name}")
        elif told:
            lines.append(f"  ✗ {outcome.probe.name}")
        else:
            lines += _failure_lines(verdict.exercise, outcome)
            told = True
    return lines


def _contract_lines(outcome: Outcome) -> list[str]:
    """Shape, dtype and laws of the first probe, each on a line of its own."""
    if outcome.got is None or isinstance(outcome.got.result, (Raised, Structure)):
        return []
    got = outcome.got.result
    if isinstance(got, (tuple, list)) != isinstance(outcome.expected.result, (tuple, list)):
        return []
    first, wanted = (
        value[0] if isinstance(value, tuple) and value else value for value in (got, outcome.expected.result)
    )
    if not isinstance(first, torch.Tensor) or not isinstance(wanted, torch.Tensor):
        return []
    right = first.shape == wanted.shape and first.dtype == wanted.dtype
    lines = [f"  {'✓' if right else '✗'} shape {tuple(first.shape)}, dtype {str(first.dtype).removeprefix('torch.')}"]
    return lines + [f"  {'✓' if _holds(law.holds, got) else '✗'} {law.text}" for law in outcome.probe.laws if right]


def _holds(law: Any, result: Any) -> bool:
    try:
        return bool(law(result))
    except Exception:  # a learner's result may be anything
        return False


def _failure_lines(exercise: Exercise, outcome: Outcome) -> list[str]:
    name, parted = outcome.probe.name, outcome.difference
    if outcome.got is not None and isinstance(outcome.got.result, Raised):
        return _error_lines(exercise, outcome, outcome.got.result)
    rows = _rows(outcome, parted) if parted.kind in ("value", "nan", "length") else None
    if rows is None:
        return _wrapped(f"✗ {name}: {named(exercise, outcome, parted.text)}")
    label, wanted, yours = rows
    head = f"  ✗ {name}: {label}should be "
    if len(head) + max(len(wanted), len(yours)) > WIDTH:  # a long row stands on lines of its own
        return [*_wrapped(f"✗ {name}: {label}".strip()), f"    should be {wanted}", f"    yours is  {yours}"]
    return [f"{head}{wanted}", f"{'yours is ':>{len(head)}}{yours}"]


def _rows(outcome: Outcome, parted: Difference) -> tuple[str, str, str] | None:
    """The row of the result in which the largest difference lies, as it should be and as it is."""
    wanted, yours = outcome.expected.result, outcome.got.result
    if isinstance(wanted, list):  # a short one is shown whole; of a long one the text names the first wrong item
        texts = repr(wanted), repr(list(yours))
        return ("", *texts) if max(map(len, texts)) <= MAX_LIST else None
    if isinstance(wanted, tuple):
        position = int(parted.text.split()[1].rstrip(":")) - 1
        wanted, yours = wanted[position], yours[position]
    if not isinstance(wanted, torch.Tensor) or not parted.index or wanted.shape[-1] > MAX_ROW:
        return None
    row = parted.index[:-1]
    if row and len(outcome.case.labels) == wanted.shape[-2]:
        label = f'row "{outcome.case.labels[row[-1]]}" '
    else:
        label = f"row {row if len(row) > 1 else row[0]} " if row else ""  # pyright: ignore[reportGeneralTypeIssues]
    texts = [
        written_apart(wanted, yours, place)
        if place == parted.index
        else (written(wanted, place), written(yours, place))
        for place in ((*row, i) for i in range(wanted.shape[-1]))
    ]
    columns = [[text.rjust(max(map(len, pair))) for text in pair] for pair in texts]
    return label, " ".join(column[0] for column in columns), " ".join(column[1] for column in columns)


def _error_lines(exercise: Exercise, outcome: Outcome, error: Raised) -> list[str]:
    lines = _wrapped(
        f"✗ {outcome.probe.name}: your code stopped with {error.type}{': ' + error.message if error.message else ''}",
        indent="  ",
    )
    if error.line:
        source = textwrap.shorten(error.source, WIDTH - 24, placeholder=" ...")
        lines.append(f"    at your line {error.line}:  {source}".rstrip())
    return lines + _wrapped(f"the check passed in {_inputs(exercise, outcome)}", indent="    ")


def _inputs(exercise: Exercise, outcome: Outcome) -> str:
    pairs = zip(argument_names(exercise, outcome), outcome.case.arguments, strict=False)
    return ", ".join(f"{name} {_input(value)}" for name, value in pairs)


def _input(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"of shape {tuple(value.shape)}"
    shown = repr(value)
    shown = shown if len(shown) <= MAX_INPUT else f"{shown[: MAX_INPUT - 3]}..."
    return f"a {type(value).__name__}" if callable(value) else f"= {shown}"


def _where_to_reread(verdict: Verdict) -> str:
    section: Section = verdict.misconception.reread if verdict.misconception else verdict.exercise.section
    return f'Reread {section.chapter}, "{section.title}"   ·   hint 1 of 3: {verdict.exercise.hints[0]}'


def _hidden_lines(verdict: Verdict) -> list[str]:
    if not verdict.graded and not verdict.exercise.hidden_points:
        return []
    if not verdict.graded:
        return [f"  {_more(verdict)}"]
    hidden = [outcome for outcome in verdict.outcomes if outcome.probe.hidden]
    missed = [outcome.probe.name for outcome in hidden if not outcome.passed]
    if not hidden or not missed:
        return []
    return _wrapped(
        f"Hidden checks passed: {len(hidden) - len(missed)} of {len(hidden)}. Not passed: {'; '.join(missed)}."
    )


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
