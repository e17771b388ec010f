"""Whatever lies in a submission's folder, its student gets a grade and a reason, and nobody else loses one."""

import dataclasses
import json
import os
import random
import shutil
from pathlib import Path

import broken_class
import damage
import graded_class
import nbformat
import pytest
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from autograder.course import MARKER, CourseError
from autograder.intake import take_in, untrusted_files
from autograder.intake.rebuild import NOTE_ID
from autograder.policy import receipts
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

NAME = f"{ASSIGNMENT.notebook}.ipynb"
RELEASED = take_in.released_notebook(sample_class.ROOT, ASSIGNMENT)
BLANK = {cell["id"]: cell["source"] for cell in RELEASED.cells}
# The kinds that are graded too; all of them are rebuilt in test_rebuild.
TO_THE_END = sorted({*sorted(damage.HONEST)[::3], *(kind for kind in damage.HONEST if kind.startswith("of_"))})
POINTS = {exercise.id: exercise.points for exercise in ASSIGNMENT.exercises}


@pytest.fixture
def course(tmp_path):
    sample_class.lay_out(tmp_path)
    return tmp_path


def hand_in(course: Path, student: str = "ada") -> Path:
    return sample_class.submit(course, student, sample_class.solved())


def taken(path: Path) -> take_in.TakenIn:
    return take_in.take_in(RELEASED, ASSIGNMENT, path.parent)


def is_solved(work: take_in.TakenIn) -> bool:
    sources = {cell.id: cell.source for cell in work.notebook.cells}
    return all(sources[name] == source for name, source in sample_class.solved().items())


def take_in_class(course: Path, students: str = "*", trust: bool = False) -> list[str]:
    said: list[str] = []
    settings = Config({"Intake": {"trust_timestamps": trust}})
    coursedir = CourseDirectory(root=str(course), config=settings, assignment_id=ASSIGNMENT.id, student_id=students)
    coursedir.submitted_directory = "classroom/submitted"
    taken_in = take_in.take_in_class(coursedir, said.append)
    assert coursedir.submitted_directory == "classroom/submitted"
    assert taken_in.coursedir.submitted_directory == take_in.RECEIVED
    return said + [f"{student}: not graded: {failure}" for student, failure in taken_in.failures.items()]


def received(course: Path, student: str = "ada") -> Path:
    return course / take_in.RECEIVED / student / ASSIGNMENT.id


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Files and folders


@pytest.mark.parametrize("name", ["my homework.IPYNB", "Attention.ipynb", "sub/05.ipynb.txt"])
def test_a_notebook_of_another_name_is_graded_and_its_name_told(course, name):
    path = hand_in(course)
    (path.parent / name).parent.mkdir(exist_ok=True)
    path.rename(path.parent / name)
    work = taken(path)
    assert is_solved(work)
    assert work.reasons == (f"The notebook should be named `{NAME}`; `{name}` was graded.",)


def test_of_several_notebooks_the_right_name_wins_unless_it_is_blank(course):
    path = hand_in(course)
    second = path.with_name("draft.ipynb")
    second.write_bytes(path.read_bytes())
    assert taken(path).reasons == ("These notebooks were not graded: `draft.ipynb`.",)
    path.write_text(nbformat.writes(RELEASED), encoding="utf-8")
    work = taken(path)
    assert is_solved(work)
    assert work.reasons[0] == f"The notebook should be named `{NAME}`; `draft.ipynb` was graded."


def test_an_empty_folder_and_a_folder_without_a_notebook_say_what_is_there(course):
    path = hand_in(course)
    path.unlink()
    assert taken(path).reasons == ("There was no notebook in what you handed in. The folder was empty.",)
    (path.parent / "self_attention.py").touch()
    (path.parent / "z<b>`x`.txt").touch()
    (reason,) = taken(path).reasons
    assert reason.endswith("There is `self_attention.py`, `z?b??x?.txt`.")


def test_a_folder_of_another_case_is_found_unless_a_better_one_is_there(course):
    path = hand_in(course)
    path.parent.rename(path.parent.with_name("05-Self Attention"))
    submitted = course / "classroom" / "submitted"
    folder = take_in.submissions(submitted, ASSIGNMENT)["ada"]
    assert folder.name == "05-Self Attention"
    assert take_in.take_in(RELEASED, ASSIGNMENT, folder).reasons == ("The folder was named `05-Self Attention`.",)
    (submitted / "ada" / ASSIGNMENT.id).mkdir()  # empty: no better
    assert take_in.submissions(submitted, ASSIGNMENT)["ada"].name == "05-Self Attention"
    hand_in(course)
    assert take_in.submissions(submitted, ASSIGNMENT)["ada"].name == ASSIGNMENT.id


def test_links_and_pipes_are_not_followed(course):
    path = hand_in(course)
    other = hand_in(course, "bob")
    path.unlink()
    path.symlink_to(other)
    os.mkfifo(path.with_name("pipe.ipynb"))
    assert not is_solved(taken(path))
    (course / "classroom" / "submitted" / "eve").mkdir()
    (course / "classroom" / "submitted" / "eve" / ASSIGNMENT.id).symlink_to(other.parent)
    assert set(take_in.submissions(course / "classroom" / "submitted", ASSIGNMENT)) == {"ada", "bob"}


def test_of_a_huge_file_both_ends_are_read(course):
    path = hand_in(course)
    data = path.read_bytes()
    assert untrusted_files.content_of(path, 1000) == data[:501] + data[-500:]


def test_an_error_of_ours_is_no_grade_for_that_student_and_no_trouble_for_others(course, monkeypatch, capsys):
    take = take_in._take_in

    def fail(released, assignment, folder):
        if folder.parent.name == "ada":
            raise RuntimeError("ours")
        return take(released, assignment, folder)

    path = hand_in(course)
    hand_in(course, "bob")
    monkeypatch.setattr(take_in, "_take_in", fail)
    work = taken(path)
    assert work.reasons == () and work.failure == "taking it in failed with RuntimeError: ours"
    assert take_in_class(course) == ["ada: not graded: taking it in failed with RuntimeError: ours"]
    assert not received(course).exists() and received(course, "bob").exists()
    assert "RuntimeError: ours" in capsys.readouterr().err


# What nbgrader is given


def test_only_the_notebook_and_our_time_are_received(course):
    path = hand_in(course)
    for name in ("torch.py", "data.csv", "deep/er.txt"):
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_text("x", encoding="utf-8")
    take_in_class(course)
    assert {item.name for item in received(course).rglob("*")} == {NAME, receipts.STAMP}


def test_files_that_the_assignment_lists_are_received(course):
    path = hand_in(course)
    path.with_name("weights.json").write_text("{}", encoding="utf-8")
    listed = dataclasses.replace(ASSIGNMENT, files=("weights.json",))
    assert take_in.take_in(RELEASED, listed, path.parent).files == (path.with_name("weights.json"),)


def test_submitted_work_is_neither_changed_nor_lost(course):
    path = hand_in(course)
    path.write_bytes(b'{"cells": [')
    path.with_name(receipts.STAMP).write_bytes(b"\xff whenever")
    path.with_name("note.txt").write_bytes(b"please")
    before = contents(path.parent)
    take_in_class(course)
    after = contents(path.parent)
    ours = after.pop(receipts.STAMP)
    assert after.pop(receipts.ASIDE) == before.pop(receipts.STAMP)
    assert after == before
    assert ours == (received(course) / receipts.STAMP).read_bytes()


def test_reasons_stand_in_the_notebook_in_the_record_and_in_the_log(course):
    path = hand_in(course)
    path.write_bytes(b"<html>")
    said = take_in_class(course)
    (reason,) = taken(path).reasons
    assert said == [f"ada: {reason}"]
    notebook = nbformat.read(received(course) / NAME, as_version=4)
    assert notebook.cells[0].id == NOTE_ID and reason in notebook.cells[0].source
    record = course / "classroom" / "receipts" / ASSIGNMENT.id / "ada.json"
    assert json.loads(record.read_text(encoding="utf-8"))["versions"][-1]["reasons"] == [reason]


def test_what_is_no_longer_submitted_is_no_longer_received(course):
    hand_in(course)
    path = hand_in(course, "bob")
    take_in_class(course)
    shutil.rmtree(path.parent)
    take_in_class(course, "ada")
    assert received(course, "bob").exists()  # not asked about
    take_in_class(course)
    assert not received(course, "bob").exists()
    assert received(course, "ada").exists()


def test_a_course_without_the_released_notebook_says_so(course):
    hand_in(course)
    (course / "exercises" / ASSIGNMENT.id / NAME).unlink()
    with pytest.raises(CourseError, match="missing"):
        take_in_class(course)


# When it arrived


def stamp(course: Path, student: str = "ada") -> str:
    return (received(course, student) / receipts.STAMP).read_text(encoding="ascii")


def test_the_same_work_keeps_its_time_and_new_work_gets_a_later_one(course):
    path = hand_in(course)
    take_in_class(course)
    first = stamp(course)
    take_in_class(course)
    assert stamp(course) == first
    path.write_text(nbformat.writes(RELEASED), encoding="utf-8")
    take_in_class(course)
    assert stamp(course) > first
    assert path.with_name(receipts.STAMP).read_text(encoding="ascii") == stamp(course)  # formgrader compares the two


@pytest.mark.parametrize(
    "text",
    [b"1999-01-01 00:00:00 UTC", b"", b"yesterday", b"\xff\xfe", b"9" * 10_000, b"1e999", b"99999999999999-01-01"],
)
def test_a_time_that_the_student_wrote_is_not_believed(course, text):
    path = hand_in(course)
    path.with_name(receipts.STAMP).write_bytes(text)
    take_in_class(course)
    assert receipts.stamp_of(received(course)) == stamp(course)
    assert "1999" not in stamp(course)


def test_the_collectors_time_is_believed_where_the_course_says_so(course):
    path = hand_in(course)
    path.with_name(receipts.STAMP).write_text("2025-03-04 05:06:07.000008 UTC", encoding="ascii")
    take_in_class(course, trust=True)
    assert stamp(course) == "2025-03-04 05:06:07.000008 UTC"
    path.with_name(receipts.STAMP).write_text("2999-01-01 00:00:00 UTC", encoding="ascii")
    take_in_class(course, trust=True)
    assert stamp(course) == "2025-03-04 05:06:07.000008 UTC", "a time to come is none"


def test_a_time_that_is_not_believed_is_told_once_for_the_class(course):
    for student in ("ada", "bob"):
        hand_in(course, student).with_name(receipts.STAMP).write_text("2025-03-04 05:06:07 UTC", encoding="ascii")
    (said,) = take_in_class(course)
    assert said.startswith("2 submissions came with a timestamp.txt")
    assert take_in_class(course) == []


def test_a_damaged_record_is_named_and_concerns_one_student(course):
    hand_in(course)
    take_in_class(course)
    hand_in(course, "bob")
    (course / "classroom" / "receipts" / ASSIGNMENT.id / "ada.json").write_text("[]", encoding="utf-8")
    (said,) = take_in_class(course)
    assert said.startswith("ada: not graded: ") and "ada.json is not a record of receipts" in said
    assert received(course, "bob").exists()


# Through nbgrader itself


@pytest.fixture(scope="module")
def graded(tmp_path_factory, released):
    """Broken notebooks, empty, misnamed and junk-filled folders, and honest students between them in the alphabet."""
    folder = graded_class.twin(tmp_path_factory.mktemp("broken-class") / "course", released())
    broken, honest = broken_class.write_class(folder, 26)
    hand_in(folder, "s0005-empty").unlink()
    path = hand_in(folder, "s0006-named")
    path.rename(path.with_name("attention (1).ipynb"))
    path = hand_in(folder, "s0007-folder")
    path.parent.rename(path.parent.with_name(ASSIGNMENT.id.upper()))
    path = hand_in(folder, "s0008-junk")
    path.with_name(receipts.STAMP).write_bytes(b"\xff\xfe?")
    path.with_name("torch.py").write_text("raise SystemExit", encoding="utf-8")
    for kind in TO_THE_END:
        path = hand_in(folder, f"t-{kind}")
        notebook = json.loads(path.read_text(encoding="utf-8")) | {"blank": BLANK}
        path.write_bytes(damage.damaged(notebook, [kind], random.Random(kind)))
    done = sample_class.nbgrader(folder, "autograde", ASSIGNMENT.id)
    return folder, broken, [*honest, "s0006-named", "s0007-folder", "s0008-junk"], done


def test_a_batch_of_broken_notebooks_completes_and_wrongs_nobody(graded):
    folder, broken, honest, done = graded
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Traceback" not in done.stdout
    assert broken_class.wronged(folder, [*broken, "s0005-empty"], honest) == []


@pytest.mark.parametrize("kind", TO_THE_END)
def test_honest_damage_costs_no_point(graded, kind):
    folder, *_ = graded
    assert sample_class.scores(folder, f"t-{kind}") == POINTS


def test_formgrader_sees_that_everyone_is_graded(graded):
    folder, *_ = graded
    coursedir = CourseDirectory(config=PyFileConfigLoader(MARKER, path=str(folder)).load_config())
    api = NbGraderAPI(coursedir)
    submitted = api.get_submitted_students(ASSIGNMENT.id)
    assert len(submitted) > 30
    assert api.get_autograded_students(ASSIGNMENT.id) == submitted


def test_an_empty_folder_is_recorded_as_zero_with_its_reason(graded):
    folder, _, _, done = graded
    assert sample_class.scores(folder, "s0005-empty") == dict.fromkeys(POINTS, 0.0)
    assert "s0005-empty: There was no notebook in what you handed in. The folder was empty." in done.stdout
    feedback = sample_class.nbgrader(folder, "generate_feedback", ASSIGNMENT.id, "--student=s0005-empty")
    assert feedback.returncode == 0, feedback.stdout
    page = folder / "classroom" / "feedback" / "s0005-empty" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.html"
    assert "There was no notebook in what you handed in." in page.read_text(encoding="utf-8")


def test_an_empty_folder_alone_is_graded_too(graded):
    folder, *_ = graded
    done = sample_class.nbgrader(folder, "autograde", ASSIGNMENT.id, "--student=s0005-empty", "--force")
    assert done.returncode == 0, done.stdout


def test_a_new_version_is_graded_without_being_asked_for(graded):
    folder, *_ = graded
    assert sample_class.scores(folder, "s0006-named") == POINTS
    sample_class.submit(folder, "s0006-named", {})
    (folder / "classroom" / "submitted" / "s0006-named" / ASSIGNMENT.id / "attention (1).ipynb").unlink()
    done = sample_class.nbgrader(folder, "autograde", ASSIGNMENT.id, "--student=s0006-named")
    assert done.returncode == 0, done.stdout
    assert sample_class.scores(folder, "s0006-named") == dict.fromkeys(POINTS, 0.0)
