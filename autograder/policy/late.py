"""What lateness costs, by rules that a course sets in nbgrader_config.py, and who was given more time.

nbgrader counts how late a work is, from the due date in the gradebook; without one nothing is late. Here its seconds
become points: first what was granted (`extensions.csv`) moves the due date, then the grace is taken off, then a
student's free days, then each day or hour that has begun costs a share.

Free days belong to a student, over all assignments, and are used up in the order of due dates. They are computed from
the gradebook each time, so that grading again, in any order, comes to the same.
"""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from nbformat import NotebookNode
from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.plugins import BasePlugin, LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Enum, Float, Int, TraitError, Type, Unicode, validate
from traitlets.config import Config

from autograder import course
from autograder.course import CourseError
from autograder.policy import arrival, course_time, receipts, times

EXTENSIONS = "classroom/extensions.csv"
UNITS = {"hour": 3600.0, "day": 86400.0}  # seconds
MOST_DAYS = 10_000  # of one extension; a number beyond is a slip of the pen
SAME = 1e-9  # points
AS_STORED = attrgetter("total_seconds_late")  # seconds of a submission in the gradebook
SETTLED = {"settled": True}  # marks the line of a log that says what was settled

Granted = dict[tuple[str, str], "Extension"]


@dataclass(frozen=True)
class Rules:
    """The late penalty.

    percent: of the points, for each `every` ("day" or "hour") that has begun. grace_minutes: not counted. most_percent:
    the maximum. slip_days: free days of a student over all assignments. of: "earned" or "possible" points.
    """

    percent: float = 0.0
    every: str = "day"
    grace_minutes: float = 0.0
    most_percent: float = 100.0
    slip_days: int = 0
    of: str = "earned"

    def days_late(self, seconds: float) -> int:
        """Days that have begun since the due date and the grace."""
        return math.ceil(max(0.0, seconds - 60 * self.grace_minutes) / UNITS["day"])

    def penalty(self, seconds: float, free_days: int, earned: float, possible: float) -> float:
        """The points deducted, at most `earned`. free_days: those that the student has left."""
        seconds -= 60 * self.grace_minutes + UNITS["day"] * min(free_days, self.days_late(seconds))
        begun = math.ceil(max(0.0, seconds) / UNITS[self.every])
        share = min(self.most_percent, self.percent * begun) / 100
        return min(earned, share * (possible if self.of == "possible" else earned))


@dataclass(frozen=True)
class Extension:
    """More time for one student: until a moment (UTC, as in the gradebook), or for some days by the course's clocks."""

    student: str
    assignment: str
    until: datetime | None = None
    days: float = 0.0

    def beyond(self, due: datetime, zone: ZoneInfo) -> timedelta:
        """The time after the due date; 0 if it is earlier."""
        until = self.until if self.until is not None else times.plus_days(due, self.days, zone)
        return max(timedelta(0), until - due)


class LateRules(LateSubmissionPlugin):
    """The rules in nbgrader_config.py. While `percent` is 0, nbgrader's own `penalty_method` decides."""

    percent = Float(Rules.percent, help="penalty for each late day or hour, in percent").tag(config=True)
    every = Enum(tuple(UNITS), Rules.every, help="unit of the penalty: day or hour; a unit that has begun counts").tag(
        config=True
    )
    grace_minutes = Float(Rules.grace_minutes, help="grace period in minutes").tag(config=True)
    most_percent = Float(Rules.most_percent, help="largest penalty, in percent").tag(config=True)
    slip_days = Int(
        Rules.slip_days, help="late days without a penalty that each student has, over all assignments"
    ).tag(config=True)
    of = Enum(("earned", "possible"), Rules.of, help="percent of which points").tag(config=True)
    extensions = Unicode(EXTENSIONS, help="a CSV file with the extensions of students").tag(config=True)

    @validate("percent", "grace_minutes", "most_percent", "slip_days")
    def _not_negative(self, proposal: dict) -> float:
        value, name = proposal["value"], proposal["trait"].name
        most = 100 if name.endswith("percent") else math.inf
        if not 0 <= value <= most:
            raise TraitError(f"{name}: expected {'0 or more' if most > 100 else 'from 0 to 100'}, got {value!r}")
        return value

    @property
    def rules(self) -> Rules:
        """The rules as plain values."""
        return Rules(self.percent, self.every, self.grace_minutes, self.most_percent, self.slip_days, self.of)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points deducted from one notebook; the parent, nbgrader's step, has its name."""
        if not self.percent:
            return super().late_submission_penalty(student_id, score, total_seconds_late)
        gradebook, assignment = self.parent.gradebook, self.parent.assignment_id
        notebook = gradebook.find_submission_notebook(self.parent.notebook_id, assignment, student_id)
        free = _free_days(gradebook, student_id, self.rules)[assignment]
        return self.rules.penalty(total_seconds_late, free, score, notebook.max_score)


class LatePenalties(AssignLatePenalties):
    """nbgrader's step for penalties, after extensions are written into the gradebook.

    Free days are shared by a student's assignments, so each grading settles the later ones again.
    """

    plugin_class = Type(LateRules, klass=BasePlugin, help="the penalty for late work").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Write extensions, deduct points, settle later assignments. Raises CourseError if the extensions cannot be
        read."""
        place = resources["nbgrader"]
        student, assignment = place["student"], place["assignment"]
        self.init_plugin()
        plugin = self.plugin_inst
        if not isinstance(plugin, LateRules):
            return super().preprocess(nb, resources)
        root, zone = course.find_root(), course_time.zone_of(self.config)
        granted = read_extensions(root / plugin.extensions, zone)
        with Gradebook(place["db_url"]) as gradebook:
            grant(gradebook, granted, student, assignment, zone)
            doubt = date(gradebook, root, student, assignment)
        if doubt:
            self.log.warning(doubt, extra=SETTLED)
        done = super().preprocess(nb, resources)
        if plugin.percent and plugin.slip_days:
            with Gradebook(place["db_url"]) as gradebook:
                for change in settle(gradebook, student, assignment, plugin.rules):
                    self.log.warning(change, extra=SETTLED)
        return done


def grant(gradebook: Gradebook, granted: Granted | None, student: str, assignment: str, zone: ZoneInfo) -> None:
    """Write a student's extension into the gradebook. Without a file of extensions nothing is changed."""
    submission = gradebook.find_submission(assignment, student)
    due = submission.assignment.duedate
    if granted is None or due is None:
        return
    extension = granted.get((student, assignment))
    submission.extension = extension.beyond(due, zone) if extension else None
    gradebook.db.commit()


def date(gradebook: Gradebook, root: Path, student: str, assignment: str) -> str:
    """Write the time from which lateness counts; returns a remark for the teacher (`policy.arrival`)."""
    submission, receipt = gradebook.find_submission(assignment, student), _receipt(root, assignment, student)
    due = submission.assignment.duedate and submission.duedate
    moment = _counted_from(submission, receipt, due)
    if moment is not None:
        submission.timestamp = moment
        gradebook.db.commit()
    arrived = receipts.moment(receipt.received) if receipt is not None else None
    return arrival.doubt(arrived, receipt.by, due) if receipt is not None and arrived is not None else ""


def cost_in_words(settings: Config) -> str:
    """What lateness costs by the course's rules, such as "10 % of its points for each day that has begun"; "" if that
    is nothing, or not decided here."""
    try:
        rules = LateRules(config=settings)
    except TraitError:  # `check` names it
        return ""
    if not rules.percent or _has_other_rules(settings):
        return ""
    whose = "the maximum" if rules.of == "possible" else "its points"
    free = " beyond your free days" if rules.slip_days else ""
    return f"{rules.percent:g} % of {whose} for each {rules.every} that has begun{free}"


class Stale(NamedTuple):
    """A penalty in the gradebook that differs from the one by the current points, dates and rules. taken, due: points,
    then and now."""

    taken: float
    due: float

    def __str__(self) -> str:
        now = f"{self.due:g} by the points, dates and rules of now"
        return f"lateness is out of date: {self.taken:g} points taken, {now}"


def stale(root: Path, settings: Config, assignment: str, gradebook: Gradebook) -> dict[str, Stale]:
    """Student -> outdated penalty, if points, a due date, an extension, a receipt or a rule were changed since.

    Writes nothing. Raises CourseError if the extensions or the settings cannot be read.
    """
    if _has_other_rules(settings):
        return {}
    plugin, zone = LateRules(config=settings), course_time.zone_of(settings)
    granted = read_extensions(root / plugin.extensions, zone)
    found = {}
    for submission in gradebook.assignment_submissions(assignment):
        taken = sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks)
        due = sum(_penalties(root, gradebook, submission, plugin, granted, zone))
        if abs(taken - due) > SAME:
            found[submission.student.id] = Stale(taken, due)
    return found


def _has_other_rules(settings: Config) -> bool:
    """Whether the course has its own step for lateness, whose result cannot be predicted."""
    named = settings.get("LatePenalties", {}).get("plugin_class", LateRules)
    return named is not LateRules and str(named).rpartition(".")[2] != LateRules.__name__


def _penalties(
    root: Path,
    gradebook: Gradebook,
    submission: SubmittedAssignment,
    plugin: LateRules,
    granted: Granted | None,
    zone: ZoneInfo,
) -> Iterator[float]:
    """The current penalty of each notebook, computed as in grading."""
    student, assignment = submission.student.id, submission.assignment.name
    free = _free_days(gradebook, student, plugin.rules, lambda row: _seconds_late(root, row, granted, zone))
    seconds = _seconds_late(root, submission, granted, zone)
    for notebook in submission.notebooks:
        if seconds <= 0:
            yield 0.0
        elif plugin.percent:
            yield plugin.rules.penalty(seconds, free[assignment], notebook.score, notebook.max_score)
        else:
            yield plugin.late_submission_penalty(student, notebook.score, seconds) or 0.0


def _seconds_late(root: Path, submission: SubmittedAssignment, granted: Granted | None, zone: ZoneInfo) -> float:
    student, assignment = submission.student.id, submission.assignment.name
    due, extension = submission.assignment.duedate, submission.extension or timedelta(0)
    if due is None:
        return 0.0
    if granted is not None:
        given = granted.get((student, assignment))
        extension = given.beyond(due, zone) if given else timedelta(0)
    moment = _counted_from(submission, _receipt(root, assignment, student), due + extension)
    return max(0.0, (moment - due - extension).total_seconds()) if moment is not None else 0.0


def _counted_from(
    submission: SubmittedAssignment, receipt: receipts.Version | None, extended: datetime | None
) -> datetime | None:
    """The time (UTC) from which this submission's lateness counts; None if its arrival is unknown."""
    if receipt is None or (moment := receipts.moment(receipt.received)) is None:
        return submission.timestamp
    return arrival.counts_as(moment, receipt.by, submission.assignment.duedate, extended)


def _receipt(root: Path, assignment: str, student: str) -> receipts.Version | None:
    try:
        return receipts.latest(root, assignment, student)
    except CourseError:  # a damaged record concerns one student, and the intake names it
        return None


def settle(gradebook: Gradebook, student: str, assignment: str, rules: Rules) -> list[str]:
    """Count the free days of the student's later assignments again; returns a line for each changed penalty."""
    changed = []
    free, past = _free_days(gradebook, student, rules), False
    for submission in _in_order(gradebook, student):
        name = submission.assignment.name
        if past:
            for notebook in submission.notebooks:
                before = notebook.late_submission_penalty or 0.0
                after = rules.penalty(submission.total_seconds_late, free[name], notebook.score, notebook.max_score)
                if abs(after - before) > SAME:
                    notebook.late_submission_penalty = after
                    changed.append(f"{name}: {after:g} points taken for lateness, not {before:g}: free days are shared")
        past = past or name == assignment
    gradebook.db.commit()
    return changed


def read_extensions(path: Path, zone: ZoneInfo) -> Granted | None:
    """(student, assignment) -> extension; None if there is no file. Raises CourseError naming line and column.

    zone: of times without one.
    The first line names the columns: `id` and `assignment`, and `until` or `days` or both; others are notes.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}.") from error
    first = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ",")
    names = [name.strip().casefold() for name in next(reader, [])]
    if not {"id", "assignment"} <= set(names) or not {"until", "days"} & set(names):
        expected = "the columns id, assignment and until or days"
        raise CourseError(f"{path}, line 1: expected {expected}, got {first.strip()!r}.")
    granted: Granted = {}
    seen: dict[tuple[str, str], int] = {}
    for cells in reader:
        row = dict(zip(names, map(str.strip, cells), strict=False))
        if any(row.values()):
            extension = _extension(row, f"{path}, line {reader.line_num}", zone)
            key = (extension.student, extension.assignment)
            if key in granted:
                raise CourseError(
                    f"{path}, line {reader.line_num}: {key[0]} has more time for {key[1]} already, by line {seen[key]}."
                )
            granted[key], seen[key] = extension, reader.line_num
    return granted


def check(root: Path, settings: Config) -> Granted:
    """The extensions, after validating settings and file. Raises CourseError for the first error."""
    given = settings.get("LateRules", {})
    unknown = sorted(set(given) - set(LateRules.class_trait_names(config=True)))
    if unknown:
        raise CourseError(
            f"{course.MARKER}: c.LateRules has no setting {', '.join(unknown)}; it has "
            f"{', '.join(sorted(vars(LateRules).keys() & set(LateRules.class_trait_names(config=True))))}."
        )
    try:
        rules = LateRules(config=settings)
    except TraitError as error:
        raise CourseError(f"{course.MARKER}: c.LateRules, {error}") from error
    return read_extensions(root / rules.extensions, course_time.zone_of(settings)) or {}


def _extension(row: dict[str, str], where: str, zone: ZoneInfo) -> Extension:
    for column in ("id", "assignment"):
        if not row.get(column):
            raise CourseError(f"{where}, column {column}: expected a name, got nothing.")
    until, days = row.get("until", ""), row.get("days", "")
    if bool(until) == bool(days):
        both = "both" if until else "neither"
        raise CourseError(f"{where}, columns until and days: expected one of them, got {both}.")
    if until:
        try:
            return Extension(row["id"], row["assignment"], until=times.parse(until, zone))
        except times.NoMoment as error:
            raise CourseError(f"{where}, column until: {error}.") from None
    try:
        number = float(days.replace(",", "."))
    except ValueError:
        number = math.nan
    if not 0 <= number < MOST_DAYS:
        raise CourseError(f"{where}, column days: expected a number of days, got {days!r}.")
    return Extension(row["id"], row["assignment"], days=number)


def _in_order(gradebook: Gradebook, student: str) -> list[SubmittedAssignment]:
    """A student's submissions with a due date, the earliest first."""
    rows = [row for row in gradebook.student_submissions(student) if row.assignment.duedate is not None]
    return sorted(rows, key=lambda row: (row.assignment.duedate, row.assignment.name))


def _free_days(
    gradebook: Gradebook, student: str, rules: Rules, seconds_late: Callable[[SubmittedAssignment], float] = AS_STORED
) -> dict[str, int]:
    """Assignment -> the free days left by those due before it."""
    left, found = rules.slip_days, defaultdict(int)
    if not left:
        return found  # without looking at a thousand students' other submissions
    for submission in _in_order(gradebook, student):
        found[submission.assignment.name] = left
        left -= min(left, rules.days_late(seconds_late(submission)))
    return found
