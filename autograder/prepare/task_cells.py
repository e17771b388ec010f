"""Writes an exercise's folded hints, difficulty, minutes and points from the catalogue into its notebook's cells.

A report names a hint in `feedback.report._hint`.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

from autograder import course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.policy.points import phrase, sentence
from transformer_ref.atomic_write import atomic_write

HINTS = ("a nudge", "a plan of shapes", "pseudocode")
FACTS = re.compile(r"Difficulty [●○]{3} · about \d+ minutes? · [\d.]+ points? \([^)]*\)")


def facts(exercise: Exercise) -> str:
    """The line below a task, up to the sections to reread."""
    dots = "●" * exercise.difficulty + "○" * (3 - exercise.difficulty)
    return f"Difficulty {dots} · about {exercise.minutes} minutes · {phrase(exercise)}"


def hints(exercise: Exercise) -> str:
    """Three folded hints."""
    shown = (html.escape(sentence(hint), quote=False) for hint in exercise.hints)  # <eos> is not a tag
    return "\n\n".join(
        f"<details><summary>Hint {place} of 3: {kind}</summary>\n\n{hint}\n\n</details>"
        for place, (kind, hint) in enumerate(zip(HINTS, shown, strict=True), 1)
    )


def refresh(root: Path, assignment: Assignment) -> list[str]:
    """Write the entries' texts into the solution's notebook; returns the ids of changed cells.

    Raises CourseError when the notebook is missing or broken.
    """
    path = course.notebook_path(root, "solutions", assignment)
    notebook = course.read_notebook(path)
    changed = rewrite(notebook, assignment)
    if changed:
        write(path, notebook)
    return changed


def rewrite(notebook: dict[str, Any], assignment: Assignment) -> list[str]:
    """Write the entries' texts into a notebook's cells; returns the ids of changed cells."""
    exercises = {exercise.id: exercise for exercise in assignment.exercises}
    changed = []
    for cell in notebook["cells"]:
        exercise_id, _, kind = str(cell.get("id", "")).rpartition("-")
        exercise = exercises.get(exercise_id)
        if exercise is None or kind not in ("hints", "task"):
            continue
        said = "".join(cell["source"])  # a text or its lines
        text = hints(exercise) if kind == "hints" else FACTS.sub(facts(exercise), said)
        if text != said:
            cell["source"] = text if isinstance(cell["source"], str) else text.splitlines(keepends=True)
            changed.append(cell["id"])
    return changed


def write(path: Path, notebook: dict[str, Any]) -> None:
    """Write a notebook atomically."""
    atomic_write(path, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
