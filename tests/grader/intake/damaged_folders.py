"""Folders as students hand them in, drawn at random and taken in:
`python tests/grader/intake/damaged_folders.py [COUNT] [SEED]`.

Of COUNT (2,000) folders with one to three kinds of damage, stored and named in some way, each must be taken in without
an error of ours, and where the damage is harmless every answer must be there. All assignments take turns. SEED (0) is
the first of the seeds, each of which draws one folder.
"""

import ast
import json
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import damage
import nbformat
from damage import stored

from autograder import catalogue
from autograder.catalogue.exercise import Assignment
from autograder.intake import take_in
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

# What Windows' 1252 has no sign for becomes a question mark; and half an answer in one cell with all others is none.
NOT_IN_1252 = {"a_mark_before_each_cell", "nothing_wide_between_letters"}
HALVES = {"answer_split_inside_a_function", "all_in_one_cell"}
# Where a script ends a cell is not known, and which of all answers in one cell a conflict is about is not either.
TWO_IN_A_CELL = {"all_in_one_cell", "conflict_inside_a_cell"}


@dataclass(frozen=True)
class Drawn:
    """The submission: its kinds of damage, and whether every answer is still in it."""

    kinds: list[str]
    is_harmless: bool


@cache
def released(assignment: Assignment) -> nbformat.NotebookNode:
    """The notebook as released."""
    return take_in.released_notebook(sample_class.ROOT, assignment)


@cache
def solved(assignment: Assignment) -> dict[str, str]:
    """Every answer of an assignment."""
    return sample_class.solved(assignment)


RELEASED = released(ASSIGNMENT)
BLANK = {cell["id"]: cell["source"] for cell in RELEASED.cells}
ANSWERS = solved(ASSIGNMENT)


def handed_in(assignment: Assignment = ASSIGNMENT) -> dict:
    """A notebook with every answer right, as a student saves it; "blank" holds the texts as released."""
    notebook, answers = json.loads(nbformat.writes(released(assignment))), solved(assignment)
    blank = {cell["id"]: cell["source"] for cell in released(assignment).cells}
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], "".join(cell["source"]))
    return notebook | {"blank": blank}


def write(folder: Path, notebook: dict, way: str, name: str, draw: random.Random) -> None:
    """Hand in the notebook, stored and named this way."""
    data, ending = stored.stored(notebook, way, draw), stored.ENDINGS[way]
    path = folder / name.format(stored.STEM)
    if way in stored.CODE_ONLY and path.parts[len(folder.parts)].startswith("."):
        path = folder / stored.STEM  # of what is hidden only notebooks are read
    if ending in (".py", ".md", ".html"):
        path = path.with_name(path.name.removesuffix(".ipynb") + ending)
    elif ending:
        path = path.with_name(path.name + ending)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def draw_into(folder: Path, draw: random.Random, assignment: Assignment = ASSIGNMENT) -> Drawn:
    """Hand in something to the folder, which is empty."""
    chosen = draw.random()
    if chosen < 0.03:
        name = draw.choice(sorted(stored.LOST))
        stored.LOST[name](folder, handed_in(assignment))
        return Drawn([name], False)
    honest = chosen < 0.65
    kinds = draw.sample(sorted(damage.HONEST if honest else damage.HONEST | damage.BROKEN), draw.randint(1, 3))
    notebook, is_bytes = handed_in(assignment), False
    for kind in kinds:
        data = damage.changed(notebook, kind, draw)
        if data is not None:
            (folder / f"{stored.STEM}.ipynb").write_bytes(data)
            is_bytes = True
            break
    honest = not set(kinds) & set(damage.BROKEN)
    if is_bytes:
        return Drawn(kinds, honest)
    way = draw.choice(sorted(stored.WAYS)) if draw.random() < 0.5 else "utf-8"
    name = draw.choice(stored.NAMES) if draw.random() < 0.5 else stored.NAMES[0]
    try:
        write(folder, notebook, way, name, draw)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):  # so broken that it cannot be stored that way
        way, name = "utf-8", stored.NAMES[0]
        (folder / f"{stored.STEM}.ipynb").write_bytes(json.dumps(notebook).encode())
    kept = honest and not (
        way in stored.CODE_ONLY and {"answer_made_text", "answer_made_raw", *TWO_IN_A_CELL} & set(kinds)
    )
    unsaid = way == "windows_1252" and NOT_IN_1252 & set(kinds)
    is_lost = TWO_IN_A_CELL <= set(kinds) or HALVES <= set(kinds) or unsaid
    return Drawn([*kinds, way, name], bool(kept and not is_lost))


def lacking(work: take_in.TakenIn, assignment: Assignment = ASSIGNMENT) -> list[str]:
    """The exercises whose answer is not, as it was written, what last is defined before its check."""
    code, found = [], dict.fromkeys(solved(assignment), "")
    for cell in work.notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id.endswith("-check"):
            found[grade_id.removesuffix("-check")] = "\n".join(code)
        elif cell.cell_type == "code":
            code += [f"# cell\n{cell.source}"]
    return [name for name, answer in solved(assignment).items() if _last(found[name], answer) != _last(answer, answer)]


def _last(code: str, answer: str) -> str:
    """The last definition, in any cell of the code, of what the answer defines."""
    wanted = next(each.name for each in ast.parse(answer).body if isinstance(each, ast.FunctionDef | ast.ClassDef))
    last = ""
    for cell in code.split("# cell\n"):
        plain = "\n".join(
            "pass" if line.startswith(("%", "!", "?")) else line.rstrip() for line in cell.splitlines() if line.strip()
        )
        try:
            body = ast.parse(plain).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for each in body:
            if getattr(each, "name", "") == wanted:
                last = ast.dump(each)
    return last


def take_in_drawn(seed: int, assignment: Assignment = ASSIGNMENT) -> tuple[Drawn, take_in.TakenIn, float]:
    """Draw, take in, and clear away; also the seconds that taking in took."""
    place = Path(tempfile.mkdtemp(prefix="damaged-"))
    try:
        folder = place / assignment.id
        folder.mkdir()
        drawn = draw_into(folder, random.Random(seed), assignment)
        began = time.perf_counter()
        work = take_in.take_in(released(assignment), assignment, folder)
        return drawn, work, time.perf_counter() - began
    finally:
        remove(place)


def remove(place: Path) -> None:
    """Remove a tree of any depth: what lies too deep is moved up first."""
    while place.exists():
        try:
            shutil.rmtree(place)
        except (OSError, RecursionError):
            deep, count = place, 0
            while count < 200 and (inner := next((path for path in deep.iterdir() if path.is_dir()), None)):
                deep, count = inner, count + 1
            deep.rename(place / f"moved-{time.monotonic_ns()}")


def main(count: int, first: int) -> int:
    """Take in this many; print what went wrong, and how long it took."""
    wrong, slowest, harmless, began = 0, (0.0, ""), 0, time.perf_counter()
    for seed in range(first, first + count):
        assignment = catalogue.ASSIGNMENTS[seed % len(catalogue.ASSIGNMENTS)]
        drawn, work, seconds = take_in_drawn(seed, assignment)
        what = f"{seed}, {assignment.id}: {drawn.kinds}"
        harmless += drawn.is_harmless
        slowest = max(slowest, (seconds, what))
        lost = lacking(work, assignment) if drawn.is_harmless else []
        if work.failure or lost:
            wrong += 1
            print(f"{what}: {work.failure or lost} {work.reasons}", flush=True)
    print(f"{count} folders, {harmless} harmless, {wrong} wrong, slowest {slowest[0]:.2f} s ({slowest[1]})")
    print(f"{time.perf_counter() - began:.0f} s in all")
    return int(wrong > 0)


if __name__ == "__main__":
    arguments = [*map(int, sys.argv[1:]), *(2_000, 0)[len(sys.argv) - 1 :]]
    sys.exit(main(*arguments))
