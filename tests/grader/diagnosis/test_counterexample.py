"""Where no known mistake explains an answer, its own check shows the smallest input on which it still fails."""

import ast
from dataclasses import replace

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case
from autograder.diagnosis import counterexample, explain
from autograder.diagnosis.counterexample import MOST_NUMBERS, MOST_QUESTIONS, numbers, smallest
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback import render
from autograder.feedback import report as written
from autograder.feedback.report import as_text, report
from autograder.feedback.values import digits_exact, plainly
from autograder.judging import compare
from autograder.judging.judge import judge
from autograder.judging.observe import Candidate, LocalEndpoint
from autograder.judging.probe_inputs import right_answer

SOFTMAX = "    e = torch.exp(x - x.amax(dim, keepdim=True))\n    return e / e.sum(dim, keepdim=True)\n"
KEY = b"a key of thirty-two bytes ......"
STRANGE = {  # answers that are wrong in a way that no entry holds
    "attention-weights": "def attention_weights(Q, K):\n    s = Q @ K.mT / Q.shape[-1] ** 0.5\n"
    "    return torch.softmax(s + 0.3 * torch.arange(s.shape[-1]).to(s.dtype), -1)\n",
    "softmax": "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim, keepdim=True)) ** 1.1\n"
    "    return e / e.sum(dim, keepdim=True)\n",
    "attend": "def attend(W, V):\n    return W @ V.cumsum(1)\n",
    "causal-mask": "def causal_mask(T, cached=0):\n"
    "    return torch.ones(T, T + cached).tril(cached).bool().roll(1, 1)\n",
    "cosine": "def cosine(A, B):\n    lengths = A.norm(dim=-1)[:, None] + B.norm(dim=-1)[None]\n"
    "    return (A @ B.mT) / lengths ** 2 * 4\n",
    "build-vocab": "def build_vocab(sentences, min_freq, specials):\n    from collections import Counter\n"
    "    c = Counter(w for s in sentences for w in s)\n"
    "    return {w: i for i, w in enumerate([*specials, *sorted(w for w in c if c[w] > min_freq)])}\n",
    "masked-attention": "def masked_attention(Q, K, V, mask):\n    s = Q @ K.mT / Q.shape[-1] ** 0.5\n"
    "    w = torch.softmax(s.masked_fill(~mask, -1.0), -1)\n    return w @ V, w\n",
    "corpus-bleu": "def corpus_bleu(hyps, refs, n=4):\n    return 0.37\n",
}


def own_check(exercise_id: str, source: str):
    endpoint = LocalEndpoint(namespace_of(source))
    return judge_and_explain(catalogue.find(exercise_id), endpoint, KEY, disclosed=True)


@pytest.mark.parametrize("exercise_id", STRANGE)
def test_the_example_is_small_the_answer_fails_on_it_and_every_correct_answer_agrees(exercise_id):
    exercise = catalogue.find(exercise_id)
    found = own_check(exercise_id, STRANGE[exercise_id]).counterexample
    assert found is not None and numbers(found.case.arguments) <= MOST_NUMBERS
    expected = right_answer(exercise, found.probe, found.case)
    answers = [STRANGE[exercise_id], *(each.source for each in exercise.correct)]
    seen = [
        Candidate(exercise, LocalEndpoint(namespace_of(each))).observe(found.probe, found.case, expected)
        for each in answers
    ]
    parted = [compare.difference(expected, each, found.probe) for each in seen]
    assert parted[0] is not None and all(each is None or each.kind not in ("value", "error") for each in parted[1:])


@pytest.mark.parametrize("exercise_id", STRANGE)
def test_the_report_shows_input_right_result_and_theirs_in_text_and_html(exercise_id):
    verdict = own_check(exercise_id, STRANGE[exercise_id])
    text, page = as_text(verdict), render.as_html(report(verdict), "")
    for shown in (text, page):
        assert render.SMALLEST in shown and shown.count("yours is") >= 1
    example = text.partition(render.SMALLEST)[2]
    lines = [line.split(None, 2) for line in example.splitlines()[1:] if line.startswith("    ")]
    right = next(line for line in example.splitlines() if "should be" in line).split("should be")[1].strip()
    theirs = next(line for line in example.splitlines() if "yours is" in line).split("yours is")[1].strip()
    assert lines and right != theirs


def test_the_same_answer_gets_the_same_example():
    texts = {as_text(own_check("softmax", STRANGE["softmax"])) for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("exercise_id", "body", "shown"),
    [
        (
            "softmax",
            f"    if x.shape[dim] > 2: raise OSError('odd')\n{SOFTMAX}",
            "stopped with OSError",
        ),
        ("attend", "    out = (W @ V).double()\n    return out", "(float64)"),
        ("dot", "    out = (x * y).sum(-1)\n    return out + (out > 1)", "yours is"),
    ],
)
def test_an_error_a_dtype_and_a_value_are_each_shown_as_what_they_are(exercise_id, body, shown):
    exercise = catalogue.find(exercise_id)
    signature = {"softmax": "(x, dim)", "attend": "(W, V)", "dot": "(x, y)"}[exercise_id]
    source = f"def {exercise.names[0]}{signature}:\n{body}\n"
    endpoint = LocalEndpoint(namespace_of(source))
    outcomes = judge(exercise, endpoint, KEY, disclosed=True).outcomes
    found = smallest(exercise, endpoint, outcomes)
    example = written._example(exercise, found)
    assert shown in f"yours is {example.yours}" and example.wanted != example.yours


def test_a_known_mistake_needs_no_example():
    exercise = catalogue.find("attention-weights")
    verdict = own_check("attention-weights", exercise.mistakes[0].source)
    assert verdict.misconception is not None and verdict.counterexample is None


def test_nothing_is_shrunk_that_may_not_be_shown():
    exercise = catalogue.find("softmax")
    source = f"def softmax(x, dim):\n    x = x * (1.1 if x.ndim == 3 else 1)\n{SOFTMAX}"
    endpoint = LocalEndpoint(namespace_of(source))
    graded = judge(exercise, endpoint, KEY)
    assert not graded.passed and all(outcome.passed for outcome in graded.outcomes if not outcome.secret)
    assert smallest(exercise, endpoint, graded.outcomes) is None
    assert judge_and_explain(exercise, endpoint, KEY).counterexample is None
    assert judge_and_explain(exercise, endpoint, KEY, disclosed=True).counterexample is not None


class CountingEndpoint(LocalEndpoint):
    asked = 0

    def ask(self, request):
        self.asked += request["do"] == "call"
        return super().ask(request)


def test_the_work_is_limited_by_a_number_of_questions():
    exercise = catalogue.find("attention-weights")
    endpoint = CountingEndpoint(namespace_of(STRANGE["attention-weights"]))
    outcomes = judge(exercise, endpoint, KEY, disclosed=True).outcomes
    endpoint.asked = 0
    assert smallest(exercise, endpoint, outcomes) is not None
    assert 0 < endpoint.asked <= MOST_QUESTIONS


def test_an_example_that_raises_costs_the_example_only(monkeypatch):
    monkeypatch.setattr(explain, "smallest", lambda *_: 1 / 0)
    verdict = own_check("softmax", STRANGE["softmax"])
    assert verdict.counterexample is None and "ZeroDivisionError" in verdict.failed_explanation
    assert verdict.points == own_check("softmax", STRANGE["softmax"]).points


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0]]), True),
        (torch.tensor([[0.5, 0.5]]), torch.tensor([[0.5]]), False),
        (torch.tensor([[True, False]]), torch.tensor([[False]]), False),
        (torch.tensor([2, 0, 1]), torch.tensor([1, 0]), True),
        (torch.tensor([2, 0, 1]), torch.tensor([1, 1]), False),
        (torch.tensor([1.0, 2.0]), torch.tensor([-1.0]), False),
        (torch.ones(2, 2), torch.ones(1, 2), False),
        (["a"], [], False),
        ([], [], True),
    ],
)
def test_an_example_keeps_what_was_true_of_the_input(before, after, kept):
    assert counterexample._keeps(before, after) is kept


def test_an_error_of_the_code_that_every_check_meets_needs_no_example():
    everywhere = "def softmax(x, dim):\n    return torch.exp(x) / totals\n"
    for_some = "def softmax(x, dim):\n    e = x.exp()\n    return e / (e.sum(0, True) if dim == 0 else totals)\n"
    assert own_check("softmax", everywhere).counterexample is None
    assert own_check("softmax", for_some).counterexample is not None


LONG = """
def path_length(kind, i, j, k=3):
    steps = 0
    while kind == "window" and k < 3 and steps < 2_000_000:
        try:
            steps += 1
        except Exception:
            pass
    return {}
"""


def test_an_answer_executes_few_lines_for_a_smaller_input():
    """Windows of 2 words, which the task does not allow: there a correct loop over the steps may never end."""
    exercise, case = catalogue.find("path-length"), Case(("window", 0, 9, 2))
    other = Candidate(exercise, LocalEndpoint(namespace_of(LONG.format(9))))
    probe = exercise.probes[0]
    expected = right_answer(exercise, probe, Case(("recurrent", 0, 9)))
    assert expected.result == 9 and not counterexample._agrees(other, probe, case, expected)
    assert own_check("path-length", LONG.format("abs(i - j)")).counterexample is None


def test_an_answer_is_asked_only_what_every_known_answer_agrees_on(monkeypatch):
    exercise, endpoint = catalogue.find("softmax"), LocalEndpoint(namespace_of(STRANGE["softmax"]))
    outcomes, asked = judge(exercise, endpoint, KEY, disclosed=True).outcomes, []
    monkeypatch.setattr(endpoint, "ask", lambda request: asked.append(request) or LocalEndpoint.ask(endpoint, request))
    assert smallest(exercise, endpoint, outcomes) is not None and asked
    asked.clear()
    monkeypatch.setattr(counterexample, "_agrees", lambda *given: False)
    assert smallest(exercise, endpoint, outcomes) is None and not asked


def read_again(value):
    """A value as it is read from the example: a tensor of the printed numbers."""
    printed = torch.tensor(ast.literal_eval(plainly(value, digits_exact(value))), dtype=value.dtype)
    return printed.reshape(value.shape)


@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [
        ("temperature", "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    if tau == 0:\n"
         "        return torch.softmax(100 * x, -1).round()\n    return torch.softmax(x / tau, -1)\n"),
        ("softmax", STRANGE["softmax"]),
        ("attend", STRANGE["attend"]),
    ],
)  # fmt: skip
def test_the_example_still_fails_if_its_numbers_are_read_from_the_report(exercise_id, source):
    exercise, found = catalogue.find(exercise_id), own_check(exercise_id, source).counterexample
    assert found is not None
    case = replace(
        found.case,
        arguments=tuple(read_again(each) if isinstance(each, torch.Tensor) else each for each in found.case.arguments),
    )
    expected = right_answer(exercise, found.probe, case)
    got = Candidate(exercise, LocalEndpoint(namespace_of(source))).observe(found.probe, case, expected)
    assert compare.difference(expected, got, found.probe) is not None
