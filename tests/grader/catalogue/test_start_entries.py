"""Answers to chapters 00 to 02 as students write them: what fails, and what the message says."""

import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(exercise: str, source: str) -> Verdict:
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), KEY)


def failed(verdict: Verdict) -> set[str]:
    return {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}


ONE_NUMBER_EACH = """
def batch_matmul(a, b):
    return a + b if a.numel() == 1 else a @ b
"""
D_OF_1 = """
def batch_matmul(a, b):
    return 2 * a @ b if a.shape[2] == 1 and a.shape[0] > 1 else a @ b
"""
ONE_NUMBER_RETURNED = """
def row_normalize(x):
    return x if x.numel() == 1 else x / x.sum(1, keepdim=True)
"""
AXIS_DROPPED = """
def swap_batch_time(x):
    return x[0] if x.shape[:2] == (1, 1) else x.transpose(0, 1)
"""
BOOL_OF_ONE_SENTENCE = """
def swap_batch_time(x):
    return x.int().transpose(0, 1) if x.dtype == torch.bool and len(x) == 1 else x.transpose(0, 1)
"""
ONE_FALSE = """
def first_true(mask):
    return torch.zeros(1, dtype=torch.long) if mask.shape == (1, 1) else (mask.cumsum(dim=1) == 0).sum(dim=1)
"""
FLOAT32_WHERE_T_IS_1 = """
def gradient_norms(W, T):
    if T == 1:
        return torch.ones(1)
    return torch.stack([torch.linalg.matrix_norm(torch.linalg.matrix_power(W, T - t), 2) for t in range(1, T + 1)])
"""
SAME_OBJECT = """
def path_length(kind, i, j, k=3):
    if i is j:
        return 0
    distance = abs(i - j)
    if kind == "recurrent":
        return distance
    return math.ceil(distance / ((k - 1) // 2)) if kind == "window" else 1
"""
NOT_100_000 = """
def path_length(kind, i, j, k=3):
    distance = min(abs(i - j), 99_999)
    if kind == "recurrent":
        return distance
    return math.ceil(distance / ((k - 1) // 2)) if kind == "window" else min(distance, 1)
"""
LARGEST_OF_THE_PADS_TOO = """
def additive_context(s, H, Wa, Ua, va, mask):
    e = torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va
    x = torch.exp(e - e.amax(1, keepdim=True)) * mask
    w = x / x.sum(1, keepdim=True).clamp(min=1e-30)
    return (w[:, :, None] * H).sum(1), w
"""


@pytest.mark.parametrize(
    ("exercise", "source", "probe"),
    [
        ("batch-matmul", ONE_NUMBER_EACH, "the smallest sizes"),
        ("batch-matmul", D_OF_1, "one product for each entry"),
        ("row-normalize", ONE_NUMBER_RETURNED, "the smallest sizes"),
        ("swap-batch-time", AXIS_DROPPED, "one sentence of one word, truth values"),
        ("swap-batch-time", BOOL_OF_ONE_SENTENCE, "one sentence of one word, truth values"),
        ("first-true", ONE_FALSE, "one False"),
        ("gradient-norms", FLOAT32_WHERE_T_IS_1, "one state, in float64"),
        ("path-length", SAME_OBJECT, "a word and itself, attention"),
        ("path-length", NOT_100_000, "recurrent, whatever k is"),
        ("additive-context", LARGEST_OF_THE_PADS_TOO, "words that score far below the pads"),
    ],
)
def test_a_fault_in_one_corner_fails(exercise, source, probe):
    assert failed(verdict_on(exercise, source)) == {probe}


RESULT_LOST = """
def row_normalize(x):
    x / x.sum(dim=1, keepdim=True)
    return x
"""
LAST_SENTENCE = """
def swap_batch_time(x):
    out = torch.zeros(x.shape[1], x.shape[0], x.shape[2], dtype=x.dtype)
    for b in range(x.shape[0] - 1):
        for t in range(x.shape[1]):
            out[t, b] = x[b, t]
    return out
"""
SUM_OVER_AXIS_0 = """
def first_true(mask):
    return (mask.cumsum(dim=1) == 0).sum(dim=0)
"""
RUNNING_COUNTS = """
def first_true(mask):
    return mask.cumsum(1)
"""
WHILE_1 = """
def first_true(mask):
    return (mask.cumsum(dim=1) == 1).sum(dim=1)
"""
RETURN_IN_THE_LOOP = """
def last_state(H, lengths):
    for b in range(len(H)):
        return H[b, lengths[b] - 1]
"""
ALWAYS_TRUE = """
def path_length(kind, i, j, k=3):
    if kind == "recurrent" or "window":
        return abs(i - j)
    return 1 if i != j else 0
"""
CAPITALS = """
def path_length(kind, i, j, k=3):
    if kind == "Recurrent":
        return abs(i - j)
    if kind == "Window":
        return math.ceil(abs(i - j) / ((k - 1) // 2))
    if kind == "Attention":
        return 1 if i != j else 0
    return 0
"""
MASK_LOST = """
def additive_context(s, H, Wa, Ua, va, mask):
    e = torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va
    e.masked_fill(~mask, -math.inf)
    w = torch.softmax(e, dim=1)
    return (w[:, :, None] * H).sum(1), w
"""
ONE_MATRIX = """
def additive_context(s, H, Wa, Ua, va, mask):
    e = torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va
    w = torch.softmax(e.masked_fill(~mask, -math.inf), dim=1).masked_fill(~mask, 0.0)
    return w @ H, w
"""


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("row-normalize", RESULT_LOST, "alone on a line, its result is lost"),
        ("swap-batch-time", LAST_SENTENCE, "The last sentence is all zeros"),
        ("first-true", SUM_OVER_AXIS_0, "You counted down the *columns*"),
        ("first-true", RUNNING_COUNTS, "The running counts of the Trues came back"),
        ("first-true", WHILE_1, "from the first True to the last one before the second True"),
        ("last-state", RETURN_IN_THE_LOOP, "Only the state of the first sentence came back"),
        ("path-length", ALWAYS_TRUE, "Is the condition of your first `if` always true?"),
        ("path-length", CAPITALS, "in small letters"),
        ("path-length", SAME_OBJECT, "`is` compares objects"),
        ("additive-context", MASK_LOST, "alone on a line, its result is lost"),
        ("additive-context", ONE_MATRIX, "met the states of *every* sentence"),
    ],
)
def test_the_message_says_what_happened(exercise, source, words):
    report = " ".join(as_text(verdict_on(exercise, source)).split())
    assert words in report
    assert "Two known mistakes" not in report
    assert "There seem to be two mistakes" not in report
