"""A page for the teacher: what the class has understood, what to teach again, what to look at by hand.

`python -m autograder dashboard ASSIGNMENT` reads the gradebook and the graded notebooks and writes one file that asks
nothing of the network. Students' words appear on it as text only. What a teacher writes into its boxes is saved as a
file, which `python -m autograder comment` reads.
"""

import argparse
import hashlib
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder import course
from autograder.address import link
from autograder.catalogue.exercise import Exercise
from autograder.judging.unusual import in_words
from autograder.reports import beliefs, pages, results, shared_comments
from autograder.reports.beliefs import Beliefs
from autograder.reports.comment import Group, groups_of
from autograder.reports.feedback import address_of_book
from autograder.reports.results import Class, Graded
from autograder.reports.reteach import Card, card
from autograder.reports.shared_comments import Comment
from transformer_ref.atomic_write import atomic_write

COLUMNS = 10  # of the chart of scores
SLOWEST = 8  # cells named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    course.add_assignment(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: classroom/dashboard/ASSIGNMENT.html")


def run(chosen: argparse.Namespace) -> int:
    """Write the page and print its path. Raises CourseError if nothing is graded yet."""
    root = course.find_root()
    assignment = results.find_assignment(chosen.assignment)
    path = chosen.output or root / "classroom" / "dashboard" / f"{assignment.id}.html"
    book = address_of_book(root)
    graded, comments = results.read_class(root, assignment), shared_comments.read(root)
    atomic_write(path, page(graded, book, beliefs.of_class(root, book), comments))
    print(path)
    return 0


@dataclass(frozen=True)
class Shown:
    """One of the two results on a card, with a letter, so that a class can vote before it sees which is right."""

    letter: str
    right: bool
    shown: str


@dataclass(frozen=True)
class Mistake:
    """A known mistake, the students who made it, and its card."""

    card: Card
    students: list[str]
    address: str

    @property
    def alone(self) -> bool:
        """Whether only one student made it."""
        return len(self.students) == 1

    @property
    def results(self) -> list[Shown]:
        """The two results on its card, in an order that depends on the mistake's name."""
        example = self.card.example
        both = [(True, example.right), (False, example.mistaken)] if example.right else [(False, example.mistaken)]
        name = f"{self.card.exercise.id} {self.card.misconception.name}"
        if hashlib.sha256(name.encode()).digest()[0] % 2:
            both.reverse()
        return [Shown(letter, right, shown) for letter, (right, shown) in zip("AB", both, strict=False)]


@dataclass
class Topic:
    """One exercise in this class."""

    exercise: Exercise
    right: int = 0
    wrong: int = 0
    blank: int = 0
    mistakes: list[Mistake] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)  # wrong answers that no known mistake explains

    @property
    def known(self) -> int:
        return sum(len(mistake.students) for mistake in self.mistakes)

    @property
    def unexplained(self) -> int:
        return sum(len(group.members) for group in self.groups)


@dataclass(frozen=True)
class Column:
    """The number of scores between two numbers of points."""

    low: float
    high: float
    count: int
    place: int
    height: float


def page(graded_class: Class, book: str, believed: Beliefs | None = None, comments: Sequence[Comment] = ()) -> str:
    """The dashboard as one HTML page. believed: the class's answers to the inventory, if any. comments: those of the
    course on answers that behave alike."""
    assignment = graded_class.assignment
    scores = [graded.score for graded in graded_class.graded]
    groups = groups_of(graded_class, comments)
    topics = [_topic(exercise, graded_class, book, groups) for exercise in assignment.exercises]
    return pages.page(
        "dashboard.html.j2",
        script="comments.js" if any(group.alike for group in groups) else "",
        assignment=assignment.id,
        title=pages.title(assignment.id, assignment.notebook),
        possible=graded_class.possible,
        graded=graded_class.graded,
        absent=sorted(student.name for student in graded_class.absent),
        mean=statistics.fmean(scores),
        median=statistics.median(scores),
        quartiles=quartiles(scores),
        full=sum(score >= graded_class.possible for score in scores),
        chart=chart(scores, graded_class.possible),
        topics=topics,
        reteach=sorted(
            (mistake for topic in topics for mistake in topic.mistakes), key=lambda mistake: -len(mistake.students)
        ),
        looks=[
            (each.student.name, reasons) for each in graded_class.graded if (reasons := reasons_to_look(each, comments))
        ],
        longest=shared_comments.LONGEST,
        slowest=slowest(graded_class.graded),
        believed=beliefs.of_assignment(believed, assignment) if believed else [],
        believers=believed.people if believed else 0,
        when="after" if believed and believed.twice else "before",
    )


def quartiles(scores: list[float]) -> tuple[float, float]:
    """The first and third quartile of the scores; one score counts as both."""
    if len(scores) == 1:
        return scores[0], scores[0]
    lower, _, upper = statistics.quantiles(scores, n=4, method="inclusive")
    return lower, upper


def _topic(exercise: Exercise, graded_class: Class, book: str, groups: Sequence[Group]) -> Topic:
    topic = Topic(exercise, groups=[group for group in groups if group.exercise == exercise.id])
    made: dict[str, list[str]] = defaultdict(list)
    pairs = ((graded, result) for graded in graded_class.graded for result in graded.results)
    for graded, result in (pair for pair in pairs if pair[1].exercise.id == exercise.id):
        if result.passed:
            topic.right += 1
        elif result.blank:
            topic.blank += 1
        else:
            topic.wrong += 1
        if result.misconception:
            made[result.misconception.name].append(graded.student.name)
    known = {misconception.name: misconception for misconception in exercise.mistakes}
    for name in sorted(made, key=lambda name: -len(made[name])):
        topic.mistakes.append(Mistake(card(exercise, known[name]), made[name], link(book, known[name].reread)))
    return topic


def chart(scores: list[float], possible: float) -> list[Column]:
    """A histogram of the scores from 0 to all points; full marks belong to the last bin."""
    counts = [0] * COLUMNS
    for score in scores:
        share = score / possible if possible else 0.0
        counts[min(COLUMNS - 1, max(0, int(share * COLUMNS)))] += 1
    step = possible / COLUMNS
    most = max(counts)
    return [
        Column(place * step, (place + 1) * step, count, place, count / most if most else 0.0)
        for place, count in enumerate(counts)
    ]


def reasons_to_look(graded: Graded, comments: Sequence[Comment] = ()) -> list[str]:
    """Why a person should read this submission; empty if not necessary. comments: see `page`."""
    reasons = [*graded.notes, *([in_words(list(graded.unusual))] if graded.unusual else [])]
    if graded.results and all(result.blank for result in graded.results):
        reasons.append("Nothing was answered: every exercise came back blank.")
    if graded.needs_manual_grade:
        reasons.append("A cell waits for points by hand (formgrader, “Manual Grading”).")
    for result in graded.results:
        number = result.exercise.number
        if not result.checked:
            reasons.append(f"{number} was not checked: {result.message or 'the notebook holds no verdict'}")
        elif result.forbidden:
            reasons.append(f"{number} earns 0 for a forbidden call: {result.message} You can set other points by hand.")
        elif result.unexplained and not result.by_hand and not shared_comments.about(comments, result):
            reasons.append(f"{number} is wrong in a way that no known mistake explains.")
    return reasons


def slowest(graded: tuple[Graded, ...]) -> list[tuple[str, float, float, str]]:
    """(cell, median seconds, maximum seconds, student of the maximum), the largest maximum first."""
    ran: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for each in graded:
        for cell, seconds in each.seconds:
            ran[cell].append((seconds, each.student.name))
    rows = [(cell, statistics.median(seconds for seconds, _ in runs), *max(runs)) for cell, runs in ran.items()]
    return sorted(rows, key=lambda row: -row[2])[:SLOWEST]
