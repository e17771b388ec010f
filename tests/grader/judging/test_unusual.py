"""Names that no exercise needs are shown to the teacher; nothing that the course accepts or gives out has any."""

import timeit

import pytest

from autograder import catalogue, course
from autograder.judging.unusual import in_words, unusual
from autograder.prepare.sample_class import ROOT

FORKED = "import os\n\nif os.fork() == 0:\n    os._exit(0)\n"


def test_a_tool_is_found_however_it_is_named():
    assert unusual([FORKED]) == ["fork"]
    assert unusual(["from types import FunctionType as f"]) == ["FunctionType"]
    assert unusual(["import torch\ng = getattr(torch.nn.functional.softmax, '__code__')"]) == ["__code__"]
    assert unusual(["%timeit 1\nimport ctypes.util, subprocess\n"]) == ["ctypes", "subprocess"]


def test_words_that_only_look_like_one_are_none():
    assert unusual(["# a fork in the road\nsocket_of_the_bulb = 'a fork'\nprint('subprocess of attention')"]) == []
    assert unusual(["def ( # ctypes"]) == []


def test_a_notebook_is_read_up_to_a_limit_and_a_deep_one_by_its_words():
    assert unusual(["x = 1\n" * 60_000, FORKED]) == []
    assert unusual([f"import ctypes\nx = {'(' * 5_000}1{')' * 5_000}"]) == ["ctypes"]


def test_twice_as_many_magics_take_about_twice_the_time():
    """The time of a hostile cell grows with its length, not with the square of it."""

    def seconds(magics: int) -> float:
        cell = "%timeit ctypes\n" * magics
        return min(timeit.repeat(lambda: unusual([cell]), number=3, repeat=3))

    assert seconds(8_000) < 5 * seconds(2_000) + 0.05


def test_the_sentence_lists_all_names():
    assert in_words(["fork"]).startswith("The code names fork, which")
    assert in_words(["a", "b", "c"]).startswith("The code names a, b and c, which")


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda assignment: assignment.id)
def test_no_answer_that_is_accepted_and_no_released_cell_has_any(assignment):
    for exercise in assignment.exercises:
        for answer in exercise.correct:
            assert unusual([str(answer.source)]) == [], (exercise.id, answer.name)
    for step in ("exercises", "solutions"):
        notebook = course.read_notebook(course.notebook_path(ROOT, step, assignment))
        assert unusual(source for _, source, _ in course.code_cells(notebook)) == []
