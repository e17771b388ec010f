"""One setting, written into a class's notebooks, decides what their checks run; grading ignores it."""

import graded_class
import pytest
import torch
from nbgrader.converters import GenerateAssignment

from autograder import check as check_module
from autograder import course
from autograder.notebook import own_check
from autograder.prepare import doctor, hand_out, release, sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import results

NO_MAXIMUM = """
def attention_weights(Q, K):
    e = torch.exp(Q @ K.mT / Q.shape[-1] ** 0.5)
    return e / e.sum(-1, keepdim=True)
"""


def decide(folder, whole: bool) -> None:
    with (folder / course.MARKER).open("a", encoding="utf-8") as file:
        file.write(f"c.HandOut.whole_checks = {whole}\n")


def notebook(folder) -> dict:
    return course.read_notebook(course.notebook_path(folder, "exercises", ASSIGNMENT))


@pytest.fixture(scope="session")
def undisclosed(once, released):
    """The sample class's course, released with checks that ask visible probes only; a test that changes it takes a
    twin."""

    def make(folder) -> None:
        place = graded_class.twin(folder / "course", released())
        decide(place, whole=False)
        assert release.release([ASSIGNMENT.id], place) == 0

    return once("undisclosed", make) / "course"


def test_the_setting_changes_the_line_that_imports_the_check_and_nothing_else(released, undisclosed):
    whole, visible = notebook(released()), notebook(undisclosed)
    pairs = list(zip(whole["cells"], visible["cells"], strict=True))
    changed = [(one["source"], other["source"]) for one, other in pairs if one["source"] != other["source"]]
    (before, after), *more = [("".join(one), "".join(other)) for one, other in changed]
    assert not more and "import check, progress" in before
    assert after == before.replace("import check, progress", "import visible_check as check, progress")
    assert hand_out.asks_everything(whole) and not hand_out.asks_everything(visible)


@pytest.mark.parametrize("whole", [True, False])
def test_a_learners_check_asks_what_the_class_has_decided(released, undisclosed, whole, capsys, monkeypatch):
    for module, name in ((check_module, "_earned"), (own_check, "_kept"), (own_check, "_failed")):
        monkeypatch.setattr(module, name, {})
    space: dict = {"torch": torch}
    for _, source, is_answer in course.code_cells(notebook(released() if whole else undisclosed)):
        if not is_answer:
            exec(source, space)
        if "check" in space:
            break
    exec(f'{NO_MAXIMUM}\ncheck("attention-weights")', space)
    said = capsys.readouterr().out
    assert ("of 7 hidden checks pass" in said) == whole
    assert ("are decided by hidden checks when it is graded" in " ".join(said.split())) == (not whole)


def test_grading_gives_both_kinds_of_notebook_the_same_points_and_words(ours, undisclosed, tmp_path):
    folder = graded_class.twin(tmp_path / "course", undisclosed)
    answers = sample_class.answers()
    sample_class.submit(folder, "no-scaling", answers["no-scaling"])
    done = graded_class.grade(folder, "--workers", "1")
    assert done.returncode == 0, done.stderr

    def told(place):
        class_of = results.read_class(place, ASSIGNMENT)
        (graded,) = [each for each in class_of.graded if each.student.id == "no-scaling"]
        return graded.score, [(each.points, each.report) for each in graded.results]

    assert told(folder) == told(ours)


def test_a_notebook_that_cannot_say_it_is_refused_before_anything_is_written(released, tmp_path):
    folder = graded_class.twin(tmp_path / "course", released())
    decide(folder, whole=False)
    path = course.notebook_path(folder, "solutions", ASSIGNMENT)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("from autograder.check import", "from autograder import check #"), encoding="utf-8")
    with pytest.raises(course.CourseError, match="expected a code cell with the line"):
        release.release([ASSIGNMENT.id], folder)
    assert hand_out.asks_everything(notebook(folder))


def test_doctor_says_where_notebooks_were_released_under_another_setting(released, tmp_path):
    folder = graded_class.twin(tmp_path / "course", released())

    def said() -> list[str]:
        settings = results.configuration(folder)
        return [finding.seen for finding in doctor._handed_out(folder, settings)]

    assert said() == []
    decide(folder, whole=False)
    (seen,) = said()
    assert ASSIGNMENT.id in seen and "whole_checks is False" in seen


def test_a_release_takes_all_of_nbgraders_own_steps_in_their_order():
    ours, *steps = results.configuration(course.find_root()).GenerateAssignment.preprocessors
    default = GenerateAssignment.class_traits()["preprocessors"].default()
    assert ours == "autograder.prepare.hand_out.HandOut"
    assert [name.rpartition(".")[2] for name in steps] == [step.__name__ for step in default]
