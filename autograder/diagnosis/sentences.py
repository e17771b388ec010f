"""Puts facts into words: each fact has its own sentence (`Fact.say`); the setting and the doubt are added here."""

from collections.abc import Sequence
from dataclasses import replace

from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.behavior import SWITCHED_BACK, Changed, Ignored, OtherMode, independent
from autograder.diagnosis.evidence import Fact, Names
from autograder.diagnosis.known_mistakes import uncapitalized, where_it_is
from autograder.judging.observation import Outcome

TWO = "There seem to be two mistakes."
BESIDE = {  # the words of a fact about a known mistake's result instead of the correct one
    "the correct value is": "that value is",
    "the correct values": "those values",
    "the correct number": "that number",
    "the correct ones": "those",
    "values are correct": "values are those",
    "the correct result": "that result",
    "the correct one": "that one",
    "the correct items": "those items",
}


def noticed_in(exercise: Exercise, outcome: Outcome, noticed: Sequence[Fact]) -> str:
    """The facts as sentences. outcome: the first failure; numbers of a hidden one are not shown."""
    names = Names(exercise, outcome)
    said_already = outcome.difference.kind == "inputs"
    told = [fact for fact in noticed if not (said_already and isinstance(fact, (Changed, OtherMode)))]
    ignored = [fact for fact in told if isinstance(fact, Ignored)]
    if len(told) == 1 and isinstance(told[0], OtherMode):
        return f"{names.argument(told[0].argument)} is left in the other mode. {SWITCHED_BACK}"
    said = [
        independent(ignored, names) if isinstance(fact, Ignored) else sentence(fact, names)
        for fact in told
        if fact not in ignored[1:]
    ]
    return " ".join(said)


def sentence(fact: Fact, names: Names) -> str:
    """The sentence of a fact, with its setting and its certainty."""
    if fact.partial:
        said = sentence(replace(fact, partial=False), names)
        return f"In some of the failing checks, but not in all: {uncapitalized(said)}"
    if fact.where:
        return f"{where_it_is(fact.where)}: {sentence(fact.in_a_setting(), names)}"
    if fact.part:
        kept = ("", *names.exercise.kept_attributes)  # which are compared as further results
        of = f".{kept[fact.part - 1]}" if 1 < fact.part <= len(kept) else f"result {fact.part}"
        return f"Of {of}: {sentence(replace(fact, part=0), names)}"
    if fact.beside:
        second = sentence(replace(fact, beside=""), names)
        for right, those in BESIDE.items():
            second = second.replace(right, those)
        return f"{TWO} One: {fact.beside} The other, in addition: {second}"
    said = fact.say(names)
    return said if fact.sure or not fact.doubt else f"{fact.doubt}{uncapitalized(said)}"
