"""How many known mistakes are identified? `python -m autograder known-mistakes --benchmark` counts.

Each known mistake is put to the probes of its exercise, with the same hidden inputs for all. A report of unit tests
says which tests failed and with which error: two mistakes with the same report cannot be told apart, so a reader
can name at most as many causes as there are different reports. The judge names a cause itself, which counts
if it is the right one. `--score FILE` counts the same for the answers of another program.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CourseError
from autograder.diagnosis.evidence import Explained
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.observation import Outcome, Raised
from autograder.judging.observe import LocalEndpoint

KEY = b"known mistakes"  # hidden inputs are drawn from it, so that everybody counts the same
RECORDED = Path(__file__).with_name("recorded_identification.json")
ASSERTION = "AssertionError"  # how a unit test reports a wrong result
WAYS = {
    "score": "a score (every mistake of an exercise fails)",
    "first": "unit tests, up to the first that fails",
    "every": "unit tests, each with its result and error",
    "judge": "the judge of this course",
}


@dataclass(frozen=True)
class Count:
    """The number of mistakes, and of those identified by each method; other: those that the judge takes for another
    one."""

    mistakes: int = 0
    score: int = 0
    first: int = 0
    every: int = 0
    judge: int = 0
    other: int = 0

    def __add__(self, more: "Count") -> "Count":
        return Count(
            *(mine + theirs for mine, theirs in zip(asdict(self).values(), asdict(more).values(), strict=True))
        )


def benchmark(assignments: Sequence[Assignment]) -> dict[str, Count]:
    """Count for each assignment; a line for each on stderr as it is done."""
    counts = {}
    for assignment in assignments:
        counts[assignment.id] = sum((count(exercise) for exercise in assignment.exercises), Count())
        print(f"{assignment.id}: {_told(counts[assignment.id])}", file=sys.stderr, flush=True)
    return counts


def count(exercise: Exercise) -> Count:
    """The number of an exercise's known mistakes that each method identifies."""
    first, every, named = set(), set(), Counter()
    for mistake in exercise.mistakes:
        verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(mistake.source)), KEY)
        results = report(exercise, verdict)
        first.add(next((result for result in results if result[1]), None))
        every.add(results)
        cause = verdict.misconception
        named["judge" if cause and cause.name == mistake.name else "other" if cause else "none"] += 1
    known = len(exercise.mistakes)
    return Count(known, min(known, 1), len(first), len(every), named["judge"], named["other"])


def report(exercise: Exercise, verdict: Explained) -> tuple[tuple[int, str], ...]:
    """The report of unit tests: for each probe its index, and the error with which it fails, "" if it passes.

    An answer that could not be called has the report of its error.
    """
    if not verdict.outcomes:
        return ((0, type(verdict.unasked).__name__),)
    places = {id(probe): place for place, probe in enumerate(exercise.probes)}
    return tuple(sorted((places[id(outcome.probe)], _error(outcome)) for outcome in verdict.outcomes))


def _error(outcome: Outcome) -> str:
    if outcome.passed:
        return ""
    raised = outcome.got.result if outcome.got else None
    return raised.type if isinstance(raised, Raised) else ASSERTION


def score(path: Path, assignments: Sequence[Assignment]) -> dict[str, Count]:
    """Score another program's answers: JSON lines with the `id` of a mistake and the chosen `name`, or null.

    Raises CourseError for a line that is not such an object, an unknown or repeated id, an unknown name.
    """
    known = {
        f"{exercise.id}/{mistake.name}": (assignment.id, exercise, mistake.name)
        for assignment in assignments
        for exercise in assignment.exercises
        for mistake in exercise.mistakes
    }
    counts, seen = {assignment.id: Count() for assignment in assignments}, set()
    for number, said in _lines(path):
        place = f"{path}, line {number}: "
        asked = said.get("id")
        if asked not in known or asked in seen:
            raise CourseError(f"{place}expected the id of a known mistake that no line before had, got {asked!r}")
        seen.add(asked)
        chapter, exercise, right = known[asked]
        named = said.get("name")
        if named is not None and named not in {mistake.name for mistake in exercise.mistakes}:
            raise CourseError(f"{place}name: expected a known mistake of {exercise.id} or null, got {named!r}")
        counts[chapter] += Count(judge=int(named == right), other=int(named not in (None, right)))
    for chapter, *_ in known.values():
        counts[chapter] += Count(mistakes=1)
    return counts


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}.") from error
    for number, line in enumerate(text.splitlines(), 1):
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise CourseError(f'{path}, line {number}: expected {{"id": ..., "name": ...}}, got {line[:60]!r}')
        yield number, said


def print_scores(counts: dict[str, Count]) -> None:
    """Print for each assignment the number of correctly named causes, and of all."""
    for name, each in {**counts, "all": sum(counts.values(), Count())}.items():
        print(f"{name:18}{_told(each)}")


def _told(each: Count) -> str:
    share = each.judge / each.mistakes if each.mistakes else 0.0
    return f"{each.judge:5,} of {each.mistakes:5,} identified ({share:.1%}), {each.other} taken for another"


def print_benchmark(counts: dict[str, Count]) -> None:
    """Print the share of the known mistakes that each method identifies."""
    total = sum(counts.values(), Count())
    print(f"{total.mistakes:,} known mistakes. How many can be identified by the one who reads")
    for way, meaning in WAYS.items():
        print(f"  {meaning:46}{getattr(total, way):6,}  {getattr(total, way) / max(total.mistakes, 1):6.1%}")


def write(counts: dict[str, Count], path: Path) -> None:
    """Record the counts as JSON."""
    path.write_text(
        json.dumps({name: asdict(each) for name, each in counts.items()}, indent=1) + "\n", encoding="utf-8"
    )


def recorded() -> dict[str, Count]:
    """The counts that were recorded, by assignment."""
    return {name: Count(**each) for name, each in json.loads(RECORDED.read_text(encoding="utf-8")).items()}
