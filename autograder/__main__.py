"""The command line: python -m autograder try | doctor | release."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 a check failed, 2 wrong use."""
    parser = argparse.ArgumentParser(prog="python -m autograder", description="A student notebook becomes a grade.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    trial = commands.add_parser("try", help="judge your own answer files as grading does (they are not confined)")
    trial.add_argument("exercise", help='the exercise\'s id, such as "attention-weights"')
    trial.add_argument("answers", nargs="+", type=Path, metavar="ANSWER.py", help="files that hold one answer each")
    trial.add_argument("--json", action="store_true", help="one JSON object a line")
    doctor = commands.add_parser("doctor", help="try every known answer and print which are judged as they should be")
    doctor.add_argument("exercises", nargs="*", metavar="EXERCISE", help="only these (default: all)")
    release = commands.add_parser("release", help="make exercises/ from solutions/, once the solutions earn everything")
    release.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="only these (default: all)")
    chosen = parser.parse_args(arguments)
    from autograder.course import CourseError

    try:
        return {"try": _try, "doctor": _doctor, "release": _release}[chosen.command](chosen)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2


def _try(chosen: argparse.Namespace) -> int:
    from autograder import catalogue, course, trial, verdict

    exercise = catalogue.find(chosen.exercise)
    if exercise is None:
        raise course.CourseError(
            f"There is no exercise {chosen.exercise!r}. The exercises are: {', '.join(catalogue.exercises())}."
        )
    for file, judged in trial.try_files(exercise, chosen.answers, course.find_root()):
        if chosen.json:
            print(json.dumps(_as_json(file, judged), ensure_ascii=False), flush=True)
        else:
            print(f"{file}\n{verdict.render(judged)}\n", flush=True)
    return 0


def _as_json(file: Path, judged) -> dict:
    return {
        "file": str(file),
        "exercise": judged.exercise.id,
        "points": judged.points,
        "max_points": judged.exercise.points,
        "misconception": judged.misconception.name if judged.misconception else None,
        "message": judged.explanation(),
    }


def _doctor(chosen: argparse.Namespace) -> int:
    from autograder import doctor

    return doctor.print_matrix(chosen.exercises)


def _release(chosen: argparse.Namespace) -> int:
    from autograder import release

    return release.release(chosen.assignments)


if __name__ == "__main__":
    sys.exit(main())
