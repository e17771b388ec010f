"""How fast a class is graded, against plain nbgrader on the same notebooks in the same run.

Plain means as its users run it: `nbgrader autograde`, one process, nbgrader's own steps and kernel, no sandbox, nothing
judged outside. It grades half of the class before `grade` grades all of it and the other half after, so that a machine
that gets slower or faster meanwhile favors neither. Start-up counts on both sides.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment
from autograder.course import CourseError
from autograder.prepare.sample_class import solved
from transformer_ref.device import device_name
from transformer_ref.processors import usable_processors

PLAIN = """
c = get_config()
c.CourseDirectory.course_id = "plain"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "classroom/submitted"
c.CourseDirectory.autograded_directory = "classroom/autograded"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
"""
RECORDED = Path(__file__).parent / "recorded_grading.json"
CHAPTERS = Path(__file__).parent / "recorded_chapters.json"
RIGHT, MISTAKEN = 0.65, 0.25  # of the answers to each exercise: right in some style, a known mistake; the rest is blank


class Cost(NamedTuple):
    """The cost of a command: wall-clock time, and processor time, which hardly depends on the load of the machine."""

    seconds: float
    processor_seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--submissions", type=int, default=100, metavar="N", help="number of students (default: 100)")
    parser.add_argument(
        "--assignment", default="05_self_attention", metavar="ASSIGNMENT", help="assignment that they hand in"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes that `grade` uses (default: cores)")
    parser.add_argument("--only-ours", action="store_true", help="leave plain nbgrader out: only memory and speed")
    parser.add_argument(
        "--keep-cost",
        action="store_true",
        help="record the cost of a submission of this chapter, for the teachers' pages",
    )
    parser.add_argument(
        "--record", action="store_true", help="record the last result for the book without measuring again"
    )


def run(chosen: argparse.Namespace) -> int:
    """Measure, print, and write build/benchmark/grading.json."""
    root = course.find_root()
    path = root / "build" / "benchmark" / "grading.json"
    if chosen.record:
        record(path, root / "book" / "measured.md")
        return 0
    assignment = catalogue.find_assignment(chosen.assignment)
    if assignment is None or chosen.submissions < 2:
        raise CourseError(
            f"Expected a known assignment and at least 2 submissions, got {chosen.assignment!r}, {chosen.submissions}."
        )
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        found = _measure(root, Path(folder), assignment, chosen.submissions, chosen.workers, chosen.only_ours)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(_text(found))
    if chosen.keep_cost:
        _keep_cost(found)
    print(f"  written to {path.relative_to(root)}")
    return 0


def _keep_cost(found: dict) -> None:
    """Record the cost of a submission of this chapter, graded among those of other chapters, with its share of the
    start-up."""
    noted = json.loads(CHAPTERS.read_text(encoding="utf-8")) if CHAPTERS.is_file() else {}
    noted[found["assignment"]] = {
        "submissions": found["submissions"],
        "processor_seconds": round(found["processor_seconds"]["ours"] / found["submissions"], 2),
    }
    CHAPTERS.write_text(json.dumps(dict(sorted(noted.items())), indent=1) + "\n", encoding="utf-8")


def record(result: Path, page: Path) -> None:
    """Keep a result with both sides as the recorded one, and write it into the book's page between its two marks."""
    if not result.is_file() or "ratio" not in (found := json.loads(result.read_text(encoding="utf-8"))):
        raise CourseError(f"Expected a result that includes plain nbgrader in {result}; run the benchmark first.")
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    page.write_text(with_result(page.read_text(encoding="utf-8")), encoding="utf-8")


def with_result(page: str) -> str:
    """The page with the recorded result between its marks."""
    return with_text(page, "grading", _text(json.loads(RECORDED.read_text(encoding="utf-8"))))


def with_text(page: str, name: str, text: str) -> str:
    """The page with a text between the two marks of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n```text\n{text}\n```\n{end}", page, flags=re.DOTALL)


def _measure(root: Path, folder: Path, assignment: Assignment, size: int, workers: int | None, only_ours: bool) -> dict:
    ours, plain = folder / "ours", folder / "plain"
    for place in (ours, plain):
        for step in ("solutions", "exercises"):
            shutil.copytree(root / step / assignment.id, place / step / assignment.id)
    shutil.copy(root / course.MARKER, ours)
    (plain / course.MARKER).write_text(PLAIN, encoding="utf-8")
    students = _hand_in(root, (ours, plain), assignment, size)
    for place in (ours, plain):
        _timed(place, *course.nbgrader_command("generate_assignment", assignment.id, "--force"))
    half = len(students) // 2
    costs: dict[str, list[Cost]] = {"plain": [], "ours": []}
    if not only_ours:
        costs["plain"].append(_plain(plain, assignment, students[:half]))
    command = [sys.executable, "-m", "autograder", "grade", assignment.id]
    command += ["--workers", str(workers)] if workers else []
    costs["ours"].append(_timed(ours, command, dict(os.environ)))
    if not only_ours:
        costs["plain"].append(_plain(plain, assignment, students[half:]))
    seconds = {name: sum(cost.seconds for cost in each) for name, each in costs.items() if each}
    found = {
        "assignment": assignment.id,
        "submissions": size,
        "cores": usable_processors(),
        "processor": device_name(torch.device("cpu")),
        "workers": workers or "cores",
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "processor_seconds": {
            name: round(sum(cost.processor_seconds for cost in each), 2) for name, each in costs.items() if each
        },
        "per_minute": {name: round(60 * size / value, 1) for name, value in seconds.items()},
        **_from_log(ours, assignment),
    }
    if not only_ours:
        found["ratio"] = round(seconds["plain"] / seconds["ours"], 2)
    return found


def _plain(place: Path, assignment: Assignment, students: list[str]) -> Cost:
    """The cost of plain nbgrader for these students; it skips those that it has graded already."""
    submitted, waiting = place / "classroom" / "submitted", place / "waiting"
    submitted.mkdir(parents=True, exist_ok=True)
    for student in students:
        shutil.move(waiting / student, submitted / student)
    _, environment = course.nbgrader_command()
    return _timed(place, [sys.executable, "-m", "nbgrader", "autograde", assignment.id], environment)


def _timed(place: Path, command: list[str], environment: dict[str, str]) -> Cost:
    began, used = time.monotonic(), _processor_seconds()
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"{done.stdout}{done.stderr}"[-3000:]
        raise CourseError(f"{' '.join(command[1:])} ended with code {done.returncode}:\n{said}")
    return Cost(time.monotonic() - began, _processor_seconds() - used)


def _processor_seconds() -> float:
    """The processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _hand_in(root: Path, places: tuple[Path, Path], assignment: Assignment, size: int) -> list[str]:
    """Submit the same class to both: to ours at once, to plain nbgrader later."""
    solutions = solved(assignment, root)
    released = course.read_notebook(course.notebook_path(root, "exercises", assignment))
    students = [f"student-{number:04d}" for number in range(size)]
    for number, student in enumerate(students):
        notebook = json.dumps(_work(released, solutions, assignment, number))
        for folder in (places[0] / "classroom" / "submitted", places[1] / "waiting"):
            path = folder / student / assignment.id / f"{assignment.notebook}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(notebook, encoding="utf-8")
    return students


def _work(released: dict, solutions: dict[str, str], assignment: Assignment, number: int) -> dict:
    """One student's notebook, determined by its number; no two have the same text, so no cache helps."""
    drawing = random.Random(number)
    answers = {}
    for exercise in assignment.exercises:
        luck = drawing.random()
        if luck < RIGHT:
            right = [solutions[exercise.id], *(variant.source for variant in exercise.correct)]
            answers[exercise.id] = drawing.choice(right)
        elif luck < RIGHT + MISTAKEN:
            answers[exercise.id] = drawing.choice(exercise.mistakes).source
    notebook = json.loads(json.dumps(released))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and cell["id"] in answers:
            cell["source"] = answers[cell["id"]] + f"\n# {number}\n"
    return notebook


def _from_log(place: Path, assignment: Assignment) -> dict:
    """The figures in the log of our run: seconds of a submission in its worker, and the growth of a worker's memory."""
    (path,) = (place / "classroom" / "log" / "grade" / assignment.id).glob("*.jsonl")
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    graded = [event for event in events if event["event"] == "graded"]
    failed = [event["reason"] for event in events if event["event"] == "failed"]
    return {
        "median_seconds_in_worker": round(statistics.median(event["seconds"] for event in graded), 3),
        "failed": failed,
        "kilobytes_per_submission": {
            "workers": round(_growth([event["memory"] for event in graded]) / 1024, 1),
            "writer": round(_growth([event["writer_memory"] for event in graded]) / 1024, 1),
        },
        "megabytes_at_the_end": {
            "worker": round(graded[-1]["memory"] / 2**20),
            "writer": round(graded[-1]["writer_memory"] / 2**20),
        },
    }


def _growth(values: list[int]) -> float:
    """Slope over the second half, when caches are full: bytes a submission by the median of all pairs (Theil-Sen)."""
    late = values[len(values) // 2 :]
    slopes = [(late[j] - late[i]) / (j - i) for i in range(len(late)) for j in range(i + 1, len(late))]
    return statistics.median(slopes) if slopes else 0.0


def _text(found: dict) -> str:
    lines = [f"{found['assignment']}, {found['submissions']} submissions, {found['cores']} cores, start-up included:"]
    names = {"plain": "nbgrader autograde", "ours": "autograder grade"}
    for name, seconds in found["seconds"].items():
        used = found["processor_seconds"][name] / found["submissions"]
        rate = found["per_minute"][name]
        lines.append(f"  {names[name]:<20}{seconds:>8.1f} s{rate:>8.1f} a minute{used:>8.2f} s of processor each")
    if "ratio" in found:
        lines.append(f"  {found['ratio']:.1f} times the submissions per minute")
    growth, end = found["kilobytes_per_submission"], found["megabytes_at_the_end"]
    lines.append(
        f"  memory in the second half of the class: a worker {growth['workers']:+.1f} kB a submission "
        f"({end['worker']} MB at the end), the writer {growth['writer']:+.1f} kB ({end['writer']} MB)"
    )
    return "\n".join(lines + [f"  failed: {reason}" for reason in found["failed"]])
