"""The report that a learner reads, in lines. Its sentences are written in `words`."""

import textwrap
from dataclasses import replace
from typing import Any

import torch

from autograder.catalogue.exercise import Exercise, Section
from autograder.judging.compare import inputs_difference
from autograder.judging.noticed_words import argument_names
from autograder.judging.observation import Difference, Outcome, Raised, Structure
from autograder.judging.values import dtype_name, tensors_apart, written
from autograder.judging.verdict import NOT_CHECKED, Verdict
from autograder.judging.words import below_the_lines, seen

WIDTH = 82
MAX_ROW = 8
MAX_LIST = 60  # letters of a list that is shown whole
MAX_INPUT = 120  # letters of an argument


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
    lines += _wrapped(below_the_lines(verdict))
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
            text = seen(verdict.exercise, replace(outcome, difference=changed))
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
    lines = [f"  {'✓' if right else '✗'} shape {tuple(first.shape)}, dtype {dtype_name(first.dtype)}"]
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
    quoted = parted.kind in ("value", "nan", "length") and not outcome.probe.quiz
    rows = _rows(outcome, parted) if quoted else None
    if rows is None:
        return _wrapped(f"✗ {name}: {seen(exercise, outcome)}")
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
    if isinstance(wanted, (tuple, torch.Tensor)) and len(parted.where) <= 1:  # the tensor, or one of several
        wanted, yours = parted.expected, parted.got
    if not isinstance(wanted, torch.Tensor) or not parted.index or wanted.shape[-1] > MAX_ROW:
        return None
    row: tuple[int, ...] = parted.index[:-1]
    if row and len(outcome.case.labels) == wanted.shape[-2]:
        label = f'row "{outcome.case.labels[row[-1]]}" '
    else:
        label = f"row {row[0] if len(row) == 1 else row} " if row else ""
    texts = [
        tensors_apart(wanted, yours, place)
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
    if isinstance(value, torch.Generator):
        return "= a torch.Generator"
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
