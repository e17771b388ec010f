"""What is noticed in an answer whose mistake nobody knows."""

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.probes import SECOND_CALL
from autograder.judging.diagnose import namespace_of
from autograder.judging.judge import judge
from autograder.judging.noticed import Noticed, notice
from autograder.judging.observe import LocalPeer

PROJECT, ATTEND = catalogue.find("project"), catalogue.find("attend")


def noticed(exercise, source: str) -> list[Noticed]:
    """What is noticed in the values of an answer; a known mistake would be named before."""
    return notice(judge(exercise, LocalPeer(namespace_of(source)), b"key").outcomes)


def changed(expression: str) -> str:
    return f"def attend(W, V):\n    Z = W @ V\n    return {expression}\n"


@pytest.mark.parametrize(
    ("expression", "kind", "axis"),
    [
        ("Z * 3", "scaled", 0),
        ("Z - 0.25", "offset", 0),
        ("-Z", "scaled", 0),
        ("Z.abs()", "signs", 0),
        ("Z.flip(-1)", "reversed", 2),
        ("Z.roll(1, -1)", "shifted", 2),
        ("Z.mT", "transposed", 1),
        ("Z[:, :1].expand_as(Z)", "alike", 1),
        ("Z[..., :1].expand_as(Z)", "alike", 2),
        ("torch.zeros_like(Z) + Z[0, 0, 0]", "constant", 0),
        ("torch.cat([Z[:, :-1], Z[:, -1:] * 2], dim=1)", "only the last", 1),
        ("torch.cat([Z[:, :1] * 2, Z[:, 1:]], dim=1)", "only the first", 1),
    ],
)
def test_a_pattern_of_the_values_is_seen(expression, kind, axis):
    found = noticed(ATTEND, changed(expression))
    assert (kind, axis) in [(fact.kind, fact.axis) for fact in found]


def test_a_right_answer_shows_nothing_and_noise_no_pattern():
    assert noticed(ATTEND, changed("Z")) == []
    assert [fact.kind for fact in noticed(ATTEND, changed("torch.sin(17 * Z)"))] == []


def test_an_argument_that_was_changed_is_said_first():
    found = noticed(ATTEND, "def attend(W, V):\n    V.sub_(V.mean(1, keepdim=True))\n    return W @ V\n")
    assert found[0].kind == "changed" and found[0].argument == 1


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("ids[::-1]", "items reversed"),
        ("ids[1:]", "first item missing"),
        ("ids[:-1]", "last item missing"),
        ("[0, *ids]", "an item too many in front"),
        ("[*ids, 0]", "an item too many at the end"),
        ("[1, 2, 3]", "fixed"),
    ],
)
def test_what_a_list_has_in_common_with_the_right_one_is_seen(expression, kind):
    right = catalogue.find("encode-decode").right[0].source
    source = f"{right}\n_right = encode\ndef encode(*a, **k):\n    ids = _right(*a, **k)\n    return {expression}\n"
    assert kind in [fact.kind for fact in noticed(catalogue.find("encode-decode"), source)]


@pytest.mark.parametrize(("expression", "kind"), [("{} + 2", "offset"), ("{} * 3", "scaled")])
def test_plain_numbers_off_by_one_amount_are_seen(expression, kind):
    right = catalogue.find("path-length").right[0].source
    source = (
        f"{right}\n_right = path_length\ndef path_length(*a, **k):\n    return {expression.format('_right(*a, **k)')}\n"
    )
    assert kind in [fact.kind for fact in noticed(catalogue.find("path-length"), source)]


def test_right_for_the_sizes_of_the_example_alone():
    asked = [tuple(probe.draw(torch.Generator()).arguments[1].shape) for probe in ATTEND.visible]
    source = f"def attend(W, V):\n    return W @ V if tuple(V.shape) in {asked} or 1 in W.shape else W @ V + V.sum()\n"
    assert "only these sizes" in [fact.kind for fact in noticed(ATTEND, source)]


@pytest.mark.parametrize(
    ("key", "kind"),
    [("tuple(V.shape)", "kept"), ("(V.shape, V.dtype)", "kept")],
)
def test_an_answer_to_an_earlier_call_is_seen(key, kind):
    source = f"SEEN = {{}}\ndef attend(W, V):\n    return SEEN.setdefault({key}, W @ V)\n"
    assert kind in [fact.kind for fact in noticed(ATTEND, source)]


def test_what_fails_only_at_a_second_call_is_seen():
    names = [probe.name for probe in ATTEND.probes]
    call = names.index(SECOND_CALL) + 2  # counted from 1, and the call before it
    source = f"CALLS = []\ndef attend(W, V):\n    CALLS.append(V)\n    return W @ V + (len(CALLS) == {call})\n"
    assert "a second call" in [fact.kind for fact in noticed(ATTEND, source)]


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("1 in W.shape", "an axis of size 1"),
        ("V.dtype == torch.float64", "float64"),
        ("V.view(-1).sum() != V.sum()", "transposed in memory"),
        ("V.max() > 1e6", "lost digits"),
        ("V.requires_grad", "another gradient"),
    ],
)
def test_what_failing_probes_have_in_common_is_seen(condition, kind):
    source = f"def attend(W, V):\n    return W @ V + (({condition}) * W.sum().item() ** 2)\n"
    assert kind in [fact.kind for fact in noticed(ATTEND, source)]
