"""One comment for everybody whose wrong answer behaves alike: `python -m autograder comment ASSIGNMENT`.

The dashboard lists wrong answers that no known mistake explains, in groups that behave alike. This command keeps what a
teacher writes about a group, and makes the feedback pages again. Nothing is graded again, since no points change.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder import course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CourseError
from autograder.diagnosis.alike import are_alike
from autograder.reports import fresh, results, shared_comments
from autograder.reports.results import Class, Result, Student
from autograder.reports.shared_comments import Comment

SHOWN = 4  # letters of a fingerprint that name a group


@dataclass(frozen=True)
class Group:
    """Wrong answers to one exercise that behave alike. message: of the first one's report. alike: empty for an answer
    that could not be compared with others. comment: the teacher's, about all of them."""

    label: str
    exercise: str
    alike: tuple[str, ...]
    members: tuple[Student, ...]
    message: str
    comment: str = ""

    @property
    def names(self) -> list[str]:
        return [student.name for student in self.members]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    course.add_assignment(parser)
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="comments that the dashboard's page has saved"
    )
    parser.add_argument("--group", metavar="GROUP", help="a group of the dashboard, such as 05.2-3f9a")
    parser.add_argument("--text", help="the comment on this group; an empty text removes it")


def run(chosen: argparse.Namespace) -> int:
    """Store comments and rewrite the pages, or list the groups. Raises CourseError for an invalid comment."""
    if (chosen.group is None) != (chosen.text is None):
        raise CourseError("Expected --group and --text together: which group, and what to tell everyone in it.")
    if chosen.file is not None and chosen.group is not None:
        raise CourseError("Expected a FILE, or --group and --text, got both.")
    root = course.find_root()
    graded = results.read_class(root, results.find_assignment(chosen.assignment))
    before = shared_comments.read(root)
    groups = groups_of(graded, before)
    if chosen.file is None and chosen.group is None:
        print("\n".join(_listed(groups, graded.assignment)))
        return 0
    if chosen.file is not None:
        new = _of_file(chosen.file, graded.assignment)
    else:
        new = [_about(groups, chosen.group, chosen.text)]
    after = shared_comments.merged(before, new)
    shared_comments.write(root, after)
    changed = [each for each in new if each.text != _text_about(before, each)]
    print("\n".join(_summary(root, graded, changed, groups_of(graded, after))))
    return 0


def groups_of(graded: Class, comments: Sequence[Comment] = ()) -> list[Group]:
    """The class's wrong answers that no known mistake explains, by exercise, the largest group first."""
    return [
        group
        for exercise in graded.assignment.exercises
        for group in sorted(_groups(exercise, graded, comments), key=lambda group: -len(group.members))
    ]


def _groups(exercise: Exercise, graded: Class, comments: Sequence[Comment]) -> list[Group]:
    kinds: list[tuple[set[str], list[tuple[Student, Result]]]] = []
    for each in graded.graded:
        for result in each.results:
            if result.exercise.id == exercise.id and result.unexplained:
                same = [kind for kind in kinds if are_alike(kind[0], result.alike)]
                joined = set(result.alike).union(*(parts for parts, _ in same))
                members = [pair for _, pairs in same for pair in pairs]
                kinds = [*(kind for kind in kinds if kind not in same), (joined, [*members, (each.student, result)])]
    groups = []
    for parts, pairs in kinds:
        (first, result), alike = pairs[0], tuple(sorted(parts))
        label = f"{exercise.number}-{alike[0][:SHOWN] if alike else first.id}"
        members = tuple(student for student, _ in pairs)
        comment = shared_comments.about(comments, result)
        groups.append(Group(label, exercise.id, alike, members, result.message, comment))
    return groups


def _text_about(comments: Sequence[Comment], new: Comment) -> str:
    return next((old.text for old in comments if new.replaces(old)), "")


def _about(groups: Sequence[Group], label: str, text: str) -> Comment:
    group = next((each for each in groups if each.label == label), None)
    if group is None:
        known = ", ".join(each.label for each in groups if each.alike) or "no group now"
        raise CourseError(f"--group: expected one of the dashboard's ({known}), got {label!r}.")
    if not group.alike:
        raise CourseError(f"--group: {label} could not be compared with other answers. Comment on it in formgrader.")
    return Comment(group.exercise, group.alike, shared_comments.checked_text(text, "--text"))


def _of_file(path: Path, assignment: Assignment) -> list[Comment]:
    found = shared_comments.read_file(path)
    other = [comment.exercise for comment in found if comment.exercise not in assignment.exercise_ids]
    if other:
        raise CourseError(f"{path}: expected comments on exercises of {assignment.id}, got one on {other[0]!r}.")
    return found


def _listed(groups: Sequence[Group], assignment: Assignment) -> list[str]:
    if not groups:
        return ["A known mistake explains every wrong answer: there is nothing to comment on."]
    lines = ["Wrong answers that no known mistake explains. Those of one group behave alike:"]
    for group in groups:
        lines.append(f"  {group.label}  {len(group.members)}: {', '.join(group.names)}")
        lines.append(f"    {group.message}")
        if group.comment:
            lines.append(f"    your comment: {group.comment}")
    if (first := next((group for group in groups if group.alike), None)) is not None:
        lines.append(f'  next: python -m autograder comment {assignment.id} --group {first.label} --text "..."')
    return lines


def _summary(root: Path, graded: Class, changed: Sequence[Comment], groups: Sequence[Group]) -> list[str]:
    """The students whom the comments concern, and those whose pages were rewritten."""
    if not changed:
        return ["No comment has changed."]
    places, settings = results.directory(root), results.configuration(root)
    lines, touched = [], {}
    for comment in changed:
        same = (each for each in groups if each.exercise == comment.exercise and are_alike(each.alike, comment.alike))
        members = [student for group in same for student in group.members]
        names = ", ".join(student.name for student in members) or "nobody in this class yet"
        lines.append(f"for {names}: {comment.text}" if comment.text else f"removed, for {names}")
        touched |= {student.id: student.name for student in members}
    made = [student for student in touched if fresh.remake(places, settings, graded.assignment.id, student)]
    if made:
        lines.append(f"feedback pages made again: {', '.join(touched[student] for student in made)}")
    if rest := [name for student, name in touched.items() if student not in made]:
        lines.append(f"no feedback page yet: {', '.join(rest)} (nbgrader generate_feedback {graded.assignment.id})")
    return lines
