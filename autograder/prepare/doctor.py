"""Is this installation fit for grading? `python -m autograder doctor` looks and says what to do about what is not.

With --matrix, or with the names of exercises, it also tries every answer that the catalogue knows.
"""

import argparse
import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from packaging.utils import canonicalize_name
from sqlalchemy.engine import make_url
from traitlets.config import Config

from autograder import catalogue, course
from autograder.course import CourseError
from autograder.grade.execute import JudgedExecute
from autograder.inside.limits import Limits
from autograder.judging.observe import EndpointGone
from autograder.platforms import class_list
from autograder.policy import course_time, deadlines, late, points, times
from autograder.prepare.hand_out import HandOut, asks_everything
from autograder.prepare.matrix import print_matrix
from autograder.prepare.release import refuse_other_cells
from autograder.reports import fresh, results
from autograder.sandbox import backends, hiding, runner
from transformer_ref.device import choose_device
from transformer_ref.faster import measure_machine
from transformer_ref.processors import processors_in_words

LOCK = Path(__file__).resolve().parents[2] / "requirements.txt"
MATTERS = ("torch", "nbgrader", "nbclient", "nbformat", "ipykernel", "jupyterlab", "sqlalchemy")
SAVES = {"nbgrader.preprocessors.SaveAutoGrades", "autograder.grade.execute.SaveJudgedGrades"}
JUDGES = "autograder.grade.execute.JudgedExecute"


@dataclass(frozen=True)
class Finding:
    """One result of the examination. `remedy`: what to do, empty if all is well; `fatal`: nothing can be graded."""

    about: str
    seen: str
    remedy: str = ""
    fatal: bool = True

    def __str__(self) -> str:
        mark = "✓" if not self.remedy else "✗" if self.fatal else "!"
        return f"{mark} {self.about}: {self.seen}" + (f"\n    {self.remedy}" if self.remedy else "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "exercises", nargs="*", metavar="EXERCISE", help="only try the known answers of these exercises"
    )
    parser.add_argument("--matrix", action="store_true", help="also try all known answers; takes some minutes")
    parser.add_argument(
        "--draws",
        type=_draws,
        default=1,
        metavar="N",
        help="try each known answer on N draws of hidden inputs instead of 1",
    )


def _draws(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """Examine the installation, or try known answers, or both; 1 if something is wrong."""
    if chosen.exercises:
        return print_matrix(chosen.exercises, chosen.draws)
    root, findings = course.find_root(), []
    for finding in examine(root):
        print(finding, flush=True)
        findings.append(finding)
    wrong = [finding for finding in findings if finding.remedy and finding.fatal]
    if not wrong:  # else the cell would fail for a reason that is above
        findings.append(try_sandbox(results.configuration(root)))
        print(findings[-1], flush=True)
    wrong = [finding for finding in findings if finding.remedy and finding.fatal]
    print("\nThis installation can grade." if not wrong else f"\n{len(wrong)} to put right before grading.")
    if not chosen.matrix:
        print("Are known answers judged as they should be? doctor --matrix tries them all.")
        return 1 if wrong else 0
    print()
    return max(print_matrix([], chosen.draws), 1 if wrong else 0)


def examine(root: Path) -> Iterator[Finding]:
    """All findings, in the order in which they matter for grading."""
    yield _versions()
    yield _kernel()
    yield from _machine()
    yield from _shadows(root)
    yield _released(root)
    for trouble in catalogue.troubles():
        yield Finding("own exercises", trouble, "Put it right; all other assignments can be graded.", fatal=False)
    try:
        settings = results.configuration(root)
    except Exception as error:  # the file is Python, and can fail in every way
        remedy = "Put the file right; nbgrader reads it before every command."
        yield Finding(course.MARKER, f"{type(error).__name__}: {error}", remedy)
        return
    yield from _configuration(settings)
    yield from _handed_out(root, settings)
    yield from _sandbox(settings)
    yield _secret(root)
    yield _gradebook(root)
    yield _points(root)
    yield from _cells(root)
    yield _ids(root)
    yield from _due_dates(root, settings)
    yield _lateness(root, settings)


def _versions() -> Finding:
    about = "packages"
    if not LOCK.is_file():
        return Finding(about, f"there is no {LOCK.name} next to the package, so there is nothing to compare with")
    lines = (line.partition("==") for line in LOCK.read_text(encoding="utf-8").splitlines())
    locked = {canonicalize_name(name): version for name, sign, version in lines if sign}
    other, missing = [], []
    for name in MATTERS:
        try:
            version = metadata.version(name).partition("+")[0]  # torch's builds differ in what follows
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if version != locked.get(name):
            other.append(f"{name} is {version}, tested with {locked.get(name)}")
    if missing:
        return Finding(about, f"missing: {', '.join(missing)}", "make setup")
    if other:
        return Finding(about, "; ".join(other), "make setup installs the versions that were tested", fatal=False)
    return Finding(about, ", ".join(f"{name} {locked[name]}" for name in MATTERS))


def _kernel() -> Finding:
    about = "kernel python3"
    remedy = f"{sys.executable} -m ipykernel install --sys-prefix"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return Finding(about, "there is none, so no notebook opens in Jupyter", remedy)
    program = spec.argv[0]
    if os.path.isabs(program) and Path(program).parent.resolve() != Path(sys.executable).parent.resolve():
        seen = f"it starts {program}, another Python than this one ({sys.executable})"
        return Finding(about, f"{seen}; learners would not find transformer_ref", remedy, fatal=False)
    return Finding(about, spec.resource_dir)


def _machine() -> Iterator[Finding]:
    """The choices measured on this machine, which decide how long training and grading take."""
    about, device = "machine", choose_device("auto")
    yield Finding(about, processors_in_words())
    try:
        for choice in measure_machine(device):
            yield Finding(about, str(choice))
    except ValueError as error:
        remedy = "Set it right, or unset it; until then no command of transformer_ref runs."
        yield Finding(about, str(error), remedy, fatal=False)


def _shadows(root: Path) -> Iterator[Finding]:
    about = "names"
    for package in ("torch", "nbgrader", "nbformat"):
        found = find_spec(package)
        origin = Path(found.origin).resolve() if found and found.origin else None
        if origin is not None and root in origin.parents and "site-packages" not in origin.parts:
            yield Finding(about, f"`import {package}` finds {origin}", "Rename that file; it hides the package.")
            return
    taken = set(sys.stdlib_module_names) | set(metadata.packages_distributions())
    for folder in ("", "solutions/*/", "exercises/*/"):
        for path in sorted(root.glob(f"{folder}*.py")):
            if path.stem in taken and path.name != course.MARKER:
                yield Finding(
                    about, f"{path} bears the name of a package", "Rename it: next to a notebook it comes first."
                )
                return
    yield Finding(about, "no file of the course hides a package")


def _released(root: Path) -> Finding:
    about = "exercises"
    names = catalogue.assignments()
    missing = [each.id for each in names if not course.notebook_path(root, "exercises", each).is_file()]
    if len(missing) == len(names):
        return Finding(about, f"none of the {len(names)} assignments is in exercises/", "make release")
    if missing:
        seen = f"{len(names) - len(missing)} of {len(names)} assignments are in exercises/; not {', '.join(missing)}"
        return Finding(about, seen, "make release, if you mean to hand them out", fatal=False)
    return Finding(about, f"{len(names)} assignments released")


def _handed_out(root: Path, settings: Config) -> Iterator[Finding]:
    """Released notebooks whose checks do not agree with the settings."""
    whole = settings.HandOut.get("whole_checks", HandOut.whole_checks.default_value)
    other = []
    for assignment in catalogue.assignments():
        path = course.notebook_path(root, "exercises", assignment)
        with contextlib.suppress(CourseError):
            if path.is_file() and asks_everything(course.read_notebook(path)) != whole:
                other.append(assignment.id)
    if other:
        ask = "hidden ones wait" if whole else "hidden ones run at once"
        seen = f"c.HandOut.whole_checks is {whole}, but {ask} in exercises/: {', '.join(other)}"
        yield Finding("checks", seen, "make release writes the setting into the notebooks.", fatal=False)


def _points(root: Path) -> Finding:
    """Whether released notebooks and gradebook have the points of the catalogue."""
    about, wrong = "points", []
    worth = _worth_in_gradebook(root)
    for assignment in catalogue.assignments():
        path = course.notebook_path(root, "exercises", assignment)
        try:
            if path.is_file():
                stated = points.disagreements(course.read_notebook(path), assignment)
                wrong += [f"{assignment.id}, {change}" for change in stated]
            points.refuse_worth(worth.get(assignment.id, {}), assignment)
        except CourseError as error:
            wrong.append(str(error))
    if wrong:
        return Finding(about, "; ".join(wrong), "make release writes the catalogue's points everywhere.")
    return Finding(about, "notebooks, gradebook and catalogue count alike")


def _worth_in_gradebook(root: Path) -> dict[str, dict[str, float]]:
    """Assignment -> grade id -> maximum points; empty without a readable gradebook."""
    places = results.directory(root)
    if not results.has_gradebook(places):
        return {}
    try:
        with results.gradebook_of(places) as gradebook:
            return {
                assignment.name: {
                    cell.name: cell.max_score for notebook in assignment.notebooks for cell in notebook.grade_cells
                }
                for assignment in gradebook.assignments
            }
    except CourseError:  # what is wrong with it is a finding of its own
        return {}


def _cells(root: Path) -> Iterator[Finding]:
    """Notebooks that can no longer be released, since the class has handed in the released cells."""
    for assignment in catalogue.assignments():
        try:
            refuse_other_cells(root, assignment)
        except CourseError as error:
            yield Finding("cells", str(error), "Until then `release` refuses.", fatal=False)


def _ids(root: Path) -> Finding:
    """Ids that are invalid: as the name of a folder, or because of a second, similar id."""
    about = "students"
    try:
        known = {student.id for student in results.read_roster(root)}
    except CourseError as error:
        return Finding(about, str(error), "See the gradebook, above.")
    submitted = root / results.directory(root).submitted_directory
    folders = {path.name for path in submitted.iterdir() if path.is_dir()} if submitted.is_dir() else set()
    everyone = known | folders
    wrong = [reason for name in sorted(everyone) if (reason := class_list.why_not(name))]
    wrong += class_list.only_in_case(everyone, everyone)
    if wrong:
        remedy = "Give them other ids: what they hand in may not be graded, or as somebody else's."
        return Finding(about, "; ".join(wrong), remedy, fatal=False)
    return Finding(about, f"{len(known)} on the roster, {len(folders)} with a folder")


def _due_dates(root: Path, settings: Config) -> Iterator[Finding]:
    """The time zone, and each assignment's due date in it."""
    about = "due dates"
    try:
        zone = course_time.zone_of(settings)
    except CourseError as error:
        yield Finding("time zone", str(error), "Until then nothing is graded.")
        return
    places = results.directory(root)
    if not results.has_gradebook(places):
        yield Finding(about, f"no gradebook yet; times are read and shown in {zone.key}")
        return
    try:
        with results.gradebook_of(places) as gradebook:
            due = sorted((each.duedate, each.name) for each in gradebook.assignments if each.duedate is not None)
    except CourseError:  # what is wrong with it is a finding of its own
        return
    said = {each.id: deadlines.read(course.notebook_path(root, "exercises", each)) for each in catalogue.assignments()}
    whole = {name: moment.replace(microsecond=0) for moment, name in due if name in said}
    other = [name for name, moment in whole.items() if (said[name] or (None,))[0] != moment]
    if other:
        seen = f"the notebooks in exercises/ do not say so: {', '.join(other)}"
        yield Finding(
            about,
            seen,
            "nbgrader generate_assignment, or make release, writes the date into the notebook.",
            fatal=False,
        )
    lines = [f"{name} {times.short(moment, zone)}" for moment, name in due]
    yield Finding(about, f"in {zone.key}: {', '.join(lines)}" if lines else f"none, so nothing is late (in {zone.key})")
    if twice := [name for moment, name in due if times.is_twice(moment, zone)]:
        seen = f"{', '.join(twice)}: clocks show this time twice in that night, and the one named above counts"
        yield Finding(about, seen, "An hour earlier or later is clearer.", fatal=False)
    if zone.key == "UTC" and lines:
        remedy = 'c.CourseTime.zone = "Europe/Berlin", or where your class is'
        yield Finding("time zone", "UTC, since no other is set: is that what your class reads?", remedy, fatal=False)


def _lateness(root: Path, settings: Config) -> Finding:
    about = "late work"
    try:
        granted = late.check(root, settings)
    except CourseError as error:
        return Finding(about, str(error), "Put it right; until then nothing is graded.")
    percent, every = (settings.LateRules.get(name, getattr(late.Rules, name)) for name in ("percent", "every"))
    costs = f"{percent:g} percent for each {every}" if percent else "nothing is taken off by our rules"
    nobody, nothing = _unknown(root, granted)
    if nobody or nothing:
        lists = {"student": nobody, "assignment": nothing}
        seen = [f"no {kind} {', '.join(names)}" for kind, names in lists.items() if names]
        where = root / settings.LateRules.get("extensions", late.EXTENSIONS)
        remedy = f"Is it written as in the gradebook? See {where}."
        return Finding(about, f"{costs}; the gradebook knows {' and '.join(seen)} to extend", remedy, fatal=False)
    return Finding(about, f"{costs}; {len(granted)} extensions")


def _unknown(root: Path, granted: late.Granted) -> tuple[list[str], list[str]]:
    """Students and assignments with an extension that are not in the gradebook; none without a gradebook."""
    places = results.directory(root)
    if not granted or not results.has_gradebook(places):
        return [], []
    try:
        with results.gradebook_of(places) as gradebook:
            students, assignments = {s.id for s in gradebook.students}, {a.name for a in gradebook.assignments}
    except CourseError:
        return [], []
    given = list(granted)
    return sorted({who for who, _ in given} - students), sorted({what for _, what in given} - assignments)


def _configuration(settings: Config) -> Iterator[Finding]:
    about = course.MARKER
    steps = [fresh.name_of(step) for step in settings.Autograde.get("autograde_preprocessors", [])]
    if JUDGES not in steps or SAVES.isdisjoint(steps[steps.index(JUDGES) :]):
        seen = "c.Autograde.autograde_preprocessors does not name our JudgedExecute before SaveAutoGrades"
        yield Finding(about, f"{seen}: notebooks would grade themselves", f'Put "{JUDGES}" first in that list.')
    elif fresh.name_of(settings.GenerateFeedback.get("exporter_class", "")) != fresh.OURS:
        remedy = f'c.GenerateFeedback.exporter_class = "{fresh.OURS}"'
        seen = "feedback is nbgrader's page, which shows whatever a notebook printed, hidden inputs too"
        yield Finding(about, seen, remedy, fatal=False)
    else:
        yield Finding(about, "the judge decides, and feedback shows its words")
    limit = settings.JudgedExecute.get("cell_seconds", JudgedExecute.cell_seconds.default_value)
    slowest = max(catalogue.exercises().values(), key=lambda exercise: exercise.seconds)
    if limit < slowest.seconds:
        seen = f"a cell may use {limit:g} s, but {slowest.id} may take {slowest.seconds:g} s"
        yield Finding("time limits", seen, f"c.JudgedExecute.cell_seconds = {slowest.seconds:g} or more", fatal=False)
    else:
        yield Finding("time limits", f"{limit:g} s of processor time a cell")


def _sandbox(settings: Config) -> Iterator[Finding]:
    about = "sandbox"
    wanted = settings.JudgedExecute.get("sandbox", "")
    try:
        private = hiding.places_of_course(settings)
        chosen = backends.choose(wanted, private)
    except hiding.NotHiddenError as error:
        yield Finding("hidden", "something cannot be hidden from submissions", str(error))
        return
    except backends.SandboxError as error:
        yield Finding(about, " ".join(str(error).split()), "apt install bubblewrap, and see the teacher's page.")
        return
    if chosen.name == backends.TRUST:
        seen = "none: students' code runs with all of your rights and can change any grade"
        yield Finding(about, seen, f"Take c.JudgedExecute.sandbox and {backends.SANDBOX} away.", fatal=False)
        return
    yield Finding(about, f"{chosen.name} isolates submissions here")
    if chosen.hides:
        elsewhere = [path for path in private[1:] if not f"{path}/".startswith(f"{private[0]}/")]
        yield Finding("hidden", f"from submissions: {', '.join([private[0], *elsewhere])}, temporary folders")


def try_sandbox(settings: Config) -> Finding:
    """Run a cell in the sandbox that grading would use, with the same hidden folders."""
    about = "a cell"
    try:
        private = hiding.places_of_course(settings)
        chosen = backends.choose(settings.JudgedExecute.get("sandbox", ""), private)
        with runner.runner_for(None, chosen, Limits(), private).submission() as submission:
            error = submission.run("import torch; assert torch.ones(2).sum() == 2").error
    except (CourseError, EndpointGone) as gone:
        remedy = "No submission can run here either, so nobody would be graded. Put right what is named, and try again."
        return Finding(about, " ".join(str(gone).split()), remedy)
    finally:
        runner.close_all()
    if error is not None:
        return Finding(about, f"stopped in the sandbox: {error}", "Submissions would stop in the same way.")
    return Finding(about, "ran in the sandbox as a submission's would")


def _secret(root: Path) -> Finding:
    about, path = "secret", root / "classroom" / "secret"
    if not path.exists():
        if judged := course.judged_assignments(root):
            seen = f"{path} is gone, although submissions were judged with it: {', '.join(judged)}"
            remedy = "Put it back from your copy; otherwise a regrade uses other hidden inputs than before."
            return Finding(about, seen, remedy, fatal=False)
        return Finding(about, "none yet; it is made when the first submission is graded")
    mode, size = stat.S_IMODE(path.stat().st_mode), path.stat().st_size
    if mode & 0o077:
        return Finding(about, f"{path} can be read by others (mode {mode:o})", f"chmod 600 {path}")
    if size < 32:
        remedy = "Delete it; a new one is made. A regrade of earlier work then sees other hidden inputs."
        return Finding(about, f"{path} holds {size} bytes: expected 32", remedy)
    return Finding(about, "kept, and readable only by you")


def _gradebook(root: Path) -> Finding:
    about = "gradebook"
    places = results.directory(root)
    url = make_url(places.db_url)
    where = url.render_as_string(hide_password=True)
    if not results.has_gradebook(places):
        return Finding(about, "none yet; nbgrader makes it with the first assignment")
    if url.drivername.startswith("sqlite") and not os.access(url.database, os.W_OK):
        return Finding(about, f"{url.database} cannot be written", "Give yourself the right to write it.")
    try:
        with results.gradebook_of(places) as gradebook:
            students, assignments = len(gradebook.students), len(gradebook.assignments)
    except CourseError as error:
        return Finding(about, str(error), "Is it running, is its driver installed, is nbgrader's version the same?")
    return Finding(about, f"{where}: {students} students, {assignments} assignments")
