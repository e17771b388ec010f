"""What is said of answers that no entry holds: a known mistake in one setting alone, a mask unused, a wrong row quoted."""

import torch

from autograder import catalogue
from autograder.catalogue.exercise import Evidence
from autograder.catalogue.quotes import wrong_row
from autograder.judging.diagnose import namespace_of
from autograder.judging.judge import judge
from autograder.judging.observe import LocalPeer
from autograder.judging.words import explanation

LAYER = catalogue.find("encoder-layer")
RIGHT = LAYER.right[0].source
PRE, POST = "self.attention(seen, seen, mask)", "self.attention(x, x, mask)"


def said(exercise_id: str, source: str) -> str:
    """What a learner reads below the lines of the checks."""
    exercise = catalogue.find(exercise_id)
    return " ".join(explanation(judge(exercise, LocalPeer(namespace_of(source)), b"key")).split())


def test_a_known_mistake_under_one_value_of_a_flag_is_named_with_the_value() -> None:
    assert "Where norm_first is False, and only there: The mask was not handed on" in said(
        "encoder-layer", RIGHT.but(POST, "self.attention(x, x, None)")
    )
    assert "Where norm_first is True, and only there: The mask was not handed on" in said(
        "encoder-layer", RIGHT.but(PRE, "self.attention(seen, seen, None)")
    )


def test_a_known_mistake_under_both_values_is_named_without_one() -> None:
    both = RIGHT.but(POST, "self.attention(x, x, None)").but(PRE, "self.attention(seen, seen, None)")
    told = said("encoder-layer", both)
    assert "The mask was not handed on" in told and "only there" not in told


def test_what_a_result_does_not_depend_on_is_said_in_one_sentence() -> None:
    told = said("layer-norm", "def layer_norm(x, g, b, eps):\n    return torch.zeros_like(x) + eps / 7\n")
    assert "Your result does not depend on x, g or b: with other numbers in them, the same comes back." in told


def test_a_mask_that_changes_nothing_is_said() -> None:
    source = """
def masked_attention(Q, K, V, mask):
    A = torch.softmax(1.1 * Q @ K.mT / Q.shape[-1] ** 0.5, -1)
    return A @ V, A
"""
    assert "does not depend on mask: with all of it True, the same comes back" in said("masked-attention", source)


def test_a_norm_too_many_is_said_to_be_too_many() -> None:
    told = said(
        "encoder-layer",
        RIGHT.but("self.drop = nn.", "self.norm3 = nn.LayerNorm(d)\n        self.drop = nn.").but(
            "return x\n", "return self.norm3(x)\n"
        ),
    )
    assert "You have too many norms. Norms: 3 found, 2 wanted." in told
    assert "roles = {" not in told


def test_an_error_inside_of_a_function_of_the_checks_is_not_explained_by_the_learners_shapes() -> None:
    source = next(answer.source for answer in catalogue.find("decode-step").right).but("mixed, cross)", "mixed, None)")
    namespace = dict(namespace_of(""))
    exec(source, namespace)  # as a cell: its functions look names up where the check finds them
    verdict = judge(catalogue.find("decode-step"), LocalPeer(namespace), b"key")
    assert "What stopped is a function that the check passed in." in " ".join(explanation(verdict).split())


def test_the_row_that_is_quoted_differs() -> None:
    wanted = torch.arange(24.0).reshape(2, 2, 6)
    got = wanted.clone()
    got[1, 0, 1] = -1.0
    assert wrong_row(Evidence((), wanted, got), "word") == (
        "Your word 2 is 12.000 -1.000 14.000 15.000; it should be 12.000 13.000 14.000 15.000."
    )
    got = wanted.clone()
    got[0, 0, 5] = 0.0
    assert wrong_row(Evidence((), wanted, got)).startswith("Your first row ends in 2.000 3.000 4.000 0.000; it should")
