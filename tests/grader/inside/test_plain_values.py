"""Lists, dictionaries and texts: the report shows the first wrong item, never a dump."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.catalogue.exercise import Case, Exercise, Misconception, Probe, Section
from autograder.diagnosis.known_mistakes import diagnose
from autograder.feedback.messages import seen
from autograder.feedback.render import WIDTH
from autograder.feedback.report import as_text
from autograder.inside import responder, wire
from autograder.judging.compare import difference, value_difference
from autograder.judging.observation import Observation, Outcome, Part
from autograder.judging.verdict import Verdict

SECTION = Section("02", "A title", "sec-02-title")
PROBE = Probe("a probe", lambda g: Case(()), hidden=False, checks=frozenset({"inputs"}))
PLAIN = st.recursive(
    st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=9,
)


def told(expected, got):
    return value_difference(expected, got, 1e-4, 1e-5)


def exercise(*known):
    return Exercise("a", "1", 1, 0, SECTION, {"a": lambda: 0}, (PROBE,), known, (), ("one", "two", "three"))


def outcome(expected, got, inputs=((), ())):
    shown = [Observation(value, before) for value, before in zip((expected, got), inputs, strict=True)]
    return Outcome(PROBE, Case(()), None, *shown, difference(*shown, PROBE))


def said(expected, got):
    return seen(exercise(), outcome(expected, got))


def test_numbers_that_round_alike_are_told_with_the_decimals_in_which_they_differ():
    assert said(0.66524, 0.66458) == "expected 0.6652, got 0.6646"
    assert said(torch.tensor([1.0, 0.00212]), torch.tensor([1.0, 0.00214])).endswith("got 0.00214")


@given(PLAIN)
def test_a_plain_value_never_differs_from_itself(value):
    assert told(value, wire.copy(value)) is None


@given(PLAIN, PLAIN)
def test_two_plain_values_differ_exactly_when_python_says_so(one, other):
    assert (told(one, other) is None) == (one == other)


@pytest.mark.parametrize(
    ("expected", "got", "text"),
    [
        ([4, 5, 6], [4, 7, 8], "at index 1: expected 5, got 7"),
        ([4, 5, 6], [4, 5], "expected 3 items, got 2; the next one should be 6"),
        ([4, 5], [4, 5, 6, 7], "expected 2 items, got 4; the first too many is 6"),
        ([("e", "s"), ("l", "o")], [("e", "s"), ("o", "w")], "at index 1: expected ('l', 'o'), got ('o', 'w')"),
        ([("e", "s")], ["es"], "at index 0: expected ('e', 's'), got the text 'es'"),
        ({"a": (2, 3)}, {"a": [2, 4]}, "at key 'a': expected (2, 3), got [2, 4]"),
        ([4, 5], [4, None], "at index 1: expected a plain Python number, got None"),
        ([4, 5], wire.Opaque("builtins.set"), "expected a list, got a set"),
        ({"the": 4, "a": 5}, {"the": 4, "a": 6}, "at key 'a': expected 5, got 6"),
        (
            {"<pad>": 0, "the": 1},
            {"the": 1, "a": 2, "b": 3},
            "expected 2 keys, got 3: the key '<pad>' is missing, and the key 'a' should not be there",
        ),
        ({"the": 1}, {"a": 1}, "the key 'the' is missing, and the key 'a' should not be there"),
        (torch.tensor([4, 5]), torch.tensor([4, 6]), "expected 5 at index (1,), got 6"),
        ((1, 2.0), (1, 3.0), "result 2: expected 2.000, got 3.000"),
    ],
)
def test_a_difference_names_the_first_wrong_item(expected, got, text):
    assert said(expected, got) == text


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ([[1, 2]], [[1, 2]], True),
        ([[1, 2]], [[1, 2, 0]], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([torch.ones(2)], [torch.zeros(2)], False),
        (torch.Generator(), torch.Generator().manual_seed(9), True),
        (float("nan"), float("nan"), True),
    ],
)
def test_an_argument_that_was_written_into_is_noticed(before, after, same):
    parted = outcome(1, 1, ((before,), (after,))).difference
    assert (parted is None) == same


def test_a_short_list_is_shown_whole_and_a_long_one_is_not():
    short = as_text(Verdict(exercise(), True, (outcome(["lo", "w"], ["l", "ow"]),)))
    assert "should be ['lo', 'w']" in short and "yours is ['l', 'ow']" in short
    long = as_text(Verdict(exercise(), True, (outcome(list(range(90)), [*range(89), 0]),)))
    assert "at index 89: expected 89, got 0" in long
    assert max(map(len, long.splitlines())) <= WIDTH and len(long) < 700


def test_a_quiz_names_the_wrong_item_and_never_the_right_one():
    quiz = Probe("a quiz", lambda g: Case(()), hidden=False, hide_expected=True)
    shown = Observation({"one": (3, 2), "two": (77, 5)}), Observation({"one": (3, 2), "two": (5, 6)})
    parted = difference(*shown, quiz)
    report = as_text(Verdict(exercise(), False, (Outcome(quiz, Case(()), None, *shown, parted),)))
    assert (parted.where, parted.expected, parted.got) == ((Part("key", "two"),), (77, 5), (5, 6))
    assert "at key 'two': (5, 6) is not it" in report
    assert "(5, 6) is not it" in report and "77" not in report


def test_a_hidden_difference_in_a_list_shows_no_value():
    hidden = Probe("hidden", lambda g: Case(()))
    for expected, got in (([4, 77], [4, 5]), ([4, 77], [4]), ({"k77": 1}, {"k": 1}), ([("k77",)], ["k"])):
        shown = Observation(expected), Observation(got)
        one = Outcome(hidden, Case(()), None, *shown, difference(*shown, hidden))
        report = " ".join(as_text(Verdict(exercise(), True, (one,))).split())
        assert "77" not in report
        assert "returned" in report or "result" in report or "keys" in report


def test_an_order_that_changes_from_run_to_run_is_known_by_its_mark():
    by_mark = Misconception(
        "another order",
        "def a(): return [1, 2, 3]",
        "Why.",
        SECTION,
        shows=lambda e: sorted(e.got) == sorted(e.expected),
    )
    found = diagnose(exercise(by_mark), [outcome([1, 2, 3], [2, 3, 1])])
    assert found is not None and found[0] is by_mark
    assert diagnose(exercise(by_mark), [outcome([1, 2, 3], [2, 3, 4])]) is None
    assert diagnose(exercise(by_mark), [outcome([1, 2, 3], None)]) is None


def test_a_known_answer_that_cannot_travel_is_recognized_and_breaks_nothing():
    a_set = Misconception("a set", "def a(): return {1, 2}", "Why.", SECTION)
    assert diagnose(exercise(a_set), [outcome([1, 2], wire.Opaque("builtins.set"))])[0] is a_set
    assert diagnose(exercise(a_set), [outcome([1, 2], wire.Opaque("builtins.map"))]) is None


def test_an_error_of_a_private_class_is_called_by_its_first_public_one() -> None:
    """As Python 3.13 raises _IncompleteInputError for a cell that ends in the middle of a line."""

    class _Unfinished(SyntaxError):
        pass

    assert responder.describe(_Unfinished("incomplete input"), {})["type"] == "SyntaxError"
