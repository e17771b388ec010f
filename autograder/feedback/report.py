"""The report that a learner reads: what is in it, and in which order. Its sentences are written in
`messages`, and `render` makes text or HTML of its parts."""

import inspect
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from autograder.catalogue.exercise import Exercise, Section
from autograder.catalogue.sections import section
from autograder.diagnosis.evidence import Explained, argument_names, explained
from autograder.feedback import render
from autograder.feedback.errors import may_be_of_shapes
from autograder.feedback.messages import below_the_lines, said_by, seen
from autograder.feedback.parts import Example, Head, Line, Part, Reread, Row, Source
from autograder.feedback.values import LEAST_DIGITS, cut, digits_exact, dtype_name, plainly, tensors_apart, written
from autograder.judging.compare import inputs_difference
from autograder.judging.observation import Difference, Outcome, Raised, Structure
from autograder.judging.verdict import BLANK, WRONG, Verdict

MAX_ROW = 8
MAX_LIST = 60  # letters of a list that is shown whole
MAX_INPUT = 120  # letters of an argument
MAX_WORKED_OUT = 240  # of one with which the learner is to compute
MAX_EXAMPLE = 72  # letters of a value of a small example
MAX_NUMBERS = 12  # of an argument that is shown number by number
MAX_SOURCE = 58  # letters of a learner's line
UNWRITTEN = "Your points are decided, but the report could not be written. Please tell your teacher."
UNPREPARED = "on random inputs"
SMALL_PRINT = {"dtype", "inputs", "gradient", "no gradient"}  # differences of which chapter 00 tells
UNEXPLAINED = ("value", "nan", "length", "keys")  # differences that an exercise's nudge can help with


def report(verdict: Verdict) -> list[Part]:
    """The parts of the report: the result, its meaning, the section to reread, the next step."""
    head = Head(
        verdict.exercise.id,
        _points(verdict),
        verdict.possible,
        "points" if verdict.whole else "visible points so far",
    )
    for told in (explained(verdict), explained(verdict, diagnosis=None)):
        with suppress(Exception):  # of ours: the points stay as decided, whatever becomes of the sentences
            return _report(told, [head])
    return [head, Line(UNWRITTEN, ours=True)]


def _report(verdict: Explained, parts: list[Part]) -> list[Part]:
    if verdict.passed:
        return [*parts, Line(_all_passed(verdict), True), *_touched(verdict)]
    if not verdict.blank:
        parts += _visible(verdict) + _drawn_parts(verdict)
    if below := below_the_lines(verdict):
        parts.append(Line(below, ours=verdict.unasked is None))
    if verdict.counterexample is not None and (example := _example(verdict.exercise, verdict.counterexample)):
        parts.append(example)
    if (change := verdict.one_change) is not None:
        parts += [Line(change.say(), ours=True), _source(change.line, _around(change.code, change.source))]
    if verdict.state in (WRONG, BLANK):
        parts.append(Reread(_section(verdict), _hint(verdict)))
    return parts + _hidden(verdict)


def _section(verdict: Explained) -> Section:
    """The section to reread: the small print where only a promise of all functions is broken."""
    if verdict.misconception:
        return verdict.misconception.reread
    kinds = {outcome.difference.kind for outcome in verdict.outcomes if not outcome.passed}
    of_the_course = verdict.exercise.section.label.startswith("sec-")
    return section("sec-00-contract") if of_the_course and kinds and kinds <= SMALL_PRINT else verdict.exercise.section


def as_text(verdict: Verdict) -> str:
    """The report as plain text."""
    return render.as_text(report(verdict))


def _points(verdict: Verdict) -> float:
    """The points earned; in a learner's own check without the decimals that a gradebook needs."""
    return round(verdict.points, 2) if verdict.disclosed else verdict.points


def _all_passed(verdict: Verdict) -> str:
    checks, drawn = len(verdict.outcomes), len(_drawn(verdict))
    passed = f"{f'all {checks} checks' if checks > 1 else 'the check'} passed"
    return f"{passed}{f', {drawn} of them {UNPREPARED}' if drawn else ''}.{_next_step(verdict)}"


def _touched(verdict: Verdict) -> list[Part]:
    """An early warning of what a hidden check will find: a correct answer that changes an argument."""
    if verdict.whole or not any("inputs" in probe.checks for probe in verdict.exercise.hidden):
        return []
    for outcome in verdict.outcomes:
        changed = inputs_difference(outcome.expected, outcome.got)
        if changed is not None:
            text = seen(verdict.exercise, replace(outcome, difference=changed))
            return [Line(f"But {text}, and a hidden check expects it unchanged.")]
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


def _visible(verdict: Explained) -> list[Part]:
    parts: list[Part] = []
    told = False
    for position, outcome in enumerate(o for o in verdict.outcomes if not o.probe.hidden):
        if position == 0:
            parts += _contract(outcome)
        if outcome.passed or told:
            parts.append(Line(outcome.probe.name, outcome.passed))
        else:
            parts += _failure(verdict.exercise, outcome)
            told = True
            if _is_to_be_worked_out(verdict, outcome):
                parts.append(_passed_in(verdict.exercise, outcome, MAX_WORKED_OUT))
    return parts


def _is_to_be_worked_out(verdict: Explained, outcome: Outcome) -> bool:
    """Whether nothing but the input of the failing check can help: then it is shown."""
    helped = verdict.diagnosis or verdict.noticed or verdict.counterexample or verdict.one_change
    shown = any(not callable(value) for value in outcome.case.arguments)
    unhelped = not (helped or outcome.probe.hide_expected)
    return unhelped and shown and not verdict.blank and outcome.difference.kind in UNEXPLAINED


def _drawn(verdict: Verdict) -> list[Outcome]:
    """The probes whose numbers were drawn for this check, so that they may be shown."""
    return [outcome for outcome in verdict.outcomes if outcome.probe.hidden and not outcome.secret]


def _drawn_parts(verdict: Verdict) -> list[Part]:
    """The results of the drawn checks; the first failure is shown with its numbers."""
    drawn = _drawn(verdict)
    failed = [outcome for outcome in drawn if not outcome.passed]
    passed = f"{len(drawn) - len(failed)} of {len(drawn)} hidden checks pass, {UNPREPARED}"
    if not failed:
        return [Line(passed, True)] if drawn else []
    if verdict.first_failure is not failed[0]:
        return [Line(passed, False)]
    parts: list[Part] = [Line(f"{passed}. {'Not these' if len(failed) > 1 else 'Not this one'}:")]
    parts += _failure(verdict.exercise, failed[0])
    # an error shows its input already
    said = isinstance(failed[0].got.result if failed[0].got is not None else None, Raised)
    unknown = failed[0].difference.kind == "gone" and not failed[0].case.arguments  # its input is not known
    if not said and not unknown:
        parts.append(_passed_in(verdict.exercise, failed[0]))
    return parts + [Line(outcome.probe.name, False) for outcome in failed[1:]]


def _contract(outcome: Outcome) -> list[Part]:
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
    shape = Line(f"shape {tuple(first.shape)}, dtype {dtype_name(first.dtype)}", right)
    return [shape, *(Line(law.text, _holds(law.holds, got)) for law in outcome.probe.laws if right)]


def _holds(law: Any, result: Any) -> bool:
    try:
        return bool(law(result))
    except Exception:  # a learner's result may be anything
        return False


def _failure(exercise: Exercise, outcome: Outcome) -> list[Part]:
    name, parted = outcome.probe.name, outcome.difference
    if outcome.got is not None and isinstance(outcome.got.result, Raised):
        return _error(exercise, outcome, outcome.got.result)
    if parted.kind == "score" and parted.expected.is_nearly_full(parted.got):
        return [Line(f"{name}: {seen(exercise, outcome)}", True)]
    quoted = parted.kind in ("value", "nan", "length") and not outcome.probe.hide_expected
    rows = _rows(outcome, parted) if quoted else None
    return [Line(f"{name}: {seen(exercise, outcome)}", False)] if rows is None else [Row(name, *rows)]


def _rows(outcome: Outcome, parted: Difference) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """The row of the result with the largest difference: expected and returned."""
    wanted, yours = outcome.expected.result, outcome.got.result
    if isinstance(wanted, list):  # a short one is shown whole; of a long one the text names the first wrong item
        texts = repr(wanted), repr(list(yours))
        return ("", texts[:1], texts[1:]) if max(map(len, texts)) <= MAX_LIST else None
    if isinstance(wanted, (tuple, torch.Tensor)) and len(parted.where) <= 1:  # the tensor, or one of several
        wanted, yours = parted.expected, parted.got
    if not isinstance(wanted, torch.Tensor) or not parted.index or wanted.shape[-1] > MAX_ROW:
        return None
    row: tuple[int, ...] = parted.index[:-1]
    if row and len(outcome.case.labels) == wanted.shape[-2]:
        label = f'row "{outcome.case.labels[row[-1]]}"'
    else:
        label = f"row {row[0] if len(row) == 1 else row}" if row else ""
    texts = [
        tensors_apart(wanted, yours, place)
        if place == parted.index
        else (written(wanted, place), written(yours, place))
        for place in ((*row, i) for i in range(wanted.shape[-1]))
    ]
    columns = [[text.rjust(max(map(len, pair))) for text in pair] for pair in texts]
    return label, tuple(column[0] for column in columns), tuple(column[1] for column in columns)


def _error(exercise: Exercise, outcome: Outcome, error: Raised) -> list[Part]:
    parts: list[Part] = [Line(f"{outcome.probe.name}: your code stopped with {said_by(error)}", False)]
    if error.line:
        parts.append(_source(error.line, error.source))
    return [*parts, _passed_in(exercise, outcome)]


def _source(number: int, text: str) -> Source:
    return Source(number, textwrap.shorten(text, MAX_SOURCE, placeholder=" ..."))


def _around(code: str, text: str) -> str:
    """A line to the end of the code that it is about, without its beginning where both are too long."""
    start = text.find(code)
    end = start + len(code)
    if start < 0 or len(text) <= MAX_SOURCE or end <= MAX_SOURCE - 4:
        return text
    begin = min(end + 4, len(text)) - MAX_SOURCE + 4
    return f"... {text[begin : begin + MAX_SOURCE - 4]}"


def _passed_in(exercise: Exercise, outcome: Outcome, most: int = MAX_INPUT) -> Line:
    """The arguments of a check, each with at most this many letters."""
    if exercise.methods:
        return Line(f"the check called {cut(_calls(outcome.case.arguments[0]), most)}", below=True)
    pairs = zip(argument_names(exercise, outcome), outcome.case.arguments, strict=False)
    constructed, result = "", outcome.got.result if outcome.got is not None else None
    if outcome.case.construct:
        made = inspect.signature(exercise.reference[exercise.names[0]]).parameters
        given = ", ".join(f"{name} = {value!r}" for name, value in zip(made, outcome.case.construct, strict=False))
        constructed = f"constructed it with {cut(given, most)}"
        if not outcome.case.arguments or (isinstance(result, Raised) and result.in_constructor):
            return Line(f"the check {constructed}", below=True)
        constructed += " and "
    if exercise.harness:  # from a dictionary the check makes, for example, the model that the answer receives
        pairs = [
            pair for pair in pairs if pair[0] == "model" or not isinstance(pair[1], dict) or _holds_tensors(pair[1])
        ]
    inputs = ", ".join(f"{name} {_input(name, value, outcome.probe.hidden, most)}" for name, value in pairs)
    return Line(f"the check {constructed}called it with {inputs or 'no arguments'}", below=True)


def _input(name: str, value: Any, drawn: bool, most: int) -> str:
    """An argument in words; a small tensor that was not shown before with its numbers."""
    if isinstance(value, torch.Tensor):
        return f"= {_nested(value, ())}" if drawn and _is_small(value) else f"of shape {tuple(value.shape)}"
    if isinstance(value, torch.Generator):
        return "= a torch.Generator"
    if callable(value):
        return "= a model" if name == "model" else "= a function"
    if isinstance(value, dict) and name == "model":
        return "= a small model"
    if isinstance(value, dict) and _holds_tensors(value):
        return f"= a dictionary of {len(value)} tensors"
    if isinstance(value, (tuple, list)) and any(isinstance(entry, torch.Tensor) for entry in value):
        return f"= {cut(_in_order(value, drawn), most)}"
    return f"= {cut(repr(value), most)}"


def _calls(steps: Sequence[dict[str, Any]]) -> str:
    """The calls of a class's methods, one after another."""
    told = []
    for step in steps:
        given = [cut(repr(value), MAX_LIST) for value in step["with"]]
        given += [f"the result of call {step['given'] + 1}"] if step["given"] is not None else []
        told.append(f"{step['by']}.{step['method']}({', '.join(given)})")
    return ", ".join(told)


def _in_order(values: Sequence[Any], drawn: bool) -> str:
    """A tuple or a list that holds tensors: a small one with its numbers, any other as its shape."""
    each = [
        repr(value)
        if not isinstance(value, torch.Tensor)
        else _nested(value, ())
        if drawn and _is_small(value)
        else f"a tensor of shape {tuple(value.shape)}"
        for value in values
    ]
    return f"({', '.join(each)})" if isinstance(values, tuple) else f"[{', '.join(each)}]"


def _holds_tensors(values: dict) -> bool:
    """Whether a dictionary holds tensors."""
    return any(isinstance(value, torch.Tensor) for value in values.values())


def _is_small(tensor: torch.Tensor) -> bool:
    return 0 < tensor.numel() <= MAX_NUMBERS


def _nested(tensor: torch.Tensor, place: tuple[int, ...]) -> str:
    """The numbers of a tensor as nested lists, rounded as everywhere in a report."""
    if len(place) == tensor.ndim:
        return written(tensor, place)
    return f"[{', '.join(_nested(tensor, (*place, index)) for index in range(tensor.shape[len(place)]))}]"


def _example(exercise: Exercise, outcome: Outcome) -> Example | None:
    """The smallest failing input in numbers; None if it is too long to read or shows no difference."""
    names = argument_names(exercise, outcome)
    wanted, got, parted = outcome.expected.result, outcome.got.result, outcome.difference
    right = f"a {wanted.type}" if isinstance(wanted, Raised) else plainly(wanted)
    yours = f"stopped with {got.type}" if isinstance(got, Raised) else plainly(got)
    if parted.kind == "inputs":
        place = int(parted.where[-1].name)
        right, yours = (f"{names[place]} = {plainly(each)} afterwards" for each in (parted.expected, parted.got))
    if parted.kind == "dtype":
        right, yours = f"{right} ({dtype_name(parted.expected)})", f"{yours} ({dtype_name(parted.got)})"
    by_dtype = parted.kind == "dtype" or isinstance(got, Raised)  # as where float32 meets float64
    digits = max(map(digits_exact, outcome.case.arguments), default=LEAST_DIGITS)
    values = [_with_dtype(value, digits) if by_dtype else plainly(value, digits) for value in outcome.case.arguments]
    arguments = tuple(zip(names, values, strict=False))
    longest = max(map(len, (right, yours, *(value for _, value in arguments))))
    if right == yours or longest > MAX_EXAMPLE or outcome.probe.hide_expected:
        return None
    return Example(arguments, right, yours)


def _with_dtype(value: Any, digits: int) -> str:
    """A small value, and its dtype where that is not the default one."""
    unusual = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float32
    return f"{plainly(value, digits)} ({dtype_name(value.dtype)})" if unusual else plainly(value, digits)


def _hint(verdict: Explained) -> str:
    """The hint if there is no more precise message: a nudge, or a reference to the shape plan."""
    first = verdict.first_failure
    if verdict.diagnosis or verdict.noticed or verdict.one_change or first is None or first.secret:
        return ""
    if verdict.blank or first.difference.kind in UNEXPLAINED:
        return f"hint 1 of 3: {verdict.exercise.hints[0]}"
    result = first.got.result if first.got is not None else None
    about_shapes = first.difference.kind == "shape" or (isinstance(result, Raised) and may_be_of_shapes(result))
    return "hint 2 of 3 is a plan of shapes" if about_shapes else ""


def _hidden(verdict: Verdict) -> list[Part]:
    if not verdict.whole:
        return [Line(_more(verdict))] if verdict.exercise.hidden_points else []
    hidden = [outcome for outcome in verdict.outcomes if outcome.secret]
    missed = [outcome.probe.name for outcome in hidden if not outcome.passed]
    if not hidden or not missed:
        return []
    passed = f"Hidden checks passed: {len(hidden) - len(missed)} of {len(hidden)}."
    return [Line(f"{passed} Not passed: {'; '.join(missed)}.")]
