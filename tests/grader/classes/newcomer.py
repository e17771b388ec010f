"""A newcomer's folder of notebooks, released ones with answers in them, and the file that `assemble` makes of it."""

import contextlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder import __main__ as command_line
from autograder import catalogue, course
from autograder.assemble import gather, write
from autograder.assemble.run import TRANSLATOR
from autograder.catalogue.exercise import Assignment
from autograder.prepare import sample_class

MINE = "my_transformer.py"


def gathered(answers: Mapping[str, str] | None = None) -> str:
    """The file that `assemble` would write of a translator's parts, without judging them: a second instead of a
    minute."""
    pieces = []
    for assignment in catalogue.ASSIGNMENTS:
        asked = [name for name in assignment.exercise_ids if name in TRANSLATOR]
        cells = list(course.code_cells(_notebook(assignment, {**sample_class.solved(assignment), **(answers or {})})))
        pieces += [gather.answer_of(cells, assignment, assignment.load(name)) for name in asked]
    return write.as_file(pieces, len(pieces)).text


def write_notebooks(folder: Path, answers: Mapping[str, str] | None = None, only: bool = False) -> None:
    """Write the released notebooks with the solutions' answers. answers: exercise id -> another answer; only: just
    these answers and their notebooks, so that there is less to judge.
    """
    for assignment in catalogue.ASSIGNMENTS:
        others = {name: source for name, source in (answers or {}).items() if name in assignment.exercise_ids}
        solved = others if only else {**sample_class.solved(assignment), **others}
        if not solved:
            continue
        notebook = _notebook(assignment, solved)
        left_out = set(assignment.exercise_ids) - set(solved)
        notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] not in left_out]
        path = course.notebook_path(folder, "exercises", assignment)
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")


def assemble(folder: Path) -> str:
    """Run the command on the notebooks of `folder`, which writes MINE next to them; return its output."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        command_line.main(["assemble", "--from", str(folder / "exercises")])
    return said.getvalue()


def _notebook(assignment: Assignment, answers: Mapping[str, str]) -> dict[str, Any]:
    """The released notebook with these answers in their cells."""
    notebook = course.read_notebook(course.notebook_path(sample_class.ROOT, "exercises", assignment))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and cell["id"] in answers:
            cell["source"] = answers[cell["id"]]
    return notebook
