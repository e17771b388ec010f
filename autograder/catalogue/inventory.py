"""The inventory of beliefs about attention: 24 questions, asked before chapter 01 and again after chapter 12.

Each wrong choice is a known mistake of the catalogue, so what somebody believes has a name, an exercise and a
section to reread. The page of the book, the command and the dashboard all read inventory.json; the order in which it
lists choices has no meaning: every page shuffles them.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.catalogue.exercise import Section
from autograder.catalogue.sections import section

FILE = Path(__file__).parent / "inventory.json"
RIGHT, UNKNOWN = "right", "unknown"  # what an answer may be, other than the name of a mistake


@dataclass(frozen=True)
class Belief:
    """A wrong choice: its text, and the exercise and the known mistake that follow from this belief."""

    choice: str
    exercise: str
    mistake: str


@dataclass(frozen=True)
class Question:
    """A question about one idea, with one right choice and three wrong ones. because: why the right one is right;
    section: where that is shown."""

    id: str
    asks: str
    right: str
    wrong: tuple[Belief, Belief, Belief]
    because: str
    section: Section

    @property
    def answers(self) -> frozenset[str]:
        """Every answer to this question that a record may contain."""
        return frozenset({RIGHT, UNKNOWN, *(belief.mistake for belief in self.wrong)})


@dataclass(frozen=True)
class Inventory:
    """All questions, with the version of their wording. license: of the questions, an SPDX identifier."""

    id: str
    title: str
    version: int
    license: str
    questions: tuple[Question, ...]

    @property
    def name(self) -> str:
        """The name of the inventory in records; another wording is another inventory."""
        return f"{self.id}-{self.version}"


@cache
def read() -> Inventory:
    """The inventory."""
    noted = json.loads(FILE.read_text(encoding="utf-8"))
    questions = [
        Question(**{**each, "wrong": tuple(Belief(**belief) for belief in each["wrong"]), "section": section(label)})
        for each in noted.pop("questions")
        for label in [each["section"]]
    ]
    return Inventory(questions=tuple(questions), **noted)
