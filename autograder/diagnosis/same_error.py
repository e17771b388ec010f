"""Whether two errors show the same mistake. Two spellings of one mistake may stop with different texts."""

import re

from autograder.judging.observation import Raised

SIZES = "sizes"
NUMBER = re.compile(r"\d+")
TORCH_BEGINS = {  # what a RuntimeError of torch's is about, by how its text begins
    "Can't call numpy()": "numpy",
    "view size is not": "view",
    "Output 0 of ": "in place",
    "a leaf Variable": "in place",
    "a view of a leaf Variable": "in place",
    "A view was created in no_grad mode": "in place",
    "one of the variables needed for gradient": "in place",
    "shape '": "a new shape",
    "1D tensors expected": "vectors",
    "Boolean value of Tensor": "truth",
    **dict.fromkeys(
        (
            "The size of tensor a",
            "The expanded size",
            "The shape of the mask",
            "Sizes of tensors must match",
            "Tensors must have same number of dimensions",
            "Expected size for first two dimensions",
            "mat1 and mat2",
            "size mismatch",
            "shape mismatch",
            "einsum(): ",
            "stack expects each tensor",
            "output with shape",
            "expand(",
            "both arguments to matmul",
            "batch1 must be",
            "self must be a matrix",
            "mat2 must be a matrix",
            "dot : ",
        ),
        SIZES,
    ),
}


def stopped_alike(one: Raised, other: Raised) -> bool:
    """Whether two errors are of one kind; of torch's many, by how they begin, and of types by whether floats matter."""
    about = [[fact for fact in each.about if fact != "raised"] for each in (one, other)]
    floats = [each.type == "TypeError" and "float" in each.message for each in (one, other)]
    alike = (one.type, about[0], _cause(one), floats[0]) == (other.type, about[1], _cause(other), floats[1])
    return alike and not _of_other_sizes(one, other)


def _of_other_sizes(one: Raised, other: Raised) -> bool:
    """Whether both complain in the same words of torch's, and of different sizes."""
    texts = [each.message.partition(" at non-singleton")[0] for each in (one, other)]
    words, sizes = [NUMBER.split(text) for text in texts], [sorted(NUMBER.findall(text)) for text in texts]
    return _cause(one) == SIZES and words[0] == words[1] and sizes[0] != sizes[1]


def _cause(error: Raised) -> str:
    """What a RuntimeError of torch's is about; of an unknown one its first two words, of other types nothing."""
    known = next((cause for begin, cause in TORCH_BEGINS.items() if error.message.startswith(begin)), "")
    return known or (" ".join(error.message.split()[:2]) if error.type == "RuntimeError" else "")


def same_words(one: Raised, other: Raised) -> bool:
    """Whether two errors have the same words, in any order: a - b and b - a fail with the same two sizes."""
    return _words(one) == _words(other)


def _words(error: Raised) -> tuple[str, list[str]]:
    return error.type, sorted(error.message.split())
