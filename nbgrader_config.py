"""How nbgrader finds and grades the course. Every nbgrader command is run from this folder."""

from pathlib import Path

import nbgrader

import autograder
from autograder.grade import db_retry
from autograder.intake import take_in
from autograder.platforms import exchange
from autograder.policy import course_time
from autograder.reports import fresh

c = get_config()  # noqa: F821 (nbgrader provides it)
root = Path(__file__).resolve().parent
classroom = root / "classroom"
classroom.mkdir(exist_ok=True)

# Where things are: solutions/ is edited, exercises/ is handed out, everything else stays in classroom/.
c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = "attention-by-hand"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "classroom/submitted"
c.CourseDirectory.autograded_directory = "classroom/autograded"
c.CourseDirectory.feedback_directory = "classroom/feedback"
c.CourseDirectory.solution_directory = "classroom/solution"
c.CourseDirectory.source_with_tests_directory = "classroom/source_with_tests"
c.CourseDirectory.db_url = f"sqlite:///{classroom / 'gradebook.db'}"
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__"]

# The time zone of your class, such as "Europe/Berlin" or "America/Los_Angeles". Due dates, extensions and what a
# platform writes are read in it, and every time is shown in it and in UTC. "": ATTENTION_BY_HAND_ZONE, else UTC.
c.CourseTime.zone = ""
course_time.install(c)

# Collecting a zip of Canvas or Moodle: whose a file is, its folder says and never a name that a student chose. Another
# system's names need a pattern here, c.FileNameCollectorPlugin.named_regexp, which nbgrader then sorts by.
c.ZipCollectApp.downloaded_directory = "classroom/downloaded"
c.ZipCollectApp.extractor_plugin = "autograder.platforms.collect.Extractor"

db_retry.install()  # another program may hold the gradebook for a while

c.ExportPlugin.to = str(classroom / "grades.csv")  # `nbgrader export`; git ignores what is in classroom/

# Releasing: exercises/ is committed, so it is written over; that is safe because it is generated.
c.GenerateAssignment.force = True
todo = "# TODO: write your answer here and remove the next line\nraise NotImplementedError"
c.ClearSolutions.code_stub = {"python": todo}

# What check() asks in the notebooks that you hand out. True: everything; hidden checks on numbers that it draws then
# and there, and it says all about them. False: visible checks; the hidden ones wait until you grade. Grading is the
# same in both cases. After a change: make release.
c.HandOut.whole_checks = True
c.HandOut.course = ""  # for notebooks in Colab: where pip finds this course, such as "git+https://..."
c.GenerateAssignment.preprocessors = [
    "autograder.prepare.hand_out.HandOut",
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.InstantiateTests",
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.ClearSolutions",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# What was handed in is taken in first: rebuilt from the released notebook, whatever its name or state.
take_in.install()
exchange.install()  # on the way back everyone finds their page, whatever they called their notebook
c.Intake.trust_timestamps = False  # True where nbgrader's exchange or ngshare collects, which write timestamp.txt

# Grading: the judge outside the kernel decides, and no default of nbgrader's may cost honest work its points.
c.Autograde.autograde_preprocessors = [
    "autograder.grade.execute.JudgedExecute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbgrader.preprocessors.LimitOutput",
    "autograder.grade.execute.SaveJudgedGrades",
    "autograder.policy.late.LatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# A submission runs in the first sandbox that works here: bubblewrap, landlock, docker, podman. "none" would trust every
# submission with all of your rights. `cell_seconds` and `notebook_seconds` (of processor time) can be set here too.
c.JudgedExecute.sandbox = ""

# Late work, counted from the due date in the gradebook; without one nothing is late. As it stands nothing is taken off.
# `classroom/extensions.csv` gives single students more time; its columns are id, assignment, and until (a time in the
# zone above, or with one of its own: 2026-03-04 18:00 +01:00) or days.
c.LateRules.percent = 0  # for each day that has begun; c.LateRules.every = "hour" counts hours
c.LateRules.of = "earned"  # or "possible": percent of what the work earned, or of what it could have earned
c.LateRules.grace_minutes = 0  # that are not counted
c.LateRules.most_percent = 100  # never more than this
c.LateRules.slip_days = 0  # free days of each student over all assignments, used up in the order of due dates

# Feedback: a page of ours that shows the judge's words and a teacher's, and asks nothing of the network.
c.GenerateFeedback.exporter_class = "autograder.reports.feedback.FeedbackPage"
fresh.install()  # a page is written again when its student's points or comments have changed
# Where your class reads the book, such as "https://attention.uni.example"; make release then links the notebooks to it.
# "" is the course's own setting: ATTENTION_BY_HAND_BOOK, or Book in pyproject.toml, else where `make serve` puts it.
c.FeedbackPage.book = ""

# Formgrader: what it shows of a learner's outputs runs no scripts, and its formulas ask nothing of the network.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = {
    "markdown2html": "autograder.reports.sanitize.markdown2html",
    "clean_html": "autograder.reports.sanitize.clean_html",
}
ours, theirs = Path(autograder.__file__).parent, Path(nbgrader.__file__).parent
templates = [ours / "reports" / "pages", theirs / "server_extensions" / "formgrader" / "templates"]
c.HTMLExporter.extra_template_basedirs = [str(path) for path in templates]
