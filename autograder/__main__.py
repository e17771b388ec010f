"""The command line: `python -m autograder` lists the commands. Each one lives in a module of its own, which says what
it takes (`add_arguments`) and does it (`run`)."""

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module

import autograder.grade  # noqa: F401 (before any command: what it leaves out would take each of them a second)

COMMANDS = {  # name -> (module, what it does)
    "learn": ("learn.open", "copy the notebooks into a folder of yours and open them in JupyterLab"),
    "try": ("learn.try_file", "check an answer in a file, without Jupyter; with --watch, again whenever you save"),
    "assemble": ("assemble.run", "collect your answers that pass into one file, my_transformer.py"),
    "certificate": ("learn.certificate", "write a page about what your notebooks pass now, which anyone can verify"),
    "doctor": (
        "prepare.doctor",
        "check that this machine can grade, and that every known answer is judged as it should be",
    ),
    "roster": ("platforms.class_list", "read the class list, as Excel, Moodle or Canvas save it"),
    "collect": ("platforms.collect", "sort a download of submissions from Moodle or Canvas by student"),
    "grade": ("grade.run", "grade a class with several workers; can be interrupted and resumed"),
    "dashboard": (
        "reports.dashboard",
        "write a page for the teacher: scores, mistakes of the class, what to teach again",
    ),
    "comment": (
        "reports.comment",
        "write one comment for all students whose wrong answers behave alike, and make their feedback again",
    ),
    "feedback": ("platforms.hand_back", "pack the feedback pages for Moodle, Canvas or mail"),
    "export": ("reports.export", "export grades for Canvas, Moodle, Gradescope or a spreadsheet"),
    "similar": (
        "reports.similar",
        "write a page for the teacher: submissions that are more alike than the task explains",
    ),
    "inventory": ("reports.beliefs", "write a page for the teacher: what the class believed before and after"),
    "known-mistakes": ("catalogue.bank", "print the known mistakes as JSON lines, a data set for research"),
    "benchmark": ("grade.benchmark", "measure how fast a class is graded, and compare with plain nbgrader"),
    "new-exercise": (
        "prepare.new_exercise",
        "write the files of a new exercise of your own: entry, notebook cells, tests",
    ),
    "release": (
        "prepare.release",
        "make exercises/ from solutions/, after checking that the solutions earn full points",
    ),
}


ANYWHERE = {
    "learn",
    "try",
    "assemble",
    "certificate",
    "known-mistakes",
    "new-exercise",
}  # the others read a course's own files
INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 success, 1 a check failed, 2 wrong use, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a pipe on Windows may lack the letter ✓: no reason to stop
            stream.reconfigure(errors="replace")
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # most likely while it was importing, which takes seconds
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="python -m autograder", description="Check, grade and release the notebooks of Attention by Hand."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, what) in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        if name in given[:1]:  # only the requested command is imported: most of them import torch
            import_module(f"autograder.{module}").add_arguments(command)
    chosen = parser.parse_args(given)
    from autograder import course

    try:
        if chosen.command not in ANYWHERE:
            if sys.getfilesystemencoding() != "utf-8":  # by hand: a plain locale already gives utf-8 since Python 3.7
                raise course.CourseError(
                    f"This Python reads the names of files as {sys.getfilesystemencoding()}, and a student's name may "
                    "hold any letter. Set PYTHONUTF8=1."
                )
            course.no_pipes(course.find_root())
        return import_module(f"autograder.{COMMANDS[chosen.command][0]}").run(chosen)
    except course.CourseError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        if (place := _in_own_exercises(error)) is None:
            raise
        print(place, file=sys.stderr)
        return 2


def _in_own_exercises(error: Exception) -> str | None:
    """The file and line of a teacher's own exercises in which an error arose, or None."""
    own = sys.modules.get("autograder.catalogue.own")  # what was not imported raised nothing
    return own.blame(error) if own else None


if __name__ == "__main__":
    sys.exit(main())
