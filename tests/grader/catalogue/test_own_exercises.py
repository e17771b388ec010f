"""A teacher's own exercises: found next to the course, invisible to submissions, and never in the way of the course."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from graded_course import SANDBOXES, need_isolation

from autograder import catalogue, course
from autograder.__main__ import main
from autograder.catalogue import own
from autograder.inside.limits import Limits
from autograder.notebook.own_check import judge_in_notebook
from autograder.prepare.sample_class import ROOT
from autograder.sandbox import runner
from autograder.sandbox.backends import BACKENDS

WEEK = "own_week3"
RIGHT = "def row_means(x):\n    return x - x.mean(-1, keepdim=True)\n"
WRONG = "def row_means(x):\n    return x - x.mean()\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course with one own exercise, as the current folder."""
    shutil.copy(ROOT / course.MARKER, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # an entry that is changed within a second is read anew
    assert main(["new-exercise", "row-means", "--assignment", WEEK]) == 0
    return tmp_path


def checked(source: str) -> str:
    """The report of a learner's own check of row-means."""
    namespace = {"__name__": "__main__"}
    exec(f"import torch\n{source}", namespace)
    return judge_in_notebook("row-means", namespace)["text"]


def test_what_new_exercise_writes_is_an_exercise_at_once(folder):
    exercise = catalogue.find("row-means")
    assert catalogue.assignment_of(exercise).id == WEEK
    assert "✗" not in checked(RIGHT)
    assert "one mean of all numbers" in checked(WRONG)


def test_a_second_exercise_of_an_assignment_gets_the_next_number_and_its_cells_after_the_first(folder):
    assert main(["new-exercise", "row-sums", "--assignment", WEEK]) == 0
    assignment = catalogue.find_assignment(WEEK)
    assert [(each.id, each.number) for each in assignment.exercises] == [("row-means", "1"), ("row-sums", "2")]
    cells = [cell["id"] for cell in course.read_notebook(folder / "solutions" / WEEK / "week3.ipynb")["cells"]]
    kinds = ("task", "hints", "", "check")
    given = [f"{name}-{kind}".rstrip("-") for name in ("row-means", "row-sums") for kind in kinds]
    assert cells == ["week3-notebook", "week3-set-up", *given, "week3-summary-title", "week3-progress"]


def test_a_chapter_with_an_exercise_more_is_a_copy_and_the_chapter_stays_as_it_is(folder):
    (chapter,) = [each for each in catalogue.ASSIGNMENTS if each.id.startswith("03")]
    shutil.copytree(ROOT / "solutions" / chapter.id, folder / "solutions" / chapter.id)
    before = course.notebook_path(folder, "solutions", chapter).read_bytes()
    assert main(["new-exercise", "more", "--assignment", "own_similarity", "--copy-of", chapter.id]) == 0
    assert main(["release", "own_similarity"]) == 0
    assert course.notebook_path(folder, "solutions", chapter).read_bytes() == before
    copied = catalogue.find_assignment("own_similarity")
    assert copied.exercises[:-1] == chapter.exercises and copied.exercises[-1].id == "more"
    assert copied.visible_modules == chapter.visible_modules


def test_points_and_hints_are_written_once_and_release_puts_them_into_the_notebook(folder):
    change(folder, "hidden_points=2", "hidden_points=4")
    change(folder, "what should the numbers of a centered row sum to?", "sum one row.")
    assert main(["release", WEEK]) == 0
    cells = {cell["id"]: cell for cell in course.read_notebook(folder / "exercises" / WEEK / "week3.ipynb")["cells"]}
    assert cells["row-means-check"]["metadata"]["nbgrader"]["points"] == 5
    assert "5 points (1 visible, 4 hidden)" in "".join(cells["row-means-task"]["source"])
    assert "Sum one row." in "".join(cells["row-means-hints"]["source"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Row", "--assignment", WEEK], "NAME: expected small letters"),
        (["lambda", "--assignment", WEEK], "NAME: expected small letters"),
        (["attend", "--assignment", WEEK], "'attend' is the id of an exercise that exists"),
        (["row-means", "--assignment", WEEK], "'row-means' is the id of an exercise that exists"),
        (["more", "--assignment", "05_self_attention"], "--assignment: expected a name such as own_week3"),
        (["more", "--assignment", "own_x", "--copy-of", "99"], "--copy-of: expected a chapter's assignment"),
        (["more", "--assignment", WEEK, "--copy-of", "05_self_attention"], "is there already"),
    ],
)
def test_a_name_that_does_not_do_is_refused_and_nothing_is_written(folder, capsys, arguments, said):
    before = sorted(folder.rglob("*"))
    assert main(["new-exercise", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert sorted(folder.rglob("*")) == before


BROKEN = {  # what is put instead of what -> the line and the words that say so
    "a name that does not exist": (
        "Case((torch.tensor",
        "Case((torhc.tensor",
        "NameError: name 'torhc' is not defined",
    ),
    "a bracket that is missing": ("def centered", "def (centered", "SyntaxError"),
    "an exit": ("BY_HAND = ", "raise SystemExit('no')\nBY_HAND = ", "SystemExit: no"),
    "another id": ('id="row-means"', 'id="row-mean"', "id: expected 'row-means', as the file is called"),
    "an id of the course": ('"row-means"', '"attend"', "id: expected 'row-means'"),
    "no hidden question": (
        "*usual_probes(table, other=(4, 6), smallest=(5, 1), common=(2, 7)),",
        "",
        "probes: expected a hidden one, since hidden_points is 2",
    ),
    "two mistakes of one name": (
        '"means of the columns"',
        '"one mean for the whole table"',
        "mistakes: expected different names",
    ),
    "a question that looks at something unknown": (
        "BY_HAND),",
        'BY_HAND, checks="gradient"),',
        "checks of 'two rows by hand': expected",
    ),
    "two hints": ('"what should the numbers of a centered row sum to?",', "", "hints: expected a nudge"),
    "a change that does not apply": (
        '"dim=-1", "dim=0"',
        '"dim=1", "dim=0"',
        "ValueError: but: expected 'dim=1' exactly once",
    ),
    "an answer that is no Python": (
        '"x.mean()"',
        '"x.mean("',
        "ValueError: one mean for the whole table: expected Python",
    ),
    "no entry": ("EXERCISE = Exercise", "ENTRY = Exercise", "EXERCISE: expected an Exercise, got NoneType"),
}


def change(folder: Path, old: str, new: str) -> int:
    """Replace something in the entry; returns the line it stood in."""
    path = folder / "own" / WEEK / "row_means.py"
    source = path.read_text(encoding="utf-8")
    old, new = (text.replace("centered", "row") if old.startswith("def") else text for text in (old, new))
    assert old in source
    path.write_text(source.replace(old, new), encoding="utf-8")
    return source[: source.index(old)].count("\n") + 1


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_in_an_entry_is_said_with_file_and_line_and_hurts_nothing_else(folder, what, capsys):
    assert main(["new-exercise", "other", "--assignment", "own_other"]) == 0
    old, new, said = BROKEN[what]
    change(folder, old, new)
    for command in (["release", WEEK], ["try", "row-means", "answer.py"], ["grade", WEEK]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert f"own/{WEEK}/row_means.py, line " in error and said in error and "Traceback" not in error
    assert f"own/{WEEK}/row_means.py, line" in checked(RIGHT)
    assert catalogue.find("other") is not None
    assert [each.id for each in catalogue.assignments()][-1] == "own_other"
    assert judge_in_notebook("attend", {})["text"].startswith("attend")
    assert len(catalogue.troubles()) == 1


def test_what_an_entry_raises_when_it_is_asked_is_said_with_file_and_line(folder, capsys):
    line = change(folder, "return Case((normal(g, rows", "return Case((normal(g, row")
    assert main(["release", WEEK]) == 2
    assert f"own/{WEEK}/row_means.py, line {line}: NameError" in capsys.readouterr().err


def test_an_own_exercise_that_is_not_released_yet_is_a_complaint_of_the_matrix_and_not_its_end(folder, capsys):
    assert main(["doctor", "row-means"]) == 1
    said = capsys.readouterr().out
    assert "misconceptions: wrong, named" in said
    assert f"row-means: {folder / 'exercises' / WEEK / 'week3.ipynb'} is missing." in said


def test_a_mistake_that_passes_on_some_numbers_is_found_when_more_are_drawn(folder, capsys):
    (folder / "classroom").mkdir()
    (folder / "classroom" / "secret").write_bytes(b"1" * 32)
    change(
        folder,
        'RIGHT.but("x.mean(dim=-1, keepdim=True)", "x.mean()")',
        'RIGHT.but("x - means", "x - means * (x[0, 0] > -0.5)")',
    )
    assert main(["release", WEEK]) == 0
    capsys.readouterr()
    assert main(["doctor", "row-means", "--draws", "12"]) == 1
    said = capsys.readouterr().out
    (times,) = re.findall(r"row-means: 'one mean for the whole table' passes. \(On (\d+) of 12 draws.\)", said)
    assert 0 < int(times) < 12
    with pytest.raises(SystemExit):
        main(["doctor", "row-means", "--draws", "0"])
    assert "--draws: expected a whole number from 1 on, got '0'" in capsys.readouterr().err


def test_an_entry_that_changes_is_read_again_in_the_same_process(folder):
    assert catalogue.find("row-means").points == 3
    change(folder, "hidden_points=2", "hidden_points=12")
    assert catalogue.find("row-means").points == 13


def test_no_update_touches_what_is_a_teachers_own(folder):
    shutil.copy(ROOT / ".gitignore", folder)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    files = [*(folder / "own").rglob("*.py"), *(folder / "solutions" / WEEK).iterdir()]
    named = [str(path.relative_to(folder)) for path in files] + [f"exercises/{WEEK}/week3.ipynb"]
    ignored = subprocess.run(["git", "check-ignore", *named], cwd=folder, capture_output=True, text=True).stdout
    assert sorted(ignored.split()) == sorted(named)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_submission_reaches_no_entry_of_its_teachers(folder, sandbox):
    need_isolation(sandbox)
    entry = folder / "own" / WEEK / "row_means.py"
    attack = f"""
import glob, importlib, sys
found = []
sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}, "."]
own, grader = ("own", "own.{WEEK}", "own.{WEEK}.row_means"), ("catalogue.own", "prepare.starter.centered_rows")
for name in (*own, *("autograder." + each for each in grader)):
    try:
        found.append(importlib.import_module(name))
    except ImportError:
        pass
for path in ({str(entry)!r}, {str(folder / "solutions" / WEEK / "week3.ipynb")!r}):
    try:
        found.append(open(path).read())
    except OSError:
        pass
print("found:", [str(each)[:40] for each in found if any(w in str(each) for w in ("own.", "EXERCISE", "SOLUTION"))])
"""
    assignment = catalogue.find_assignment(WEEK)
    try:
        with runner.runner_for(assignment, BACKENDS[sandbox], Limits()).submission() as submission:
            ran = submission.run(attack, "cell")
    finally:
        runner.close_all()
    assert "".join(output.text for output in ran.outputs if output.output_type == "stream") == "found: []\n"


def test_learners_find_the_exercises_beside_the_notebook_and_beside_the_installed_package(folder, tmp_path):
    """Neither is in a course: only the folder tells."""
    answer = f'from autograder.check import check\nimport torch\n{WRONG}\ncheck("row-means")\n'
    beside = tmp_path / "learner" / "notebooks"
    beside.mkdir(parents=True)
    (beside / "answer.py").write_text(answer, encoding="utf-8")
    shutil.copytree(folder / "own", tmp_path / "learner" / "own")
    installed, elsewhere = tmp_path / "installed", tmp_path / "installed_here"
    shutil.copytree(ROOT / "autograder", installed / "autograder", ignore=shutil.ignore_patterns("__pycache__"))
    (installed / "transformer_ref").symlink_to(ROOT / "transformer_ref")
    shutil.copytree(folder / "own", installed / "own")
    elsewhere.mkdir()
    shutil.copy(beside / "answer.py", elsewhere)
    (folder / course.MARKER).unlink()
    shutil.rmtree(folder / "own")
    for place, package in ((beside, ROOT), (elsewhere, installed)):
        environment = os.environ | {"PYTHONPATH": str(package)}
        done = subprocess.run(
            [sys.executable, "answer.py"], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        assert "one mean of all numbers" in done.stdout, done.stderr


def test_a_package_made_of_a_course_holds_its_own_exercises(folder):
    setuptools = pytest.importorskip("setuptools")
    tomllib = pytest.importorskip("tomllib")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert f"own.{WEEK}" in setuptools.find_packages(str(folder), include=settings["packages"]["find"]["include"])


def test_a_class_is_graded_with_the_entries_of_its_own_course(folder):
    """Workers grade in folders of their own, which may be on another machine."""
    assert main(["release", WEEK]) == 0
    released = course.read_notebook(folder / "exercises" / WEEK / "week3.ipynb")
    for student, source in (("ada", RIGHT), ("bob", WRONG)):
        for cell in released["cells"]:
            if cell["id"] == "row-means":
                cell["source"] = source
        path = folder / "classroom" / "submitted" / student / WEEK / "week3.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(released), encoding="utf-8")
    grading = [sys.executable, "-m", "autograder", "grade", WEEK, "--workers", "1"]
    done = subprocess.run(grading, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "2 of 2 graded" in done.stdout, done.stderr
    log = folder / "classroom" / "verdicts" / f"{WEEK}.jsonl"
    verdicts = [json.loads(line) for line in log.read_text().splitlines()]
    assert {verdict["student"]: verdict["points"] for verdict in verdicts} == {"ada": 3, "bob": 0}
    assert own.sources(WEEK)
