"""When two errors show the same mistake: what torch complains of counts, and not how the line is written."""

import pytest

from autograder.diagnosis.same_error import same_words, stopped_alike
from autograder.judging.observation import Raised

TWO_AND_THREE = "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"


def error(message: str, kind: str = "RuntimeError") -> Raised:
    return Raised(kind, message)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TWO_AND_THREE, TWO_AND_THREE.replace("dimension 1", "dimension 0")),
        (TWO_AND_THREE, TWO_AND_THREE.replace("a (2)", "a (3)").replace("b (3)", "b (2)")),
        (TWO_AND_THREE, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        ("Can't call numpy() on Tensor that requires grad.", "Can't call numpy() on a view."),
    ],
)
def test_errors_about_the_same_are_alike(one, other):
    assert stopped_alike(error(one), error(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TWO_AND_THREE, TWO_AND_THREE.replace("(3)", "(5)")),
        (TWO_AND_THREE, "probability tensor contains either `inf`, `nan` or element < 0"),
        (TWO_AND_THREE, "shape '[2, 3]' is invalid for input of size 7"),
        ("probability tensor contains either `inf`", "torch.searchsorted(): boundaries tensor should be 1 dimension"),
    ],
)
def test_errors_about_something_else_are_not(one, other):
    assert not stopped_alike(error(one), error(other))


def test_the_text_of_a_key_error_is_its_key():
    assert stopped_alike(error("'<unk>'", "KeyError"), error("7", "KeyError"))
    assert not stopped_alike(error("'<unk>'", "KeyError"), error("list index out of range", "IndexError"))


def test_the_order_of_operands_does_not_matter():
    assert same_words(error("unsupported operand: 'a' and 'b'"), error("unsupported operand: 'b' and 'a'"))
    assert not same_words(error("a"), error("b"))
