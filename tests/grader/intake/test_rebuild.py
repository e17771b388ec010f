"""The graded notebook is the released one with the student's sources in it, whatever was submitted."""

import copy
import json
import random

import damage
import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder import catalogue, course
from autograder.intake import salvage
from autograder.intake.matching import is_python
from autograder.intake.rebuild import MAX_CELL, MAX_OWN, MAX_OWN_CELLS, NOTE_ID, rebuild, with_note
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

RELEASED = nbformat.read(course.notebook_path(sample_class.ROOT, "exercises", ASSIGNMENT), as_version=4)
BLANK = {cell["id"]: cell["source"] for cell in RELEASED.cells}
ANSWERS = sample_class.solved()
LOCKED = [cell for cell in RELEASED.cells if cell.metadata.get("nbgrader", {}).get("locked")]
cells_of_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["cells", "cell_type", "source", "metadata", "nbgrader", "grade_id", "id"]), inner
        )
    ),
    max_leaves=20,
)


def handed_in() -> dict:
    """A notebook with every answer right, as a student saves it."""
    notebook = json.loads(nbformat.writes(RELEASED))
    for cell in notebook["cells"]:
        cell["source"] = ANSWERS.get(cell["id"], "".join(cell["source"]))
    return notebook


def written(notebook: dict) -> bytes:
    return json.dumps(notebook).encode()


def sources(notebook) -> list[tuple[str, str]]:
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def place(notebook: dict, name: str) -> int:
    return [cell.get("id") for cell in notebook["cells"]].index(name)


def assert_fit_for_grading(notebook) -> None:
    """Valid, stored without loss, and every locked cell is there once, as released and in order."""
    nbformat.validate(notebook)
    again = nbformat.reads(json.dumps(notebook, ensure_ascii=False).encode().decode(), as_version=4)
    assert [cell for cell in again.cells if cell.metadata.get("nbgrader", {}).get("locked")] == LOCKED
    graded = [cell.metadata.nbgrader for cell in again.cells if cell.metadata.get("nbgrader")]
    assert graded == [cell.metadata.nbgrader for cell in RELEASED.cells if cell.metadata.get("nbgrader")]
    assert again.metadata == RELEASED.metadata


def effective(rebuilt) -> dict[str, str]:
    """Answer -> all code that runs from after the check before it up to its own check, where the answer must be."""
    found, code = {}, []
    for cell in rebuilt.notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id.endswith("-check"):
            found[grade_id.removesuffix("-check")] = "\n".join(code)
            code = []
        elif cell.cell_type == "code" and is_python(cell.source):
            code.append(cell.source)
    return found


# Laws


@given(st.binary())
@settings(deadline=None)
def test_any_bytes_give_the_blank_notebook_with_a_reason(data):
    rebuilt = rebuild(data, RELEASED)
    assert sources(rebuilt.notebook) == sources(RELEASED)
    assert rebuilt.reasons and not rebuilt.answered


@given(cells_of_json)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_json_gives_a_notebook_fit_for_grading(document):
    for whole in (document, {"cells": document}, {"cells": [document, {"cell_type": "code", "source": document}]}):
        rebuilt = rebuild(json.dumps(whole).encode(), RELEASED)
        assert_fit_for_grading(with_note(rebuilt.notebook, rebuilt.reasons))


@given(
    st.dictionaries(st.sampled_from(sorted(ANSWERS)), st.text(st.characters(codec="utf-8", exclude_categories=["C"])))
)
@settings(deadline=None)
def test_an_untouched_submission_keeps_every_source(answers):
    notebook = handed_in()
    for name, text in answers.items():
        notebook["cells"][place(notebook, name)]["source"] = text if text.strip() else "pass"
    rebuilt = rebuild(written(notebook), RELEASED)
    assert sources(rebuilt.notebook) == sources(notebook)


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda assignment: assignment.id)
def test_a_blank_notebook_is_rebuilt_as_it_is(assignment):
    path = course.notebook_path(sample_class.ROOT, "exercises", assignment)
    released = nbformat.read(path, as_version=4)
    assert sources(rebuild(path.read_bytes(), released).notebook) == sources(released)


def test_the_address_that_a_student_wrote_into_the_first_cell_changes_nothing():
    notebook = handed_in()
    cell = next(cell for cell in notebook["cells"] if "COURSE" in cell["source"])
    cell["source"] = cell["source"].replace('COURSE = ""', 'COURSE = "git+https://example.org/course.git"')
    rebuilt = rebuild(written(notebook), RELEASED)
    added = [cell.source for cell in rebuilt.notebook.cells if cell.id.startswith("own-")]
    assert [line.partition("  #")[0] for line in added] == ['COURSE = "git+https://example.org/course.git"']
    assert [cell for cell in rebuilt.notebook.cells if cell.metadata.get("nbgrader", {}).get("locked")] == LOCKED


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["code", "markdown", "raw"])), max_size=8))
@settings(deadline=None)
def test_own_cells_stay_between_their_neighbors(insertions):
    notebook = handed_in()
    for number, (where, kind) in enumerate(insertions):
        cell = {"cell_type": kind, "metadata": {}, "source": f"mine_{number} = 1"}
        notebook["cells"].insert(min(where, len(notebook["cells"])), cell)
    assert sources(rebuild(written(notebook), RELEASED).notebook) == sources(notebook)


@given(st.randoms(use_true_random=False))
@settings(deadline=None)
def test_rebuilding_what_was_rebuilt_changes_nothing(draw):
    once = rebuild(damage.drawn(handed_in() | {"blank": BLANK}, draw)[0], RELEASED).notebook
    noted = with_note(once, ["something was put right"])
    assert sources(rebuild(nbformat.writes(noted).encode(), RELEASED).notebook) == sources(once)


@pytest.mark.parametrize("kind", sorted(damage.HONEST))
def test_honest_damage_costs_no_answer(kind):
    for seed in range(2):
        data = damage.damaged(handed_in() | {"blank": BLANK}, [kind], random.Random(seed))
        rebuilt = rebuild(data, RELEASED)
        assert_fit_for_grading(with_note(rebuilt.notebook, rebuilt.reasons))
        assert rebuilt.answered == set(ANSWERS), rebuilt.reasons
        for name, code in effective(rebuilt).items():
            last_definition = code[code.rindex(ANSWERS[name].splitlines()[0]) :]
            lines = [line.strip() for line in last_definition.splitlines() if line.strip()]
            wanted = [line.strip() for line in ANSWERS[name].splitlines() if line.strip()]
            assert lines[: len(wanted)] == wanted, (kind, seed, name)


@pytest.mark.xdist_group("drawn-garbage")
def test_a_thousand_broken_notebooks_are_all_fit_for_grading():
    reasons = set()
    for seed in range(1_000):
        data, kinds = damage.drawn(handed_in() | {"blank": BLANK}, random.Random(seed))
        rebuilt = rebuild(data, RELEASED)
        try:
            assert_fit_for_grading(with_note(rebuilt.notebook, rebuilt.reasons))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {kinds}") from error
        reasons.update(rebuilt.reasons)
    assert len(reasons) > 50, "the damage is too harmless to show anything"


# Cases


def test_no_file_is_said_to_be_none():
    rebuilt = rebuild(None, RELEASED)
    assert sources(rebuilt.notebook) == sources(RELEASED)
    assert rebuilt.reasons == ("There was no notebook in what you handed in.",)


def test_a_good_submission_gets_no_note():
    rebuilt = rebuild(written(handed_in()), RELEASED)
    assert rebuilt.reasons == ()
    assert with_note(rebuilt.notebook, rebuilt.reasons).cells[0].id != NOTE_ID


def test_the_released_notebook_is_not_changed():
    before = copy.deepcopy(RELEASED)
    rebuild(written(handed_in()), RELEASED).notebook.cells[0].metadata["new"] = True
    assert RELEASED == before


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"<!doctype html>", "it is a web page"),
        (b"PK\x03\x04...", "zip archive"),
        (b'{"nbformat": 4}', "no cells are in it"),
    ],
)
def test_an_unreadable_file_is_told_by_its_kind(data, words):
    (reason,) = rebuild(data, RELEASED).reasons
    assert words in reason


def test_of_a_file_that_ends_too_early_every_whole_cell_counts():
    data = written(handed_in())
    rebuilt = rebuild(data[: data.index(b'"project-task"')], RELEASED)
    assert rebuilt.answered == {"attend", "attention-weights", "soft-lookup"}
    assert rebuilt.reasons[0].startswith("The file is broken.")
    assert "`project`" in rebuilt.reasons[1]


def test_of_a_file_that_is_too_large_both_ends_count(monkeypatch):
    notebook = handed_in()
    output = {"output_type": "stream", "name": "stdout", "text": "y\n" * 50_000}
    notebook["cells"].insert(12, {"cell_type": "code", "metadata": {}, "outputs": [output], "source": "print(1)"})
    monkeypatch.setattr(salvage, "MAX_BYTES", 80_000)
    rebuilt = rebuild(written(notebook), RELEASED)
    assert rebuilt.answered == set(ANSWERS)
    assert "Its middle was not read" in rebuilt.reasons[0]


def test_another_assignment_is_told_to_be_the_wrong_file():
    notebook = {"cells": [{"cell_type": "code", "source": "print('hello')", "metadata": {}}]}
    rebuilt = rebuild(written(notebook), RELEASED)
    assert rebuilt.reasons == ("Nothing in this file belongs to this assignment. Is it the right one?",)
    assert not rebuilt.answered


def test_an_answer_written_into_the_check_cell_counts_and_the_check_is_restored():
    notebook = handed_in()
    answer, check = (notebook["cells"][place(notebook, name)] for name in ("attend", "attend-check"))
    check["source"] = answer["source"] + "\n" + check["source"]
    answer["source"] = BLANK["attend"]
    rebuilt = rebuild(written(notebook), RELEASED)
    assert_fit_for_grading(rebuilt.notebook)
    assert rebuilt.notebook.cells[place(rebuilt.notebook, "attend")].source == ANSWERS["attend"]
    assert len(rebuilt.notebook.cells) == len(RELEASED.cells)


def test_code_added_to_a_given_cell_runs_in_a_cell_of_its_own():
    notebook = handed_in()
    set_up = notebook["cells"][place(notebook, "self-attention-set-up")]
    set_up["source"] += "\nimport numpy as np"
    rebuilt = rebuild(written(notebook), RELEASED)
    after = rebuilt.notebook.cells[place(rebuilt.notebook, "self-attention-set-up") + 1]
    assert (after.cell_type, after.source) == ("code", "import numpy as np")
    assert "`self-attention-set-up`" in rebuilt.reasons[0]


def test_all_answers_in_one_cell_answer_every_exercise():
    notebook = json.loads(nbformat.writes(RELEASED))
    everything = "\n\n".join(ANSWERS.values())
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": everything})
    rebuilt = rebuild(written(notebook), RELEASED)
    assert rebuilt.answered == set(ANSWERS)


@pytest.mark.parametrize("copied", [True, False], ids=["copied cell", "new cell"])
def test_a_second_version_after_the_check_does_not_replace_the_first(copied):
    notebook = handed_in()
    like = notebook["cells"][place(notebook, "attend")] if copied else {"cell_type": "code", "metadata": {}}
    later = {**like, "source": "def attend(W, V):\n    return 0"}
    notebook["cells"].insert(place(notebook, "attend-check") + 1, later)
    rebuilt = rebuild(written(notebook), RELEASED)
    assert sources(rebuilt.notebook) == sources(notebook)


def test_a_blank_copy_of_an_answer_does_not_wipe_the_answer_out():
    notebook = handed_in()
    where = place(notebook, "attend")
    notebook["cells"].insert(where + 1, {**notebook["cells"][where], "source": BLANK["attend"]})
    assert sources(rebuild(written(notebook), RELEASED).notebook) == sources(handed_in())


def test_a_helper_moves_with_the_answer_that_it_stands_before():
    notebook = handed_in()
    answer = notebook["cells"].pop(place(notebook, "project"))
    notebook["cells"] += [{"cell_type": "code", "metadata": {}, "source": "helper = 1"}, answer]
    rebuilt = rebuild(written(notebook), RELEASED)
    assert rebuilt.notebook.cells[place(rebuilt.notebook, "project") - 1].source == "helper = 1"


def test_cells_without_end_or_number_are_left_out_and_answers_kept():
    notebook = handed_in()
    notebook["cells"][:0] = [
        {"cell_type": "code", "metadata": {}, "source": f"n = {n}"} for n in range(MAX_OWN_CELLS + 9)
    ]
    notebook["cells"].insert(0, {"cell_type": "code", "metadata": {}, "source": "x" * (MAX_CELL + 1)})
    rebuilt = rebuild(written(notebook), RELEASED)
    assert len(rebuilt.notebook.cells) == len(RELEASED.cells) + MAX_OWN_CELLS
    assert sum(len(cell.source) for cell in rebuilt.notebook.cells) < MAX_OWN + 50_000
    assert rebuilt.answered == set(ANSWERS)
    assert len(rebuilt.reasons) == 2


def test_nothing_but_text_is_taken_over():
    notebook = handed_in()
    for cell in notebook["cells"]:
        cell["metadata"].update(tags=["skip-execution"], mine=1)
        cell.update(
            attachments={"a": {}}, outputs=[{"output_type": "stream", "name": "stdout", "text": "1"}], execution_count=3
        )
    notebook["metadata"] = {"kernelspec": {"name": "evil", "display_name": "evil"}}
    rebuilt = rebuild(written(notebook), RELEASED).notebook
    assert [{**cell, "source": ""} for cell in rebuilt.cells] == [{**cell, "source": ""} for cell in RELEASED.cells]
    assert rebuilt.metadata == RELEASED.metadata


def test_the_note_shows_every_reason_in_the_first_cell():
    notebook = with_note(RELEASED, ["One.", "Two."])
    assert notebook.cells[0].id == NOTE_ID
    assert notebook.cells[0].source == "**About what you handed in**\n\n- One.\n- Two."
