"""The summary that a teacher reads when a class has been graded."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from autograder.course import CHECK_SUFFIX
from autograder.grade.changes import SAME, Change
from autograder.grade.journal import Journal
from autograder.grade.progress import duration
from autograder.judging.unusual import in_words
from autograder.policy import times

ADDED = "own-"  # how the intake names cells that are not the released ones (see `intake.rebuild`)
SHOWN = 12  # lines of one kind; the log has all


def summary(
    journal: Journal,
    worth: Mapping[str, float],
    root: Path,
    older: Mapping[str, str],
    zone: ZoneInfo,
    names: Mapping[str, str],
) -> str:
    """The text about one run.

    worth: grade id -> maximum points, in the order of the notebook. older: student -> what changed since they were
    graded. zone: the course's, in which times are shown. names: student -> name shown here.
    """
    assignment = journal.path.parent.name
    graded, failed = ([_named(event, names) for event in journal.of(kind)] for kind in ("graded", "failed"))
    lines = [_headline(assignment, journal.seconds, len(graded), len(failed))]
    lines += _block("not graded", _each_once((event["student"], event["reason"]) for event in failed), len(failed))
    if any(event.get("retry") for event in failed):
        lines.append("    the submissions are not the reason: --resume tries them again")
    unchecked = [(event["student"], *each) for event in graded for each in event.get("unchecked", ())]
    lines += _block("not checked, so look at them", [f"{who}, {what}: {reason}" for who, what, reason in unchecked])
    if graded:
        lines += _points(graded, worth)
        lines += _block("late", [_late(event, zone) for event in graded if event["late_seconds"] > 0])
        lines += _block(
            "wait for a person", [f"{e['student']}: {_counted(e['by_hand'], 'cell')}" for e in graded if e["by_hand"]]
        )
        changes = [Change(event["student"], *change) for event in graded for change in event["changes"]]
        lines += _block("grades changed by this regrade", [*map(_change, changes)])
        lines += _block("points for lateness changed by this regrade", [*map(_penalty, _other_penalties(graded))])
        lines += _block(
            "fewer points than before, after lateness", [_fewer(each) for each in graded if _is_fewer(each)]
        )
        lines += _block("notes", _each_once((event["student"], note) for event in graded for note in event["notes"]))
        lines += _block(
            "look at the code", [f"{e['student']}: {in_words(e['unusual'])}" for e in graded if e.get("unusual")]
        )
        lines += _slowest(graded)
    lines += of_older_rules(older, assignment, names)
    lines.append(f"  log: {journal.path.relative_to(root)}")
    if graded:
        lines.append(f"  next: nbgrader generate_feedback {assignment}; python -m autograder export {assignment}")
    return "\n".join(lines)


def of_withdrawn(students: Sequence[str]) -> list[str]:
    """Lines about students with points whose folder is gone; none if there are none."""
    lines = _block("have points in the gradebook, and their folder is gone", students)
    more = [
        "    put the folder back, or nbgrader db student remove takes somebody out of the gradebook with all points"
    ]
    return lines + more if lines else []


def of_older_rules(older: Mapping[str, str], assignment: str, names: Mapping[str, str]) -> list[str]:
    """Lines about students whose grades are based on older rules; none if there are none."""
    named = _each_once((names.get(student, student), why) for student, why in older.items())
    lines = _block("graded by older rules", named, len(older))
    more = [f"    python -m autograder grade {assignment} --outdated grades them again"]
    return lines + more if lines else []


def _named(event: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {**event, "student": names.get(event["student"], event["student"])}


def _headline(assignment: str, seconds: float, graded: int, failed: int) -> str:
    rate = f", {60 * graded / seconds:.0f} a minute" if graded and seconds else ""
    return f"{assignment}: {graded} of {graded + failed} graded in {duration(seconds)}{rate}"


def _points(graded: Sequence[Mapping[str, Any]], worth: Mapping[str, float]) -> list[str]:
    totals = sorted(event["total"] for event in graded)
    most = graded[0]["most"]
    full, none = sum(total >= most for total in totals), sum(total <= 0 for total in totals)
    lines = [
        f"  points of {most:g}: mean {statistics.fmean(totals):.1f}, median {statistics.median(totals):.1f}, "
        f"from {totals[0]:g} to {totals[-1]:g}; {full} earned all, {none} nothing",
        f"  {'':<24}{'of':>6}{'mean':>8}{'all':>7}{'none':>7}",
    ]
    given = [{**event["points"], **event.get("by_person", {})} for event in graded]  # as the totals count them
    for cell, possible in worth.items():
        earned = [points[cell] for points in given if points.get(cell) is not None]
        if earned:
            all_of_it, nothing = sum(points >= possible for points in earned), sum(points <= 0 for points in earned)
            name = cell.removesuffix(CHECK_SUFFIX)
            lines.append(
                f"  {name:<24}{possible:>6g}{statistics.fmean(earned):>8.2f}"
                f"{all_of_it / len(earned):>7.0%}{nothing / len(earned):>7.0%}"
            )
    return lines


def _each_once(said: Iterable[tuple[str, str]]) -> list[str]:
    """Each text once, with its students. said: (student, text)."""
    concerned: dict[str, list[str]] = {}
    for student, text in said:
        concerned.setdefault(text, []).append(student)
    return [f"{_listed(students)}: {text}" for text, students in concerned.items()]


def _slowest(graded: Sequence[Mapping[str, Any]]) -> list[str]:
    slow = max(graded, key=lambda event: event["seconds"])
    cell, seconds = max(slow["cells"], key=lambda timed: timed[1], default=("", 0.0))
    cell = "a cell that was added or changed" if cell.startswith(ADDED) else cell
    where = f", {seconds:.1f} s of it in {cell}" if cell else ""
    middle = statistics.median(event["seconds"] for event in graded)
    slowest = f"the slowest {slow['seconds']:.1f} s: {slow['student']}{where}"
    return [f"  a submission took {middle:.2f} s (median), {slowest}"]


def _listed(students: Sequence[str]) -> str:
    return ", ".join(students) if len(students) <= 3 else f"{students[0]} and {len(students) - 1} others"


def _late(event: Mapping[str, Any], zone: ZoneInfo) -> str:
    penalty = f", {event['penalty']:g} points taken" if event["penalty"] else ""
    moments = [event.get(name) for name in ("handed_in", "due")]
    if all(moments):
        came, due = (times.short(datetime.fromisoformat(moment), zone) for moment in moments)
        penalty += f"; handed in {came}, due {due}"
    return f"{event['student']}: {duration(event['late_seconds'])}{penalty}"


def _other_penalties(graded: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [event for event in graded if abs(event.get("penalty_before", event["penalty"]) - event["penalty"]) > SAME]


def _is_fewer(event: Mapping[str, Any]) -> bool:
    before = event.get("score_before")
    return before is not None and event["score"] < before - SAME


def _fewer(event: Mapping[str, Any]) -> str:
    late = f", {event['penalty']:g} of them lost to lateness" if event["penalty"] else ""
    return f"{event['student']}: {event['score_before']:g} -> {event['score']:g} points{late}"


def _penalty(event: Mapping[str, Any]) -> str:
    before, after = event["penalty_before"], event["penalty"]
    what = f"{before - after:g} come back" if after < before else f"{after - before:g} more are taken"
    return f"{event['student']}: {before:g} -> {after:g} points taken, {what}"


def _change(change: Change) -> str:
    before, after = ("none" if points is None else f"{points:g}" for points in (change.before, change.after))
    return f"{change.student}, {change.cell.removesuffix(CHECK_SUFFIX)}: {before} -> {after} ({change.why})"


def _block(title: str, lines: Sequence[str], count: int | None = None) -> list[str]:
    """A heading with the number of items, and the lines; count: the number if one line is about several."""
    if not lines:
        return []
    rest = [f"    and {len(lines) - SHOWN} more, in the log"] if len(lines) > SHOWN else []
    return [f"  {title}: {len(lines) if count is None else count}", *(f"    {line}" for line in lines[:SHOWN]), *rest]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
