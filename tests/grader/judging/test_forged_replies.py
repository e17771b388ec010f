"""Whatever a process answers instead of a reply, the judge reaches a verdict: none of it raises, none of it earns."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder import catalogue, check
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation, seen
from autograder.feedback.report import UNWRITTEN, as_text
from autograder.feedback.verdict_log import as_record
from autograder.inside import wire
from autograder.judging import observe
from autograder.judging.judge import draw_key
from autograder.judging.observe import MAX_CALLBACK_NUMBERS, EndpointGone, LocalEndpoint, RemoteEndpoint
from autograder.judging.verdict import Verdict
from autograder.sandbox import runner

STAGED = ["generate", "residual-trace", "freeze-except", "linear-attention", "online-softmax"]
KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
EXERCISES = [catalogue.find(name) for name in ("attention-weights", "self-attention", "encode-decode", "build-vocab")]
FORGED_ERROR = {"type": "Oops\x1b[2J", "message": "\x1b[2J", "source": "x  # \x1b[2J", "line": 1}
GARBAGE = (
    None,
    True,
    -1,
    2**62,
    math.inf,
    math.nan,
    "",
    "x" * wire.MAX_TEXT,
    b"bytes",
    [],
    (),
    {},
    [[[[]]]],
    {"error": {}},
    [None] * 9,
    tuple([torch.ones(1)] * 40),
    {"a": {"b": torch.zeros(0, 3)}},
    torch.ones(2, 2, 2, dtype=torch.bool),
    torch.tensor(math.nan),
    torch.Generator().manual_seed(3),
    wire.Opaque(""),
    wire.Opaque("builtins."),
    [["w", [1] * 5_000, True]],
    [["w", [2**62, 2**62], True]] * 3,
    [["w", [-1], True]],
    [["w", [10**6, 10], True]],
    [["w", [3, 3], True]] * 5_000,
    {"type": "E" * 5_000, "message": "argument " + "9" * 5_000, "line": math.inf, "source": "\x00\ud800"},
    {"type": "ValueError", "message": "no", "line": 2**62, "source": "", "kinds": [{}, 3, "ValueError"]},
)


class ForgingEndpoint:
    """An answer's replies, on the road again as `forge` makes them."""

    def __init__(self, namespace: Mapping[str, Any], forge: Callable[[dict], Any]) -> None:
        self._honest, self._forge = LocalEndpoint(namespace), forge

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        forged = wire.copy(self._forge(self._honest.ask(request)))
        channel = type("Channel", (), {"send": lambda self, *_: None, "receive": lambda self: forged})()
        channel.received = [0, 0]
        return RemoteEndpoint(channel).ask({})


def judged(exercise, forge: Callable[[dict], Any], source: str = "") -> Verdict:
    """The verdict on the right answer, or on another, whose replies are forged."""
    namespace = namespace_of(source) if source else dict(exercise.reference)
    verdict = judge_and_explain(exercise, ForgingEndpoint(namespace, forge), KEY)
    assert UNWRITTEN not in as_text(verdict) and as_record(verdict)["exercise"] == exercise.id
    assert not verdict.failed_explanation
    assert all(seen(exercise, outcome) for outcome in verdict.outcomes if not outcome.passed)
    return verdict


def places(reply: Any, before: tuple = ()) -> Iterator[tuple]:
    """The paths of everything in a reply, containers too."""
    yield before
    if isinstance(reply, dict):
        for key, value in reply.items():
            yield from places(value, (*before, key))
    elif isinstance(reply, (list, tuple)):
        for index, value in enumerate(reply):
            yield from places(value, (*before, index))


def replaced(reply: Any, place: tuple, by: Any) -> Any:
    """The reply with something else at the place."""
    if not place:
        return by
    if isinstance(reply, dict):
        return {key: replaced(value, place[1:], by) if key == place[0] else value for key, value in reply.items()}
    items = [replaced(value, place[1:], by) if index == place[0] else value for index, value in enumerate(reply)]
    return tuple(items) if isinstance(reply, tuple) else items


def without(reply: Any, place: tuple) -> Any:
    """The reply without what is at the place."""
    if len(place) == 1:
        if isinstance(reply, dict):
            return {key: value for key, value in reply.items() if key != place[0]}
        return type(reply)(value for index, value in enumerate(reply) if index != place[0])
    return replaced(reply, place[:1], without(reply[place[0]], place[1:]))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
@pytest.mark.parametrize("garbage", range(len(GARBAGE)))
def test_garbage_in_place_of_every_reply_earns_nothing(exercise, garbage):
    assert judged(exercise, lambda reply: GARBAGE[garbage]).points == 0


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
@pytest.mark.parametrize("garbage", range(len(GARBAGE)))
def test_garbage_in_place_of_every_result_is_wrong(exercise, garbage):
    verdict = judged(exercise, lambda reply: {**reply, "result": GARBAGE[garbage]} if "result" in reply else reply)
    assert verdict.visible_points == 0
    assert sum(outcome.passed for outcome in verdict.outcomes) <= 2  # an empty list may be right twice


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("garbage", [{"x": math.nan}, torch.ones(2, 3)], ids=["dict", "tensor"])
def test_garbage_in_place_of_all_that_a_stage_says_is_wrong(name, garbage):
    def forge(reply: dict) -> dict:
        if "result" not in reply:
            return {"error": garbage} if "error" in reply else reply
        said = reply["result"]
        return {**reply, "result": dict.fromkeys(said, garbage) if isinstance(said, dict) else garbage}

    assert judged(catalogue.find(name), forge).points == 0


def test_a_parameter_of_twenty_thousand_axes_is_refused_at_once():
    shape = [["w", [1] * 20_000, True]]
    verdict = judged(
        catalogue.find("self-attention"),
        lambda reply: {**reply, "parameters": shape} if "parameters" in reply else reply,
    )
    assert verdict.points == 0
    assert "more than 8 axes" in explanation(verdict)


@pytest.mark.xdist_group("drawn-garbage")
@settings(derandomize=True, deadline=None, max_examples=250)
@given(st.data())
def test_any_change_of_any_reply_ends_in_a_verdict(data):
    exercise = data.draw(st.sampled_from(EXERCISES))
    known = data.draw(st.sampled_from(["", *(misconception.source for misconception in exercise.mistakes)]))

    def forge(reply: dict) -> Any:
        place = data.draw(st.sampled_from(list(places(reply))))
        if place and data.draw(st.booleans()):
            return without(reply, place)
        return replaced(reply, place, GARBAGE[data.draw(st.integers(0, len(GARBAGE) - 1))])

    assert 0 <= judged(exercise, forge, known).points <= exercise.points


@pytest.mark.parametrize("field", ["inputs", "changed", "result"])
def test_a_reply_without_a_field_costs_the_probe(field):
    exercise = catalogue.find("attention-weights")
    assert judged(exercise, lambda reply: {k: v for k, v in reply.items() if k != field}).points == 0


@pytest.mark.parametrize("more", [(), (torch.ones(2),) * 3])
def test_inputs_too_few_or_too_many_are_a_wrong_answer(more):
    exercise = catalogue.find("attention-weights")
    verdict = judged(exercise, lambda reply: {**reply, "inputs": more} if "inputs" in reply else reply)
    assert verdict.points == 0
    assert "cannot be read" in explanation(verdict)


def test_a_line_that_is_no_number_is_none():
    error = {"type": "ValueError", "message": "no", "line": math.inf, "source": "x", "kinds": []}
    verdict = judged(catalogue.find("attention-weights"), lambda reply: reply if "kinds" in reply else {"error": error})
    assert verdict.points == 0
    assert "ValueError" in as_text(verdict) and "at your line" not in as_text(verdict)


@pytest.mark.parametrize(
    "shapes",
    [3, [3], [["K"]], [["K", 3]], [[3, [1]]], [["K", [1.5]]], [["K", [-1]]], [["K", [10**30]]], [["K", [1] * 99]]],
)
def test_shapes_that_are_none_are_not_said(shapes):
    error = {"type": "IndexError", "message": "no", "line": 1, "source": "K[9]", "kinds": [], "shapes": shapes}
    verdict = judged(catalogue.find("attention-weights"), lambda reply: reply if "kinds" in reply else {"error": error})
    assert "In that line" not in as_text(verdict)


def calls(arguments: list) -> tuple[int, list]:
    """How often a function that was passed in ran before it was refused, and what came back."""
    ran = []
    request = {"do": "call", "with": {"f": lambda x: ran.append(1)}}
    replies = iter([{"callback": 0, "arguments": (each,)} for each in arguments] + [{"result": 1}])
    sent = []
    channel = type("Channel", (), {"received": [0, 0], "receive": lambda self: next(replies)})()
    channel.send = lambda message, proxies=None: (
        sent.append(message) or (proxies.append(message["with"]["f"]) if proxies is not None else None)
    )
    RemoteEndpoint(channel).ask(request)
    return len(ran), sent[1:]


def test_a_handed_over_function_works_on_so_many_numbers_in_all():
    share = torch.ones(MAX_CALLBACK_NUMBERS // 4)
    ran, replies = calls([share] * 9)
    assert ran == 1  # a tensor of one axis counts its numbers and its axis
    assert [("error" in reply) for reply in replies] == [False] + [True] * 8
    assert "numbers in all" in replies[-1]["error"]


@pytest.mark.parametrize(
    "argument",
    [
        torch.ones(0, 10**6),
        ["x"] * (MAX_CALLBACK_NUMBERS + 1),
        "x" * (MAX_CALLBACK_NUMBERS + 1),
        {"a": torch.ones(MAX_CALLBACK_NUMBERS)},
        observe.MAX_CALLBACK_INT + 1,
        -(2**62),
    ],
)
def test_a_handed_over_function_is_not_called_with_too_much(argument):
    assert calls([argument])[0] == 0


@pytest.mark.parametrize("variant", catalogue.find("equivariance-gap").correct, ids=lambda variant: variant.name)
def test_honest_calls_of_a_handed_over_function_are_far_below_what_is_allowed(variant, monkeypatch):
    monkeypatch.setattr(observe, "MAX_CALLBACK_NUMBERS", MAX_CALLBACK_NUMBERS // 4)
    exercise = catalogue.find("equivariance-gap")
    assert judge_and_explain(exercise, LocalEndpoint(namespace_of(variant.source)), KEY).points == exercise.points


def test_a_process_that_sends_without_end_is_not_listened_to_for_ever():
    class Talker:
        def __init__(self):
            self.received = [0, 0]

        def send(self, *_):
            return None

        def receive(self):
            self.received = [self.received[0] + wire.MAX_HEADER_BYTES, 0]
            return {"callback": 0, "arguments": ()}

    with pytest.raises(EndpointGone, match="cannot be read"):
        RemoteEndpoint(Talker()).ask({})


@pytest.mark.xdist_group("drawn-garbage")
def test_a_learners_check_survives_every_garbage_too(capsys, part):
    for garbage in part(GARBAGE, 4):
        namespace = {"attention_weights": lambda Q, K, garbage=garbage: garbage, "check": check.check}
        assert eval("check('attention-weights')", namespace) == 0
    assert "Traceback" not in capsys.readouterr().out


def test_a_function_handed_over_has_only_some_memory():
    request = {"callback": 0, "arguments": (torch.zeros(20_000, 1), torch.zeros(20_000))}
    reply = observe._Counted().call([lambda a, b: (a + b).sum().item()], request)
    assert "memory" in reply["error"]
    assert observe._Counted().call([lambda a, b: a.numel()], request) == {"value": 20_000}


def test_functions_handed_over_have_only_some_time(monkeypatch):
    monkeypatch.setattr(observe, "MAX_CALLBACK_SECONDS", -1.0)
    assert "seconds in all" in observe._Counted().call([lambda: 1], {"callback": 0, "arguments": ()})["error"]


def test_no_encoding_of_positions_makes_a_table_of_any_size():
    probes = catalogue.find("check-criteria").probes
    handed_over = [probe.draw(torch.Generator().manual_seed(1)).arguments[0] for probe in probes]
    assert len(handed_over) > 10
    for fn in handed_over:
        assert fn(10_000, 8).shape == (10_000, 8)
        for T, d in ((250_000_000, 4), (0, 12_000_000), (-1, 8), (10**6, 512)):
            with pytest.raises(ValueError, match="at most 16,000,000 numbers"):
                fn(T, d)


HOSTILE = "\x1b]52;c;cm0=\x07\x1b[2J\u202e\x9b"
SENT_RAW = {
    "its message": f"def row_normalize(x):\n    raise ValueError({HOSTILE!r})\n",
    "its name": f"def row_normalize(x):\n    raise type('Oops' + {HOSTILE!r}, (Exception,), {{}})('x')\n",
    "the type of a result": f"def row_normalize(x):\n    return type('Oops' + {HOSTILE!r}, (), {{}})()\n",
    "a missing attribute": f"def row_normalize(x):\n    return getattr(x, {HOSTILE!r})\n",
}


@pytest.mark.parametrize("place", SENT_RAW)
def test_no_report_holds_a_control_character_of_a_learners(place):
    exercise = catalogue.find("row-normalize")
    verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(SENT_RAW[place])), KEY)
    for text in (as_text(verdict), explanation(verdict), json.dumps(as_record(verdict), ensure_ascii=False)):
        assert not set("\x1b\x07\u202e\x9b") & set(text)


def test_the_type_of_an_error_that_no_class_could_have_is_not_shown():
    assert observe._raised({"error": FORGED_ERROR}).type == observe.UNNAMED
    assert runner._described(FORGED_ERROR)["type"] == observe.UNNAMED
    assert "\x1b" not in runner._described(FORGED_ERROR)["message"] + observe._raised({"error": FORGED_ERROR}).source
