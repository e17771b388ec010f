"""Comments of a teacher's that stand on the page of everyone whose wrong answer behaves alike: classroom/comments.json.

A comment is about a fingerprint (see `diagnosis.alike`), not about a person. It is shown to those who were graded
before it was written, and to those who hand in the same later. No points depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from autograder import catalogue
from autograder.course import CourseError
from autograder.diagnosis.alike import LETTERS, are_alike
from transformer_ref.atomic_write import atomic_write

NAME = "comments.json"
LONGEST = 2_000  # letters of a comment
LARGEST_FILE = 4 << 20  # bytes


class Result(Protocol):
    """The part of a result that is used here (see `results.Result`)."""

    @property
    def exercise(self) -> Any: ...
    @property
    def unexplained(self) -> bool: ...
    @property
    def alike(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Comment:
    """A teacher's comment on all answers to an exercise that behave like one of these fingerprints."""

    exercise: str
    alike: tuple[str, ...]
    text: str

    def is_about(self, result: Result) -> bool:
        """Whether the comment is about this result."""
        return result.unexplained and result.exercise.id == self.exercise and are_alike(self.alike, result.alike)

    def replaces(self, other: Comment) -> bool:
        """Whether it concerns the same answers."""
        return other.exercise == self.exercise and are_alike(other.alike, self.alike)


def read(root: Path) -> tuple[Comment, ...]:
    """The comments of a course, the newest last. Raises CourseError naming the file when it cannot be read."""
    path = root / "classroom" / NAME
    return tuple(read_file(path)) if path.is_file() else ()


def write(root: Path, comments: Sequence[Comment]) -> None:
    """Store these comments, replacing all others."""
    listed = [{"exercise": each.exercise, "alike": list(each.alike), "text": each.text} for each in comments]
    atomic_write(root / "classroom" / NAME, json.dumps({"comments": listed}, ensure_ascii=False, indent=1) + "\n")


def about(comments: Iterable[Comment], result: Result) -> str:
    """The comment about a result, or ""."""
    return next((comment.text for comment in comments if comment.is_about(result)), "")


def merged(before: Sequence[Comment], new: Sequence[Comment]) -> tuple[Comment, ...]:
    """Old and new comments; a new one replaces an old one about the same answers, an empty one removes it."""
    kept = [old for old in before if not any(each.replaces(old) for each in new)]
    return (*kept, *(each for each in new if each.text))


def read_file(path: Path) -> list[Comment]:
    """The comments in a file from this command or the dashboard. Raises CourseError saying what is wrong with it."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise CourseError(f"{path}: expected at most {LARGEST_FILE >> 20} MiB.")
        noted = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise CourseError(f"{path} is not a file of comments: {error}.") from error
    listed = noted.get("comments") if isinstance(noted, dict) else None
    if not isinstance(listed, list):
        raise CourseError(f'{path}: expected {{"comments": [...]}}, as the dashboard saves it.')
    return [_comment(f"{path}, comment {place}", each) for place, each in enumerate(listed, 1)]


def checked_text(text: Any, where: str) -> str:
    """A comment's text. Raises CourseError if it is no text or too long."""
    if not isinstance(text, str) or len(text) > LONGEST:
        got = f"{len(text):,}" if isinstance(text, str) else type(text).__name__
        raise CourseError(f"{where}: expected a text of at most {LONGEST:,} letters, got {got}.")
    return text.strip()


def _comment(where: str, noted: Any) -> Comment:
    if not isinstance(noted, dict):
        raise CourseError(f"{where}: expected exercise, alike and text, got {type(noted).__name__}.")
    exercise, alike = noted.get("exercise"), noted.get("alike")
    if not isinstance(exercise, str) or catalogue.find(exercise) is None:
        raise CourseError(f"{where}, exercise: expected the id of an exercise, got {str(exercise)[:60]!r}.")
    parts = alike if isinstance(alike, list) else []
    if not parts or not all(isinstance(part, str) and len(part) == LETTERS for part in parts):
        raise CourseError(f"{where}, alike: expected texts of {LETTERS} letters, got {str(alike)[:60]!r}.")
    return Comment(exercise, tuple(parts), checked_text(noted.get("text"), f"{where}, text"))
