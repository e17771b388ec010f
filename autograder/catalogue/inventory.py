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
    """A wrong choice: its words, and the known mistake, of which exercise, that somebody makes who believes it."""

    choice: str
    exercise: str
    mistake: str


@dataclass(frozen=True)
class Question:
    """One idea, asked with one right choice and three wrong ones. because: why the right one is; section: its proof."""

    id: str
    asks: str
    right: str
    wrong: tuple[Belief, Belief, Belief]
    because: str
    section: Section

    @property
    def answers(self) -> frozenset[str]:
        """Every answer that a record may hold for this question."""
        return frozenset({RIGHT, UNKNOWN, *(belief.mistake for belief in self.wrong)})


@dataclass(frozen=True)
class Inventory:
    """All questions, under the version in which they were worded so. license: of the questions, as SPDX writes it."""

    id: str
    title: str
    version: int
    license: str
    questions: tuple[Question, ...]

    @property
    def name(self) -> str:
        """The name by which records are known: another wording is another inventory."""
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
