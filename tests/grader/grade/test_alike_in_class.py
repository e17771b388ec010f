"""A graded class: wrong answers that behave alike are found from the graded notebooks, whatever ends a process."""

import pytest

from autograder.prepare import sample_class
from autograder.reports import comment, results

ALIKE = """
def attend(W, V):
    return {} / 2 + V.mean(-2, keepdim=True)
"""
CLASS = {
    "product": {"attend": ALIKE.format("(W @ V)")},
    "einsum": {"attend": ALIKE.format('torch.einsum("...qk,...kd->...qd", W, V)')},
    "other": {"attend": "def attend(W, V):\n    return (W @ V) / 3 + V.mean(-2, keepdim=True)\n"},
    "right": {},
    "ends": {"attend": "def attend(W, V):\n    import os\n    os._exit(3)\n"},
}


@pytest.fixture(scope="module")
def graded(empty_course):
    made = empty_course("alike")
    for student, answers in CLASS.items():
        sample_class.submit(made.folder, student, {**sample_class.solved(), **answers})
    made.autograde()
    assert made.code == 0, made.log
    return made


def test_two_ways_to_write_one_mistake_are_one_group(graded):
    groups = comment.groups_of(results.read_class(graded.folder, graded.assignment))
    of_attend = [group for group in groups if group.exercise == "attend" and group.alike]
    assert [[member.id for member in group.members] for group in of_attend] == [["einsum", "product"], ["other"]]


def test_who_is_right_has_no_fingerprint_and_points_are_what_they_were(graded):
    assert graded.record("right", "attend")["alike"] == []
    assert [graded.scores(student)["attend"] for student in ("right", "product", "einsum", "other")] == [4, 0, 0, 0]


def test_an_answer_that_ended_its_process_is_not_compared_and_keeps_its_verdicts(graded):
    assert graded.record("ends", "attend")["alike"] == []
    assert graded.scores("ends")["self-attention"] == 8
