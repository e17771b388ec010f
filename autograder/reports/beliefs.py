"""What a class believed before the course and what it believes after: answers to the inventory, counted.

`python -m autograder inventory [FILE ...]` reads the files that learners saved on the inventory's page and writes one
page for the teacher. Without files it takes those in classroom/inventory/ and those that came with submissions. The
files hold no names, and the page counts people and names none.
"""

import argparse
import json
import re
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder import catalogue, course
from autograder.address import link
from autograder.catalogue import inventory
from autograder.catalogue.exercise import Assignment
from autograder.catalogue.inventory import RIGHT, UNKNOWN, Belief, Question
from autograder.course import CourseError
from autograder.intake import untrusted_files
from autograder.reports import pages, results
from autograder.reports.feedback import address_of_book
from transformer_ref.atomic_write import atomic_write

LARGEST_FILE = 64 * 1024  # bytes; a file that the page saved has 4,000
PERSON = re.compile("[0-9a-f]{32}")
NAMED = 5  # beliefs in the terminal's summary

Answers = Mapping[str, str]  # question's id -> "right", "unknown", or the name of a mistake


@dataclass(frozen=True)
class Record:
    """One person's answers; after: None if there is only one round."""

    before: Answers
    after: Answers | None


@dataclass(frozen=True)
class Choice:
    """One answer to a question, and its count. belief: None for the right one and for "I do not know"."""

    text: str
    kind: str
    before: int
    after: int
    belief: Belief | None = None
    number: str = ""


@dataclass(frozen=True)
class Asked:
    """One question in this class, its choices in an order that does not depend on which is right."""

    question: Question
    choices: tuple[Choice, ...]
    address: str

    def count(self, kind: str, when: str) -> int:
        """The number of answers of a kind ("right", "wrong", "unknown"), "before" or "after"."""
        return sum(getattr(choice, when) for choice in self.choices if choice.kind == kind)

    def strongest(self, when: str) -> Choice | None:
        """The most frequent wrong choice, if any."""
        wrong = [choice for choice in self.choices if choice.kind == "wrong" and getattr(choice, when)]
        return max(wrong, key=lambda choice: getattr(choice, when), default=None)


@dataclass(frozen=True)
class Beliefs:
    """A class's answers. twice: number of people with both rounds; if there are any, all counts are of these only.

    means: kind -> (before, after), mean number of answers of that kind per person.
    """

    once: int
    twice: int
    asked: tuple[Asked, ...]
    means: Mapping[str, tuple[float, float]]

    @property
    def people(self) -> int:
        """The number of people counted."""
        return self.twice or self.once

    @property
    def gain(self) -> float | None:
        """The normalized gain (Hake 1998); None if nobody answered twice."""
        before, after = self.means[RIGHT]
        possible = len(self.asked) - before
        return (after - before) / possible if self.twice and possible else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="answers as the page saves them (default: those in classroom/inventory/ and in submissions)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: classroom/dashboard/inventory.html")


def run(chosen: argparse.Namespace) -> int:
    """Write the page and print a summary. Raises CourseError if no file has answers."""
    root = course.find_root()
    files = [path.resolve() for path in chosen.files] or files_of(root)
    found, refused = read_records(files)
    if not found:
        where = f"classroom/inventory/ or as {inventory.read().name}.json next to a submission"
        told = "".join(f"\n  {line}" for line in refused)
        raise CourseError(f"No file holds answers to the inventory. Looked for: {where}.{told}")
    beliefs = count(found, address_of_book(root))
    path = chosen.output or root / "classroom" / "dashboard" / "inventory.html"
    atomic_write(path, page(beliefs))
    print("\n".join([*summary(beliefs), *(f"  left out: {line}" for line in refused), f"  page: {path}"]))
    return 0


def files_of(root: Path) -> list[Path]:
    """The files in the classroom: the newest one of each person who submitted one."""
    name = inventory.read().name
    newest: dict[Path, Path] = {}
    for path in sorted((root / results.directory(root).submitted_directory).glob(f"*/*/*{name}*.json")):
        student = path.parents[1]
        if student not in newest or _changed_at(path) >= _changed_at(newest[student]):
            newest[student] = path
    return [*sorted((root / "classroom" / "inventory").glob("*.json")), *newest.values()]


def _changed_at(path: Path) -> float:
    """The modification time of a file; 0 for anything else, such as a broken link."""
    try:
        found = path.lstat()
    except OSError:
        return 0.0
    return found.st_mtime if stat.S_ISREG(found.st_mode) else 0.0


def read_records(files: Iterable[Path]) -> tuple[list[Record], list[str]]:
    """The records in the files, and a line for each unusable file.

    Files of one person, which have the same random number from their first round, count once, preferably one with two
    rounds. Equal answers do not mean the same person: before the course, most of a class knows nothing.
    """
    found: dict[str, Record] = {}
    refused = []
    for path in files:
        try:
            noted = json.loads(_content(path))
            record, person = _record(noted), noted.get("person")
            key = person if isinstance(person, str) and PERSON.fullmatch(person) else f"file {path}"
            if key not in found or found[key].after is None:
                found[key] = record
        except (OSError, ValueError, RecursionError) as error:
            reason = error if isinstance(error, _Refused) else getattr(error, "strerror", None) or "not the page's JSON"
            refused.append(f"{path}: {reason}")
    return list(found.values()), refused


class _Refused(ValueError):
    """A file is not a valid record; the text says why."""


def _content(path: Path) -> bytes:
    with untrusted_files.opened(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise _Refused(f"larger than {LARGEST_FILE // 1024} KiB")
    return content


def _record(noted: Any) -> Record:
    asked = inventory.read()
    if not isinstance(noted, dict) or noted.get("inventory") != asked.id:
        raise _Refused("holds no answers to the inventory")
    if noted.get("version") != asked.version:
        raise _Refused(f"expected version {asked.version} of the inventory, got {str(noted.get('version'))[:20]}")
    before, after = (_round(noted.get(when), when) for when in ("before", "after"))
    if before is None:
        raise _Refused("no first round of answers")
    return Record(before, after)


def _round(noted: Any, when: str) -> Answers | None:
    if noted is None:
        return None
    answers = noted.get("answers") if isinstance(noted, dict) else None
    for question in inventory.read().questions:
        given = answers.get(question.id) if isinstance(answers, dict) else None
        if not isinstance(given, str) or given not in question.answers:
            raise _Refused(f"{when}, {question.id}: expected one of the question's choices")
    return answers


def count(records: Sequence[Record], book: str) -> Beliefs:
    """The count of each answer; only of people with both rounds, if there are any. book: the book's address."""
    twice = [record for record in records if record.after is not None]
    counted = twice or records
    asked = tuple(_asked(question, counted, book) for question in inventory.read().questions)
    means = {
        kind: tuple(sum(each.count(kind, when) for each in asked) / len(counted) for when in ("before", "after"))
        for kind in (RIGHT, "wrong", UNKNOWN)
    }
    return Beliefs(len(records), len(twice), asked, means)


def _asked(question: Question, records: Sequence[Record], book: str) -> Asked:
    before = Counter(record.before[question.id] for record in records)
    after = Counter(record.after[question.id] for record in records if record.after is not None)
    choices = [Choice(question.right, RIGHT, before[RIGHT], after[RIGHT])]
    for belief in question.wrong:
        number = catalogue.find(belief.exercise).number
        counts = before[belief.mistake], after[belief.mistake]
        choices.append(Choice(belief.choice, "wrong", *counts, belief, number))
    choices.sort(key=lambda choice: choice.text)
    choices.append(Choice("I do not know.", UNKNOWN, before[UNKNOWN], after[UNKNOWN]))
    return Asked(question, tuple(choices), link(book, question.section))


def of_class(root: Path, book: str) -> Beliefs | None:
    """The counted answers in the classroom; None if there are none."""
    found, _ = read_records(files_of(root))
    return count(found, book) if found else None


def of_assignment(beliefs: Beliefs, assignment: Assignment) -> list[Asked]:
    """The questions that a chapter answers, or whose wrong choices lead to mistakes in its exercises."""
    exercises = set(assignment.exercise_ids)
    return [
        each
        for each in beliefs.asked
        if each.question.section.chapter == assignment.id[:2]
        or any(belief.exercise in exercises for belief in each.question.wrong)
    ]


def page(beliefs: Beliefs) -> str:
    """The class's answers as one HTML page, the most frequent wrong belief first."""
    when = "after" if beliefs.twice else "before"
    ordered = sorted(beliefs.asked, key=lambda asked: asked.count(RIGHT, when))
    return pages.page("beliefs.html.j2", beliefs=beliefs, asked=ordered, inventory=inventory.read(), when=when)


def summary(beliefs: Beliefs) -> list[str]:
    """The page in a few lines for a terminal."""
    asked = inventory.read()
    lines = [f"inventory, version {asked.version}: {beliefs.once} answered, {beliefs.twice} of them twice"]
    lines.append(
        f"  of {len(asked.questions)} questions, a person         before" + ("  after" if beliefs.twice else "")
    )
    for kind, text in ((RIGHT, "right"), ("wrong", "believed otherwise"), (UNKNOWN, "not known")):
        before, after = beliefs.means[kind]
        lines.append(f"    {text:28s}{before:8.1f}" + (f"{after:7.1f}" if beliefs.twice else ""))
    if beliefs.gain is not None:
        lines.append(f"  of what could be gained: {100 * beliefs.gain:.0f} %")
    when = "after" if beliefs.twice else "before"
    strongest = [choice for each in beliefs.asked if (choice := each.strongest(when))]
    strongest.sort(key=lambda choice: -getattr(choice, when))
    for choice in strongest[:NAMED]:
        held = f"{getattr(choice, when)} of {beliefs.people}"
        lines.append(f"  {held:>10s} believe: {choice.text}  ({choice.number}, {choice.belief.mistake})")
    return lines
