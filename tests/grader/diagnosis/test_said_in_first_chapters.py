"""The explanations of slips in the exercises of chapters 00, 01 and 02: the most specific one, and where to reread."""

import pytest
from explanations import said

from autograder import catalogue
from autograder.diagnosis.counterexample import smallest
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import judge
from autograder.judging.observe import LocalEndpoint

SLIPS = {  # exercise, the end of a correct answer, its change, words of the message
    "batch-matmul": (
        "a @ b",
        "a @ b.reshape(b.shape[0], b.shape[2], b.shape[1]).mT",
        "b was reshaped before the product",
    ),
    "row-normalize": ("x / sums", "x / sums.clamp(min=1.0)", "or by a lower limit"),
    "last-state": (
        "H[rows, last]",
        "H[rows, lengths.clamp(max=H.shape[1] - 1)]",
        "You used the length as an index, cut to the last position",
    ),
    "path-length": ("min(distance, 1)", "1", "From a word to itself nothing moves: you returned 1"),
    "layer-cost": (
        "return k * n * d * d",
        "return sum(max(0, n - abs(o)) for o in range(-(k // 2), k // 2 + 1)) * d * d",
        "Near the edges you counted fewer than k words",
    ),
    "additive-context": (
        "weights.unsqueeze(2) * H",
        "weights.unsqueeze(2) * torch.tanh(H)",
        "Your weights are correct; the context vectors are not",
    ),
}


def explained(exercise_id: str, source: str):
    endpoint = LocalEndpoint(namespace_of(source))
    return judge_and_explain(catalogue.find(exercise_id), endpoint, b"key", disclosed=True)


def right(exercise_id: str):
    """The answer that most known mistakes of the exercise change."""
    return catalogue.find(exercise_id).correct[0].source


@pytest.mark.parametrize("exercise_id", SLIPS)
def test_a_slip_is_described_by_what_it_does(exercise_id):
    old, new, words = SLIPS[exercise_id]
    assert words in said(exercise_id, right(exercise_id).but(old, new), disclosed=True)


def test_in_a_setting_the_mistake_that_passes_elsewhere_is_named():
    source = (
        right("path-length")
        .but("min(distance, 1)", "1")
        .but("abs(i - j)", "j - i")
        .but("math.ceil(distance / reach)", "math.ceil(abs(distance) / reach)")
    )
    told = said("path-length", source, disclosed=True)
    assert "nothing moves" in told and "Both words were counted" not in told


def test_a_batch_of_int32_tensors_must_become_int64():
    source = """
def pad_batch(seqs, pad):
    longest = max(len(seq) for seq in seqs)
    rows = [torch.as_tensor(seq) for seq in seqs]
    return torch.stack([F.pad(row, (0, longest - len(row)), value=pad) for row in rows])
"""
    failed = [outcome for outcome in explained("pad-batch", source).outcomes if not outcome.passed]
    assert failed and all(outcome.difference.kind in ("dtype", "error") for outcome in failed)
    assert any(outcome.difference.kind == "dtype" for outcome in failed)


@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [
        ("swap-batch-time", "def swap_batch_time(x):\n    x.transpose_(0, 1)\n    return x\n"),
        ("gradient-norms", right("gradient-norms").ending_in(".float()")),
        ("row-normalize", right("row-normalize").ending_in(".float()")),
    ],
)
def test_a_broken_promise_of_all_functions_is_reread_in_the_small_print(exercise_id, source):
    report = " ".join(as_text(explained(exercise_id, source)).split())
    assert 'Reread 00, "Dtypes, inputs and gradients: the small print"' in report
    assert "layer's own parameters" not in report


def test_the_smallest_example_holds_one_item_of_the_batch():
    exercise = catalogue.find("last-state")
    endpoint = LocalEndpoint(namespace_of(right("last-state").but("lengths - 1", "lengths.clamp(max=H.shape[1] - 1)")))
    found = smallest(exercise, endpoint, judge(exercise, endpoint, b"key", disclosed=True).outcomes)
    assert found is not None and len(found.case.arguments[0]) == 1


def test_two_mistakes_in_lists_are_named_before_a_general_remark():
    two = right("encode-decode").but('word not in ("<pad>", "<bos>", "<unk>")', 'not word.startswith("<")')
    told = said("encode-decode", two.but('word == "<eos>"', 'word in ("<eos>", "<pad>")'), disclosed=True)
    assert "only begins with < was left out" in told and "Your text ends at a <pad>" in told
