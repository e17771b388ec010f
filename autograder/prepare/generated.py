"""Student notebooks: nbgrader writes them to a temporary folder, and after the checks they move to exercises/."""

import os
import shutil
import sys
from pathlib import Path

from nbgrader.converters import GenerateAssignment
from nbgrader.utils import capture_log

from autograder.catalogue.exercise import Assignment
from autograder.grade import nbgrader_patches
from autograder.reports import results

NOT_SHOWN = ("[INFO]", "[DEBUG]")


class Generated:
    """A temporary folder of released notebooks: `with Generated(root) as generated`. root: the course.

    nbgrader runs in this process, because each of its commands spends three seconds on imports.
    step: the folder's path below the root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.step = f"classroom/.released-{os.getpid()}"
        self._places = results.directory(root)
        self._places.release_directory = self.step
        self._settings = results.configuration(root)

    def __enter__(self) -> "Generated":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._root / self.step, ignore_errors=True)

    def write(self, assignment: Assignment) -> bool:
        """Write the student notebooks and add the assignment to the gradebook; returns whether nbgrader succeeded.

        nbgrader's warnings and errors are printed.
        """
        self._places.assignment_id = assignment.id
        nbgrader_patches.make_gradebooks_here()
        done = capture_log(GenerateAssignment(coursedir=self._places, config=self._settings))
        shown = [line for line in done.get("log", "").splitlines() if not line.startswith(NOT_SHOWN)]
        if not done["success"] and not shown:
            shown = done.get("error", "").splitlines()[-1:]
        for line in shown:
            print(line, file=sys.stderr)
        return done["success"]

    def install(self, assignment: Assignment) -> None:
        """Make exercises/ equal to the generated notebooks. Files with the same content keep their times."""
        made, target = self._root / self.step / assignment.id, self._root / "exercises" / assignment.id
        wanted = {path.relative_to(made) for path in made.rglob("*") if path.is_file()}
        for path in sorted(target.rglob("*"), reverse=True):  # files before their folder
            if path.is_file() and path.relative_to(target) not in wanted:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        for name in sorted(wanted):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if not (target / name).is_file() or (made / name).read_bytes() != (target / name).read_bytes():
                half = (target / name).with_name(f".{name.name}.{os.getpid()}")  # classroom/ may be on another disk
                shutil.copy(made / name, half)
                half.replace(target / name)
