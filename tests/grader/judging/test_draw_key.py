"""Equal work gets equal inputs; work that behaves differently gets other inputs."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from autograder.judging.judge import draw_key

CELLS = st.lists(st.none() | st.text(alphabet='a\n"\\,[]\x00é', max_size=4), max_size=4)


def key(cells) -> bytes:
    return draw_key(b"secret", "assignment", "exercise", cells)


@given(CELLS, CELLS)
def test_two_notebooks_share_their_questions_only_if_their_cells_are_equal(one, other):
    assert (key(one) == key(other)) == (one == other)


def test_the_same_lines_cut_into_other_cells_are_other_work():
    cuts = [["a = 0\n1 / 0\na = 1"], ["a = 0", "1 / 0\na = 1"], ["a = 0", "1 / 0", "a = 1"], ["a = 0\n1 / 0", "a = 1"]]
    assert all(key(one) != key(other) for one, other in itertools.combinations(cuts, 2))


def test_a_check_that_stands_elsewhere_between_the_cells_is_other_work():
    assert key(["a", None, "b"]) != key([None, "a", "b"])
