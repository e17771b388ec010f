"""A chapter's assignment, whose entries are files of one package, each read when it is first asked for."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from autograder.catalogue.exercise import Assignment, Exercise

HERE = Path(__file__).parent
BORROWED = re.compile(r"^\s*from autograder\.catalogue\.(ch\d\d_\w+\.\w+) import", re.MULTILINE)


def chapter(package: str, exercises: str, visible_modules: tuple[str, ...] = (), **settings: Any) -> Assignment:
    """The assignment of a package: that of autograder.catalogue.ch05_self_attention is called 05_self_attention.

    exercises: ids in the order of the book, separated by blanks; the entry of "soft-lookup" is EXERCISE in
    soft_lookup.py. visible_modules, settings: as in `Assignment`.
    """

    @cache
    def load(exercise_id: str) -> Exercise:
        return import_module(f"{package}.{exercise_id.replace('-', '_')}").EXERCISE

    name = package.rpartition(".ch")[2]
    return Assignment(name, name.partition("_")[2], tuple(exercises.split()), load, visible_modules, **settings)


def sources(assignment: Assignment) -> list[Path]:
    """The files in which a chapter's exercises are written, and those of other chapters that these import."""
    found: set[Path] = set()
    waiting = set((HERE / f"ch{assignment.id}").glob("*.py"))
    while waiting:
        file = waiting.pop()
        found.add(file)
        named = [module.replace(".", "/") for module in BORROWED.findall(file.read_text("utf-8"))]
        waiting |= {HERE / f"{each}.py" for each in named} - found
    return sorted(found)
