"""Watching an answer changes nothing about its results, and leaves torch as it was."""

import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from judged_cells import Notebook

from autograder import catalogue
from autograder.catalogue.ch04_softmax.shared import LIBRARY_SOFTMAX
from autograder.inside import recorder
from autograder.judging import judge
from autograder.judging.observe import Candidate, LocalEndpoint

WRITTEN = "def softmax(x, dim):\n    e = (x - x.amax(dim, True)).exp()\n    return e / e.sum(dim, True)\n"


def own(x):
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


class Marked(torch.Tensor):
    """A subclass that keeps its type."""


def ran(function, names=LIBRARY_SOFTMAX):
    called = []
    with recorder.watching(names, called):
        result = function()
    return result, called


def gradient(function):
    def run():
        x = table().requires_grad_()
        function(x).pow(2).sum().backward()
        return x.grad

    return run


def table():
    return torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Boxed(torch.Tensor):
    """A subclass that holds another tensor and computes with it by code of its own."""

    @staticmethod
    def __new__(cls, held):
        made = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        given = [argument.held if isinstance(argument, cls) else argument for argument in args]
        return function(*given, **(kwargs or {}))


HONEST = {
    "gradients": gradient(own),
    "a subclass": lambda: own(table().as_subclass(Marked)),
    "a subclass with code of its own": lambda: own(Boxed(table())),
    "half precision": lambda: own(table().bfloat16()),
    "vmap": lambda: torch.func.vmap(own)(table()),
    "a derivative": lambda: torch.func.jacrev(own)(table()[0, 0]),
    "forward derivatives": lambda: torch.func.jacfwd(own)(table()[0, 0]),
    "script": lambda: torch.jit.trace(own, (table(),))(table()),
    "checkpoint": gradient(lambda x: torch.utils.checkpoint.checkpoint(own, x, use_reentrant=False)),
    "sparse": lambda: torch.sparse.mm(table()[0].to_sparse(), table()[0].mT),
    "quantized": lambda: torch.quantize_per_tensor(table().float(), 0.1, 0, torch.qint8).dequantize(),
    "inference": lambda: torch.inference_mode()(own)(table()),
    "logsumexp": gradient(lambda x: (x - x.logsumexp(-1, keepdim=True)).exp()),
    "another loss": lambda: F.kl_div(table(), table().abs(), reduction="sum"),
    "another distribution": lambda: torch.distributions.Normal(table(), 1.0).log_prob(table()),
    "a layer": lambda: torch.func.functional_call(
        torch.nn.Linear(5, 2).double(), (dict(weight=table()[0, :2], bias=table()[0, 0, :2])), (table(),)
    ).detach(),
}


@pytest.mark.parametrize("function", HONEST.values(), ids=HONEST)
def test_a_result_is_the_same_when_it_is_watched(function):
    expected = function()
    result, called = ran(function)
    assert called == []
    assert type(result) is type(expected) and result.dtype == expected.dtype
    assert torch.equal(result, expected)


@pytest.mark.parametrize("error", [None, ValueError])
def test_nothing_is_left_of_a_watch(error):
    before = (threading.getprofile(), torch.distributions.Categorical.__init__.__code__)

    def answer():
        if error:
            raise error

    try:
        ran(answer)
    except ValueError:
        pass
    assert (threading.getprofile(), torch.distributions.Categorical.__init__.__code__) == before
    assert not torch.overrides._get_current_function_mode_stack()
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_a_lent_function_does_what_it_did():
    make = torch.distributions.Categorical
    logits = table()[0]
    result, called = ran(lambda: make(logits=logits).logits)
    assert torch.equal(result, make(logits=logits).logits) and called == ["Categorical"]
    assert ran(lambda: make(validate_args=True, probs=logits.abs()).probs)[0].shape == (4, 5)


def test_a_function_is_named_once_by_the_name_it_was_called_by():
    labels = torch.tensor([0, 1, 2, 3])
    assert ran(lambda: F.cross_entropy(table()[0], labels))[1] == ["cross_entropy"]


@pytest.mark.parametrize(
    ("function", "names", "called"),
    [
        (lambda: torch.distributions.Categorical(logits=table()).probs, LIBRARY_SOFTMAX, ["Categorical"]),
        (lambda: torch.distributions.OneHotCategorical(logits=table()).mean, LIBRARY_SOFTMAX, ["Categorical"]),
        (
            lambda: own(torch.distributions.Categorical(logits=table()).probs) + table().softmax(-1),
            LIBRARY_SOFTMAX,
            ["softmax", "Categorical"],
        ),
        (
            lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2), 1)(torch.ones(3, 1, 4)),
            ["TransformerEncoderLayer", "TransformerEncoder", "MultiheadAttention", "layer_norm"],
            ["TransformerEncoder"],
        ),
    ],
)
def test_what_a_forbidden_function_calls_itself_is_not_named(function, names, called):
    assert ran(function, names)[1] == called


def test_a_name_without_an_entry_stands_for_the_function_and_the_kernel_that_bear_it():
    assert ran(lambda: F.cosine_similarity(table(), table()), ["cosine_similarity", "conv2d"])[1] == [
        "cosine_similarity"
    ]
    assert ran(lambda: torch.ops.aten._log_softmax(table(), -1, False), ["log_softmax"])[1] == ["log_softmax"]


def test_a_thread_that_is_older_than_a_question_is_watched_and_computes_the_same(notebook):
    cells = (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(int).result()\n",
        WRITTEN.replace("softmax", "_shares")
        + "def softmax(x, dim):\n    return pool.submit(_shares, x, dim).result()\n",
    )
    judged = notebook.judged("softmax", *cells)
    assert judged["points"] == judged["of"] and not judged["forbidden"]


def test_a_watched_answer_is_said_to_return_what_it_returned():
    """A value that cannot be serialized keeps its kind, although it is copied once more before it is sent."""
    exercise = catalogue.find("softmax")
    for result in (torch.ones(2).to_sparse(), object(), {1, 2}, torch.ones(2, dtype=torch.complex64)):
        replies = []
        for forbidden in ((), LIBRARY_SOFTMAX):
            candidate = Candidate(exercise, LocalEndpoint({"softmax": lambda x, dim, result=result: result}), forbidden)
            replies.append(candidate._ask("call", name="softmax", arguments=(table(), 0))["result"])
        assert vars(replies[0]) == vars(replies[1])


def test_what_the_judge_lends_does_not_count():
    with recorder.watching(LIBRARY_SOFTMAX, called := []):
        with recorder.paused():
            torch.softmax(table(), -1)
    assert called == []


def test_only_exercises_that_forbid_something_are_watched():
    seen = []

    def softmax(x, dim):
        seen.append(len(torch.overrides._get_current_function_mode_stack()))
        return torch.softmax(x, dim)

    for forbidden in ((), ("softmax",)):
        endpoint = LocalEndpoint({"softmax": softmax})
        candidate = Candidate(catalogue.find("softmax"), endpoint, forbidden)
        candidate._ask("call", name="softmax", arguments=(table(), 0))
        assert candidate.called == set(forbidden)
    assert seen == [0, 1]


@pytest.mark.parametrize("called", [None, 3, "softmax", {"softmax": 1}, [["softmax"]], [1.5, torch.ones(3), None]])
def test_a_reply_that_garbles_what_was_called_names_nothing(called):
    class Liar(LocalEndpoint):
        def ask(self, request):
            return {**super().ask(request), "called": called}

    exercise = catalogue.find("softmax")
    verdict = judge.judge(exercise, Liar(dict(exercise.reference)), None)
    assert verdict.passed and not verdict.forbidden


def test_watching_does_not_import_the_compiler():
    """It takes a second, which every submission would pay."""
    code = (
        "import sys, torch\nfrom autograder.inside import recorder\n"
        "with recorder.watching(('softmax',), []):\n    (torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def notebook():
    return Notebook()


def test_a_learners_own_check_names_a_forbidden_call(notebook):
    helper = "def shares(x, dim):\n    return getattr(torch, 'soft' + 'max')(x, dim)\n"
    outcome = notebook.checked("softmax", helper, "def softmax(x, dim):\n    return shares(x, dim)\n")
    assert outcome["earned"] == 0 and not outcome["passed"] and "softmax does the whole exercise" in outcome["text"]


def test_in_a_learners_own_check_too_an_own_softmax_is_no_shortcut(notebook):
    use = "def log_softmax(x, dim):\n    return torch.log(softmax(x, dim))\n"
    outcome = notebook.checked("log-softmax", WRITTEN, use)
    assert outcome["earned"] > 0  # less the underflow, which a forbidden call would not leave anything of


def test_in_a_learners_own_check_too_an_import_of_the_answer_is_named(notebook):
    cell = (
        "def attention_weights(Q, K):\n    from transformer_ref.model.attention import attention_weights as a\n"
        "    return a(Q, K)\n"
    )
    assert "part of the course" in notebook.checked("attention-weights", cell)["text"]
