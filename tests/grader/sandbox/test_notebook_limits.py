"""What a notebook may take: the usual, what its assignment states, or what a teacher has set."""

from dataclasses import replace

from autograder import catalogue
from autograder.inside.limits import Limits
from autograder.sandbox.notebook_limits import limits_of

USUAL = Limits()
CAPSTONE = catalogue.find_assignment("12_capstone")


def test_an_assignment_without_a_budget_has_the_course_s():
    own = replace(USUAL, cell_seconds=7, memory_bytes=1 << 30)
    assert limits_of(catalogue.find_assignment("05_self_attention"), own) == own
    assert limits_of(None, own) == own


def test_a_budget_that_an_assignment_states_takes_the_place_of_the_usual_one():
    limits = limits_of(CAPSTONE)
    assert (limits.cell_seconds, limits.notebook_seconds) == (CAPSTONE.cell_seconds, CAPSTONE.notebook_seconds)
    assert limits.memory_bytes == USUAL.memory_bytes


def test_a_teacher_can_give_more_and_not_less():
    assert limits_of(CAPSTONE, replace(USUAL, cell_seconds=900)).cell_seconds == 900
    assert limits_of(CAPSTONE, replace(USUAL, cell_seconds=9)).cell_seconds == CAPSTONE.cell_seconds


def test_the_capstone_states_less_than_four_minutes_and_room_for_one_interrupted_cell():
    assert CAPSTONE.cell_seconds < CAPSTONE.notebook_seconds < 240
