"""Facts: each has a name and a sentence of its own, and two are equal where they say the same."""

import importlib
import pkgutil
from dataclasses import is_dataclass

import pytest

from autograder import catalogue, diagnosis
from autograder.catalogue.exercise import Case
from autograder.diagnosis.evidence import AlongAxis, Fact, Names, Seen, seen
from autograder.diagnosis.output_patterns.axes import Alike, AxisGone, BySizes, OnePlace, Reduced
from autograder.diagnosis.output_patterns.lists import NumberOffset, NumberScaled
from autograder.diagnosis.sentences import sentence
from autograder.diagnosis.suppositions import Supposed

for module in pkgutil.walk_packages(diagnosis.__path__, f"{diagnosis.__name__}."):
    importlib.import_module(module.name)


def below(cls: type) -> set[type]:
    return {cls, *(each for sub in cls.__subclasses__() for each in below(sub))}


KINDS = sorted(below(Fact) - {Fact, Seen, AlongAxis, BySizes, Supposed}, key=lambda cls: cls.__name__)


class Outcome:
    """As much of an outcome as a sentence reads."""

    case = Case((1, 2))
    secret = False


NAMES = Names(catalogue.find("attend"), Outcome())


def test_there_are_many_kinds():
    assert len(KINDS) > 25


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_name_and_says_a_sentence_of_its_own(kind):
    assert is_dataclass(kind) and kind.__doc__ and "say" in vars(kind)
    assert kind._traits.name or "name" in vars(kind)


def test_equal_facts_say_the_same_of_results_of_different_sizes():
    assert Alike(0, 2) == Alike(0, 3) != Alike(1, 3)
    assert len({Reduced(1, 3, "sum"), Reduced(1, 3, "mean"), Reduced(1, 3, "sum", left_over=True)}) == 3
    assert AxisGone(1).once and not Alike(1, 3).once


def test_what_settles_the_matter_is_said_where_a_kind_is_defined():
    assert OnePlace(0, 2, "first", missing=True).settles and not OnePlace(0, 2, "first", missing=False).settles
    assert seen("a", "A.", exact=True).settles and seen("a", "A.", settles=True).settles and not seen("a", "A.").settles


def test_a_doubt_a_part_and_a_setting_come_before_the_sentence():
    fact = seen("whole", "Whole numbers came back.")
    said = sentence(Seen(fact.sentence, fact.traits, sure=False), NAMES)
    assert said == "In one failing check: whole numbers came back."
    assert sentence(Seen(fact.sentence, fact.traits, part=2), NAMES) == "Of result 2: Whole numbers came back."
    partial = sentence(Seen(fact.sentence, fact.traits, partial=True), NAMES)
    assert partial == "In some of the failing checks, but not in all: whole numbers came back."
    where = sentence(Seen(fact.sentence, fact.traits, where=("attend", "flag", True)), NAMES)
    assert where == "Where flag is True: Whole numbers came back."


def test_a_plain_number_is_said_to_be_wrong_wherever_it_is_wrong_but_in_a_setting_every_number_is():
    assert sentence(NumberOffset(2.0), NAMES) == "Wherever your number is wrong, it is too large by 2."
    assert sentence(NumberOffset(2.0, where=("f", "", None)), NAMES) == "In f: Every number is too large by 2.000."
    assert sentence(NumberScaled(-1.0, where=("f", "", None)), NAMES) == "In f: Every number has the opposite sign."
