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
from autograder.judging.verdict import BLANK, WRONG, Verdict
from autograder.judging.words import below_the_lines, may_be_of_shapes, seen

WIDTH = 82
MAX_ROW = 8
MAX_LIST = 60  # letters of a list that is shown whole
MAX_INPUT = 120  # letters of an argument
MAX_NUMBERS = 12  # of an argument that is shown number by number
UNPREPARED = "on numbers that nobody prepared"
UNEXPLAINED = ("value", "nan", "length", "keys")  # differences that an exercise's nudge can help with


def render(verdict: Verdict) -> str:
    """The report, in the voice of LOOK: what was seen, what it means, where to reread, what comes next."""
    exercise = verdict.exercise
    kind = "points" if verdict.whole else "visible points so far"
    lines = [f"{exercise.id:<{WIDTH - 32}}{_points(verdict):>8g} of {verdict.possible:g} {kind}"]
    if verdict.passed:
        return "\n".join([*lines, *wrapped(f"✓ {_all_passed(verdict)}"), *_touched_lines(verdict)])
    if not verdict.blank:
        lines += _visible_lines(verdict) + _drawn_lines(verdict)
    lines += wrapped(below_the_lines(verdict))
    if verdict.state in (WRONG, BLANK):
        lines += wrapped(_where_to_reread(verdict))
    lines += _hidden_lines(verdict)
    return "\n".join(lines)


def _points(verdict: Verdict) -> float:
    """What was earned; in a learner's own check without the decimals that only a gradebook needs."""
    return round(verdict.points, 2) if verdict.disclosed else verdict.points


def _all_passed(verdict: Verdict) -> str:
    checks, drawn = len(verdict.outcomes), len(_drawn(verdict))
    passed = f"{f'all {checks} checks' if checks > 1 else 'the check'} passed"
    return f"{passed}{f', {drawn} of them {UNPREPARED}' if drawn else ''}.{_next_step(verdict)}"


def _touched_lines(verdict: Verdict) -> list[str]:
    """What a hidden check will find, said early: an argument that a right answer has changed."""
    if verdict.whole or not any("inputs" in probe.also for probe in verdict.exercise.hidden):
        return []
    for outcome in verdict.outcomes:
        changed = inputs_difference(outcome.expected, outcome.got)
        if changed is not None:
            text = seen(verdict.exercise, replace(outcome, difference=changed))
            return wrapped(f"But {text}, and a hidden check asks that it is left alone.")
    return []


def _next_step(verdict: Verdict) -> str:
    if verdict.whole and not verdict.disclosed:
        return ""
    if verdict.whole or not verdict.exercise.hidden_points:
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


def _drawn(verdict: Verdict) -> list[Outcome]:
    """What was asked with numbers that were drawn for this check, and may be shown."""
    return [outcome for outcome in verdict.outcomes if outcome.probe.hidden and not outcome.secret]


def _drawn_lines(verdict: Verdict) -> list[str]:
    """How the drawn checks ended; the first failure of all is shown with its numbers."""
    drawn = _drawn(verdict)
    failed = [outcome for outcome in drawn if not outcome.passed]
    passed = f"{len(drawn) - len(failed)} of {len(drawn)} hidden checks pass, {UNPREPARED}"
    if not failed:
        return wrapped(f"✓ {passed}") if drawn else []
    if verdict.first_failure is not failed[0]:
        return wrapped(f"✗ {passed}")
    lines = wrapped(f"{passed}. {'Not these' if len(failed) > 1 else 'Not this one'}:") + _failure_lines(
        verdict.exercise, failed[0]
    )
    if not isinstance(failed[0].got.result if failed[0].got is not None else None, Raised):  # said already of an error
        lines += wrapped(f"the check passed in {_inputs(verdict.exercise, failed[0])}", indent="    ")
    return lines + [line for outcome in failed[1:] for line in wrapped(f"✗ {outcome.probe.name}")]


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
        return wrapped(f"✗ {name}: {seen(exercise, outcome)}")
    label, wanted, yours = rows
    head = f"  ✗ {name}: {label}should be "
    if len(head) + max(len(wanted), len(yours)) > WIDTH:  # a long row stands on lines of its own
        return [*wrapped(f"✗ {name}: {label}".strip()), f"    should be {wanted}", f"    yours is  {yours}"]
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
    lines = wrapped(
        f"✗ {outcome.probe.name}: your code stopped with {error.type}{': ' + error.message if error.message else ''}",
        indent="  ",
    )
    if error.line:
        source = textwrap.shorten(error.source, WIDTH - 24, placeholder=" ...")
        lines.append(f"    at your line {error.line}:  {source}".rstrip())
    return lines + wrapped(f"the check passed in {_inputs(exercise, outcome)}", indent="    ")


def _inputs(exercise: Exercise, outcome: Outcome) -> str:
    pairs = zip(argument_names(exercise, outcome), outcome.case.arguments, strict=False)
    return ", ".join(f"{name} {_input(value, outcome.probe.hidden)}" for name, value in pairs)


def _input(value: Any, drawn: bool) -> str:
    """An argument in words; a small tensor that nobody has seen, number by number."""
    if isinstance(value, torch.Tensor):
        small = drawn and 0 < value.numel() <= MAX_NUMBERS
        return f"= {_nested(value, ())}" if small else f"of shape {tuple(value.shape)}"
    if isinstance(value, torch.Generator):
        return "= a torch.Generator"
    shown = repr(value)
    shown = shown if len(shown) <= MAX_INPUT else f"{shown[: MAX_INPUT - 3]}..."
    return f"a {type(value).__name__}" if callable(value) else f"= {shown}"


def _nested(tensor: torch.Tensor, place: tuple[int, ...]) -> str:
    """The numbers of a tensor as nested lists, rounded as everywhere in a report."""
    if len(place) == tensor.ndim:
        return written(tensor, place)
    return f"[{', '.join(_nested(tensor, (*place, index)) for index in range(tensor.shape[len(place)]))}]"


def _where_to_reread(verdict: Verdict) -> str:
    section: Section = verdict.misconception.reread if verdict.misconception else verdict.exercise.section
    hint = _hint(verdict)
    return f'Reread {section.chapter}, "{section.title}"{f"   ·   {hint}" if hint else ""}'


def _hint(verdict: Verdict) -> str:
    """The hint that fits where nothing more exact was said: a nudge, or where the plan of shapes is."""
    first = verdict.first_failure
    if verdict.diagnosis or verdict.noticed or first is None or first.secret:
        return ""
    if verdict.blank or first.difference.kind in UNEXPLAINED:
        return f"hint 1 of 3: {verdict.exercise.hints[0]}"
    result = first.got.result if first.got is not None else None
    about_shapes = first.difference.kind == "shape" or (isinstance(result, Raised) and may_be_of_shapes(result))
    return "hint 2 of 3 is a plan of shapes" if about_shapes else ""


def _hidden_lines(verdict: Verdict) -> list[str]:
    if not verdict.whole:
        return [f"  {_more(verdict)}"] if verdict.exercise.hidden_points else []
    hidden = [outcome for outcome in verdict.outcomes if outcome.secret]
    missed = [outcome.probe.name for outcome in hidden if not outcome.passed]
    if not hidden or not missed:
        return []
    return wrapped(
        f"Hidden checks passed: {len(hidden) - len(missed)} of {len(hidden)}. Not passed: {'; '.join(missed)}."
    )


def wrapped(text: str, indent: str = "  ") -> list[str]:
    """The lines of a paragraph of a report."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
