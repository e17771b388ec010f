"""A verdict is facts until it is shown: no decision reads a sentence, ours or a learner's."""

import inspect
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from nbformat.v4 import new_code_cell

from autograder import catalogue
from autograder.catalogue.exercise import Case, Probe
from autograder.diagnosis.evidence import explained
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback import errors, messages, report, values, verdict_log
from autograder.grade import execute
from autograder.grade.worker import unchecked
from autograder.inside import wire
from autograder.judging import compare, forbidden
from autograder.judging.judge import draw_key
from autograder.judging.observation import Observation, Outcome, Part, Raised
from autograder.judging.observe import LocalEndpoint, _raised
from autograder.judging.verdict import not_checked
from autograder.learn import try_file
from autograder.reports import feedback, results

ROOT = Path(__file__).resolve().parents[3]
KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
WRITERS = (messages, report, values)
WRITES = {"__add__", "__radd__", "__str__", "__repr__", "__format__", "__hash__", "__len__", "encode", "join"}
SHARES = "Q @ K.mT / Q.shape[-1] ** 0.5"
ANSWERS = {  # exercise, body of an answer
    "right": ("attention-weights", f"(Q, K):\n    return torch.softmax({SHARES}, -1)"),
    "known": ("attention-weights", "(Q, K):\n    return torch.softmax(Q @ K.mT, -1)"),
    "unknown": ("attention-weights", f"(Q, K):\n    return torch.softmax({SHARES}, -1) ** 1.1"),
    "blank": ("attention-weights", "(Q, K):\n    raise NotImplementedError"),
    "stops": ("attention-weights", "(Q, K):\n    raise ValueError('expected shape (1, 2), got argument 1')"),
    "another shape": ("attention-weights", "(Q, K):\n    return Q"),
    "a list": ("attention-weights", "(Q, K):\n    return Q.tolist()"),
    "changes its input": ("attention-weights",
                          f"(Q, K):\n    A = torch.softmax({SHARES}, -1)\n    K.data.zero_()\n    return A"),
    "no gradient": ("attention-weights", f"(Q, K):\n    return torch.softmax({SHARES}, -1).detach()"),
    "imports the answer": (
        "attention-weights",
        "(Q, K):\n    import transformer_ref.model.attention as a\n    return a.attention_weights(Q, K)",
    ),
    "calls the answer": ("softmax", "(x, dim):\n    return torch.softmax(x, dim)"),
    "a quiz": ("predict-shapes", "():\n    return {'scores': (1,)}"),
    "no keys": ("build-vocab", "(*arguments):\n    return {'a': 1}"),
    "nothing": ("build-vocab", "(*arguments):\n    return None"),
}  # fmt: skip


class Unread(str):
    """A sentence that can be shown and joined, and that raises an exception when code inspects it."""


class SentenceRead(BaseException):
    """No Exception, so that nothing that lets a report be written all the same hides it."""


def _look(name):
    def looked_at(self, *_):
        raise SentenceRead(f"a sentence was read: {name}")

    return looked_at


for _name in set(vars(str)) - WRITES - {"__new__", "__doc__", "__getattribute__", "__getnewargs__", "__sizeof__"}:
    setattr(Unread, _name, _look(_name))


def covered(written):
    """What a writer returned, with every sentence in it made unreadable and equal to every other."""
    if isinstance(written, str):
        return Unread("§") if written else ""
    return type(written)(map(covered, written)) if isinstance(written, (list, tuple)) else written


@pytest.fixture
def opaque(monkeypatch):
    """A grader in which every maker of sentences makes opaque ones, for code that must not read sentences."""

    def patch(module, name, function):
        monkeypatch.setattr(module, name, lambda *given, **named: covered(function(*given, **named)))

    def start():
        patch(forbidden, "findings", forbidden.findings)
        patch(forbidden, "called", forbidden.called)
        for module in [each for name, each in sys.modules.items() if name.startswith("autograder.")]:
            for name, value in list(vars(module).items()) if module not in WRITERS else ():
                if inspect.isfunction(value) and value.__module__ in {writer.__name__ for writer in WRITERS}:
                    patch(module, name, value)

    return start


def judged(name: str):
    exercise = catalogue.find(ANSWERS[name][0])
    source = f"def {exercise.names[0]}{ANSWERS[name][1]}\n"
    findings = forbidden.findings([source], exercise, catalogue.assignment_of(exercise))
    return judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), KEY, findings)


def facts_of(verdict) -> dict:
    """The decisions and records of a verdict, without its sentences."""
    cell = new_code_cell(metadata={"nbgrader": {"points": verdict.exercise.points, "grade": True}})
    execute._write(cell, verdict, execute.as_text(verdict))
    kept = cell.outputs[1].metadata["judged"]
    result = results.result_of(verdict.exercise, cell, verdict.points)
    page = asdict(feedback._judged(result, None, feedback.Stored(), "http://127.0.0.1"))
    differences = [outcome.difference for outcome in verdict.outcomes]
    return {
        "diagnosis": explained(verdict).misconception and explained(verdict).misconception.name,
        "quoted": bool(explained(verdict).diagnosis and explained(verdict).diagnosis[1]),
        "differences": [found and (found.kind, found.where, found.index) for found in differences],
        "record": {name: value for name, value in kept.items() if name != "message"},
        "score": cell.outputs[1].data["text/plain"],
        "page": {name: value for name, value in page.items() if name != "report"},
        "unexplained": result.unexplained,
        "try": {name: value for name, value in try_file.as_json(ROOT, verdict).items() if name != "message"},
        "not checked": unchecked({"cells": [cell]}),
        "said": "".join(str(each) for each in (kept["message"], result.report)),
    }


@pytest.mark.parametrize("name", ANSWERS)
def test_no_verdict_point_record_or_page_is_made_from_a_sentence(name, opaque):
    plain = facts_of(judged(name))
    opaque()
    silent = facts_of(judged(name))
    assert set(silent.pop("said")) <= {"§", "\n"}
    assert len(plain.pop("said")) > 20
    assert silent == plain


def test_what_was_not_checked_is_known_without_its_sentence(opaque):
    verdict = not_checked(catalogue.find("attention-weights"), "the judge stopped", excused=True)
    plain = facts_of(verdict)
    opaque()
    silent = facts_of(verdict)
    assert plain["record"]["reason"] == "the judge stopped" and plain["not checked"] == [
        ("attention-weights", "the judge stopped")
    ]
    assert silent.pop("said") != plain.pop("said")
    assert silent == plain


def test_the_log_of_verdicts_is_written_without_reading_what_it_says(opaque, tmp_path):
    def logged(folder):
        verdict_log.add_to_log(folder, "ada", "05_self_attention", KEY, judged("unknown"))
        line = json.loads(verdict_log.path_of(folder, "05_self_attention").read_text(encoding="utf-8"))
        told = [case.pop("difference") for case in line["cases"]]
        return told, {name: value for name, value in line.items() if name not in ("time", "message")}

    said, plain = logged(tmp_path / "plain")
    opaque()
    unsaid, silent = logged(tmp_path / "opaque")
    assert silent == plain
    assert any("expected" in text for text in said if text) and set(unsaid) <= {None, "§"}


def test_a_sentence_that_is_looked_into_raises():
    for look in (lambda s: "a" in s, lambda s: s.split(), lambda s: s == "a", lambda s: s[0], lambda s: s.lower()):
        with pytest.raises(SentenceRead, match="was read"):
            look(Unread("abc"))
    assert f"{Unread('abc')}." == "abc."


@pytest.mark.parametrize(
    ("expected", "got", "facts"),
    [
        ((1, [2, 3]), (1, [2, 4]), ("value", (Part("result", 1), Part("index", 1)), 3, 4)),
        ({"a": (1, 2)}, {"a": (1, 3)}, ("value", (Part("key", "a"),), (1, 2), (1, 3))),
        ([4, 5], [4], ("length", (), [4, 5], [4])),
        ({"a": 1}, {"b": 1}, ("keys", (), ("a",), ("b",))),
        (torch.ones(2), torch.ones(3), ("shape", (), (2,), (3,))),
        (torch.ones(2), torch.ones(2).double(), ("dtype", (), torch.float32, torch.float64)),
        (1, Raised("KeyError", "no"), ("error", (), None, Raised("KeyError", "no"))),
        (Raised("KeyError", ""), None, ("not raised", (), Raised("KeyError", ""), None)),
        ((1, 2), (1, 2, 3), ("type", (), (1, 2), (1, 2, 3))),
    ],
)
def test_a_difference_is_its_kind_place_and_values(expected, got, facts):
    found = compare.value_difference(expected, got, 1e-4, 1e-5)
    assert (found.kind, found.where, found.expected, found.got) == facts


# --- the words of others ---------------------------------------------------------------------------------------------


def said_of(name: str, body: str, key: bytes | None = None) -> str:
    """What is said of a function in a check; with a key, in one that shows what the hidden inputs tell."""
    exercise = catalogue.find(name)
    endpoint = LocalEndpoint(namespace_of(f"def {exercise.names[0]}{body}\n"))
    return messages.explanation(judge_and_explain(exercise, endpoint, key, disclosed=key is not None))


@pytest.mark.parametrize(
    "text",
    [
        "expected an integer",
        "a plain Python number",
        "None, without `return`",
        "to be raised",
        "a tuple of",
        "which is more than a check reads",
    ],
)
def test_a_text_that_came_back_is_named_and_not_read(text):
    """The kind of the result was found by looking for words of ours in a sentence that quotes the learner's."""
    said = said_of("attention-weights", f"(Q, K):\n    return {text!r}")
    assert said.endswith("The result is not of the type that the docstring in the cell describes.")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("AttributeError", "'Tensor' object has no attribute 'soft'"),
        ("TypeError", "attention_weights() takes 1 positional argument but 2 were given"),
        ("ValueError", "numpy() of argument 1 is not it"),
        ("RuntimeError", 'Module [X] is missing the required "forward" function'),
    ],
)
def test_what_a_learner_raises_in_the_words_of_python_is_shown_and_not_read(error, text):
    said = said_in_a_notebook("attention-weights", f"def attention_weights(Q, K):\n    raise {error}({text!r})")
    assert f"{error}: {text}." in said
    assert said.endswith(errors.OWN)


@pytest.mark.parametrize(
    ("body", "words_of_ours"),
    [
        ("(Q, K):\n    return Q.soft", "A value of type Tensor has no soft"),
        ("(Q):\n    return Q", "calls attention_weights with the arguments of the signature"),
        ("(Q, K):\n    return Q if Q > 0 else K", "neither true nor false"),
        ("(Q, K):\n    return (Q + torch.ones(1, requires_grad=True)).numpy()", "converted to NumPy"),
        ("(Q, K):\n    return unknown", "No line that has run gives unknown a value"),
    ],
)
def test_an_error_of_pythons_or_torchs_is_explained_by_what_it_is(body, words_of_ours):
    assert words_of_ours in said_of("attention-weights", body)


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("head-stats", "(A):\n    return dict.fromkeys(('entropy', 'mean_distance', 'diagonal_share'))", "got None. "),
        ("additive-context", "(s, H, *rest):\n    return None, None", "expected a tensor, got None. "),
        ("attend", "(W, V):\n    pass", "expected a tensor, got None (a function without `return` gives None). "),
    ],
)
def test_of_a_part_that_is_none_no_missing_return_is_said(name, body, words):
    said = said_of(name, body)
    assert words in said and ("`return`" in said) == (name == "attend"), said


def test_a_key_is_shown_as_the_learner_wrote_it():
    said = said_of("build-vocab", "(sentences, *rest):\n    return {0: '<pad>', (1, 2): 'a'}")
    assert "the key 0 should not be there" in said, said
    assert compare.value_difference({"0": 1}, {0: 1}, 0, 0) is None


def test_a_mask_of_ones_and_zeros_is_told_that_a_boolean_is_wanted():
    """It has to keep the dtype of its input, which is whole numbers."""
    said = said_of("padding-mask", "(ids, pad):\n    return (ids != pad).char()[:, None, :, None]")
    assert said.endswith(
        "expected dtype bool, got int8. A boolean tensor is expected: True or False in every position."
    )


def test_a_dtype_that_no_input_has_is_not_said_to_be_that_of_the_input():
    said = said_of("layer-cost", "(n, d, k):\n    return torch.tensor(1.0)")
    assert "keep the dtype of its input" not in said


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("mha-params", "(d_model, h, bias=True):\n    return 4 * (512 * 512 + 512)"),
        ("noam-lr", "(step, d_model, warmup):\n    return 1 * 1 ** -0.5"),
        ("path-length", "(*given):\n    return 1"),
    ],
)
def test_one_number_for_everything_is_not_said_to_be_kept_from_an_earlier_call(name, body):
    assert "earlier call" not in said_of(name, body, KEY)


def test_a_value_of_numpys_in_the_learners_function_explains_an_error_there():
    source = "def attention_weights(Q, K):\n    q = Q.numpy()\n    return torch.softmax(q, -1)\n"
    namespace = {"torch": torch}
    exec(source, namespace)  # one namespace, as a notebook's is
    assert "converted to NumPy" in messages.explanation(
        judge_and_explain(catalogue.find("attention-weights"), LocalEndpoint(namespace), None)
    )


def test_a_class_without_forward_is_no_blank():
    source = "class SelfAttention(nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n"
    verdict = judge_and_explain(catalogue.find("self-attention"), LocalEndpoint(namespace_of(source)), None)
    assert verdict.state == "wrong"
    assert "no method called forward" in messages.explanation(verdict)


def said_in_a_notebook(exercise, source):
    """Of an answer in one namespace, as a notebook's is."""
    namespace = {"torch": torch, "nn": torch.nn}
    exec(source, namespace)
    return messages.explanation(judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace), None))


@pytest.mark.parametrize(
    ("body", "words_of_ours"),
    [
        ("(K, Q):\n    return Q.soft", "yours is attention_weights(K, Q): K gets the value that is meant for Q."),
        ("(x, Q=None):\n    return x.soft", "yours is attention_weights(x, Q): x gets the value that is meant for Q."),
        ("(queries, keys):\n    return queries.soft", "A value of type Tensor has no soft"),
    ],
)
def test_arguments_in_another_order_explain_an_error(body, words_of_ours):
    assert words_of_ours in said_in_a_notebook("attention-weights", f"def attention_weights{body}\n")


def test_names_that_no_function_has_are_not_shown():
    sent = {"type": "TypeError", "message": "no", "source": "", "parameters": ["K", "Q\n✓ all checks passed"]}
    assert _raised({"error": sent}).parameters == ()
    assert _raised({"error": sent | {"parameters": ["K", "Q"] * 500}}).parameters == ("K", "Q") * 10


def test_a_methods_arguments_are_compared_and_a_constructors_are_not():
    source = "class SelfAttention(nn.Module):\n    def __init__(self, a, x, b):\n        super().__init__()\n"
    said = said_in_a_notebook("self-attention", f"{source}        self.width = a.soft\n")
    assert "A value of type int has no soft" in said and "meant for" not in said
    said = said_in_a_notebook(
        "self-attention", f"{source}    def forward(self, mask, x=None):\n        return x.soft\n"
    )
    assert "yours is forward(mask, x): mask gets the value that is meant for x." in said


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_torch_still_says_what_we_know_its_errors_by():
    class Unmade(torch.nn.Module):
        def __init__(self, part):
            self.part = part

    def written_over():
        shares = torch.ones(2, requires_grad=True).exp()
        shares += 1
        shares.sum().backward()

    said = []
    for wrong in (
        lambda: torch.nn.Linear(2, 2).load_state_dict({}),
        lambda: bool(torch.ones(2)),
        lambda: torch.ones(2).topk(3),
        lambda: Unmade(torch.nn.ReLU()),
        lambda: Unmade(torch.nn.Parameter(torch.ones(2))),
        lambda: torch.nn.Embedding(3, 2)(torch.ones(2)),
        lambda: torch.nn.MultiheadAttention(4, 1)(*[torch.ones(2, 3, 4)] * 3, attn_mask=torch.ones(3, 3)),
        lambda: torch.nn.MultiheadAttention(4, 1)(*[torch.ones(2, 3, 4)] * 3, attn_mask=torch.ones(3, 1, 2, 2)),
        lambda: torch.nn.Transformer(4, 1, 1, 1, 4)(torch.ones(2, 3, 4), torch.ones(2, 5, 4)),
        lambda: torch.nn.MultiheadAttention(4, 1)(*[torch.ones(2, 3, 4)] * 3, key_padding_mask=torch.ones(2, 3) > 2),
        lambda: torch.ones(2, requires_grad=True).add_(1),
        lambda: torch.ones(2, requires_grad=True)[0].add_(1),
        written_over,
        lambda: torch.zeros(2).multinomial(1),
        lambda: torch.ones(2, requires_grad=True).numpy(),
    ):
        with pytest.raises((RuntimeError, AttributeError, AssertionError)) as raised:
            wrong()
        said.append(str(raised.value))
    begun = zip(said, errors.TORCH_SAYS, strict=True)
    assert [text for text, begins in begun if not text.startswith(begins)] == []


def test_what_does_not_travel_says_why_beside_its_words():
    kinds = [wire.copy(value).kind for value in (torch.eye(2).to_sparse(), torch.zeros(9_000_000).double(), {1, 2})]
    assert kinds == ["layout", "large", "opaque"]


def test_a_quiz_never_shows_the_right_list_or_the_next_item():
    exercise = catalogue.find("predict-shapes")
    quiz = Probe("a quiz", lambda generator: Case(()), hidden=False, hide_expected=True)
    for expected, got in (
        ([4, 77], [4, 5]),
        ([4, 77], [4]),
        (77.0, float("nan")),
        (torch.tensor([77]), torch.tensor([1])),
    ):
        shown = Observation(expected), Observation(got)
        outcome = Outcome(quiz, Case(()), None, *shown, compare.difference(*shown, quiz))
        verdict = replace(not_checked(exercise, ""), unasked=None, outcomes=(outcome,))
        assert "77" not in report.as_text(verdict) + messages.explanation(verdict)


def test_a_generator_that_is_left_alone_is_said_of_a_hidden_check_too():
    hidden = Probe("hidden", lambda generator: Case(()), checks=frozenset({"generator"}))
    shown = Observation(1), Observation(1)
    outcome = Outcome(hidden, Case(()), None, *shown, compare.difference(*shown, hidden))
    verdict = replace(not_checked(catalogue.find("attention-weights"), ""), unasked=None, outcomes=(outcome,))
    assert "the generator that was passed in was not used" in messages.explanation(verdict)


def test_a_report_names_a_generator_by_its_kind_and_not_by_its_address():
    source = "def score_std(d, n, generator):\n    raise ValueError\n"
    shown = report.as_text(judge_and_explain(catalogue.find("score-std"), LocalEndpoint(namespace_of(source)), None))
    assert "generator = a torch.Generator" in " ".join(shown.split()) and " at 0x" not in shown
