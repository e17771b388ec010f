"""A class of broken submissions, honest ones in between: `python tests/grader/classes/broken_class.py FOLDER [COUNT]`.

FOLDER becomes a course of its own, in which COUNT (1,000) damaged submissions are graded by `python -m autograder
grade`. It must come to an end, grade everybody, and give everything to every honest student and to each whose work was
damaged harmlessly.
"""

import random
import subprocess
import sys
from pathlib import Path

import damaged_folders

from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

HONEST_EVERY = 25


def write_class(folder: Path, count: int) -> tuple[list[str], list[str]]:
    """Hand in to a course; returns the names of those who handed in broken work, and of those who earn everything."""
    solved = sample_class.solved()
    broken, honest = [], []
    for number in range(count):
        place = folder / "classroom" / "submitted" / f"s{number:04}" / ASSIGNMENT.id
        place.mkdir(parents=True)
        drawn = damaged_folders.draw_into(place, random.Random(number))
        (honest if drawn.is_harmless else broken).append(place.parent.name)
        if number % HONEST_EVERY == 0:
            honest.append(f"s{number:04}-honest")
            sample_class.submit(folder, honest[-1], solved)
    return broken, honest


def wronged(folder: Path, broken: list[str], honest: list[str]) -> list[str]:
    """The students without a grade, and honest ones without all points."""
    points = sum(exercise.points for exercise in ASSIGNMENT.exercises)
    found = []
    for student in broken + honest:
        try:
            earned = sum(sample_class.scores(folder, student).values())
        except Exception as error:
            found.append(f"{student}: {type(error).__name__}: {error}")
            continue
        if student in honest and earned != points:
            found.append(f"{student}: {earned:g} of {points:g}")
    return found


def main(folder: Path, count: int) -> int:
    """Write, grade and look; returns the exit code."""
    sample_class.lay_out(folder)
    broken, honest = write_class(folder, count)
    released = sample_class.nbgrader(folder, "generate_assignment", ASSIGNMENT.id)
    if released.returncode:
        sys.exit(released.stdout)
    code = subprocess.run(
        [sys.executable, "-m", "autograder", "grade", ASSIGNMENT.id], cwd=folder, check=False
    ).returncode
    found = wronged(folder, broken, honest)
    print(*found, sep="\n")
    print(f"{len(broken)} broken and {len(honest)} honest notebooks; exit code {code}; {len(found)} students wronged.")
    return int(bool(code or found))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python tests/grader/classes/broken_class.py FOLDER [COUNT]")
    sys.exit(main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) == 3 else 1_000))
