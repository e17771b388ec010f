"""Mistakes that several exercises share are written once."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.catalogue import families
from autograder.catalogue.exercise import Section
from autograder.catalogue.families import Family

ROOT = Path(__file__).resolve().parents[3]
ENTRIES = sorted((ROOT / "autograder/catalogue").rglob("*.py"))
FAMILIES = {name: family for name, family in vars(families).items() if isinstance(family, Family)}
HERE = Section("05", "The weighted average: mixing the values", "sec-05-mix")
SOURCE = "def attend(W, V):\n    return V\n"


def messages(source: str) -> Iterator[str]:
    """The messages that an entry spells out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "mistake":
            if len(node.args) > 3 and isinstance(node.args[3], ast.Constant):
                yield " ".join(str(node.args[3].value).split())


def test_no_message_is_spelled_out_twice():
    spelled = Counter(text for path in ENTRIES for text in messages(path.read_text(encoding="utf-8")))
    assert len(spelled) > 2000
    assert [text for text, times in spelled.items() if times > 1] == []


def test_a_message_that_is_spelled_out_twice_would_be_found():
    entry = "mistake('a', X, HERE, 'Said  twice.')\nmistake('b', Y, HERE, 'Said '\n    'twice.')"
    assert list(messages(entry)) == ["Said twice.", "Said twice."]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_has_several_members(name):
    uses = sum(path.read_text(encoding="utf-8").count(f"families.{name}(") for path in ENTRIES)
    assert uses > 1


def test_slots_are_filled_in_the_name_and_in_the_message():
    made = Family("{token} forgotten", "The {token} is missing: {token}.")(SOURCE, HERE, token="bos")
    assert (made.name, made.message, made.source, made.reread) == (
        "bos forgotten",
        "The bos is missing: bos.",
        SOURCE,
        HERE,
    )


def test_a_name_of_its_own_replaces_that_of_the_family():
    assert Family("no ReLU", "It is missing.")(SOURCE, HERE, name="no activation").name == "no activation"


@pytest.mark.parametrize("slots", [{}, {"part": "block"}, {"token": "bos", "part": "block"}])
def test_slots_other_than_those_of_the_family_are_refused(slots):
    with pytest.raises(ValueError, match=r"expected the slots \['token'\], got"):
        Family("{token} forgotten", "It is missing.")(SOURCE, HERE, **slots)
