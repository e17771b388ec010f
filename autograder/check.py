"""What a notebook calls: `check("attention-weights")` and `progress()`.

In a learner's own Jupyter the judge is imported into the same process. Under grading this says that it waits: the judge
asks from outside the sandbox, when it comes to the check's own cell.
"""

import contextlib
import inspect
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

GRADED = "ATTENTION_BY_HAND_GRADED"  # environment variable: set while a submission is graded

PATIENCE = (10.0, 20.0, 30.0)  # seconds until a slow check says that it works, then again and again

_earned: dict[str, tuple[float, float]] = {}


def check(exercise_id: str) -> float | None:
    """Show a report on the learner's answer to one exercise, e.g. `check("attention-weights")`.

    It runs the visible checks, then the hidden ones with newly drawn numbers, and reports both in full. Returns None if
    everything is right, else the points earned so far.
    """
    return _check(exercise_id, inspect.currentframe().f_back.f_globals, whole=True)


def visible_check(exercise_id: str) -> float | None:
    """`check` in the notebooks of a class whose hidden checks wait until grading: only visible ones run.

    Returns as `check` does. Both are graded alike.
    """
    return _check(exercise_id, inspect.currentframe().f_back.f_globals, whole=False)


def progress() -> None:
    """Show the learner's progress: every exercise of the notebook, every chapter of the course, what is next.

    Points of earlier sessions are remembered in a file next to the notebooks (see `notebook.progress_store`).
    """
    if GRADED in os.environ:
        print("Points are counted when the notebook is graded.")
        return
    from autograder.notebook.progress_overview import standing

    _show(standing(_earned, inspect.currentframe().f_back.f_globals))


def _check(exercise_id: str, namespace: dict[str, Any], whole: bool) -> float | None:
    if not isinstance(exercise_id, str):
        print(
            'check: expected the id of an exercise in quotes, such as check("attention-weights"), '
            f"got {type(exercise_id).__name__}"
        )
        return 0.0
    if GRADED in os.environ:
        print("A check is answered when its own cell is graded; it is not counted here.")
        return None
    from autograder.notebook.own_check import judge_in_notebook

    with _said_when_slow():
        outcome = judge_in_notebook(exercise_id, namespace, whole)
    _show(outcome)
    if outcome["possible"]:
        _earned[exercise_id] = (outcome["earned"], outcome["possible"])
        if _shell() is not None:
            from autograder.notebook import progress_store

            progress_store.note(exercise_id, outcome["earned"], outcome["possible"], namespace)
    return None if outcome["passed"] else float(outcome["earned"])


@contextlib.contextmanager
def _said_when_slow() -> Iterator[None]:
    """Prints from time to time that a check is still running: an answer that trains or searches may take minutes."""
    done, began = threading.Event(), time.monotonic()

    def wait() -> None:
        for seconds in itertools.chain(PATIENCE, itertools.repeat(PATIENCE[-1])):
            if done.wait(seconds):
                return
            print(
                f"Still checking after {time.monotonic() - began:.0f} s. To stop it, interrupt the kernel.", flush=True
            )

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(shown: Mapping[str, str]) -> None:
    """Show the report as HTML in a notebook, with the text for programs that do not show HTML and for the stored file;
    else as text."""
    if hasattr(_shell(), "kernel"):
        from IPython.display import display

        display({"text/plain": shown["text"], "text/html": shown["html"]}, raw=True)
        return
    try:
        print(shown["text"])
    except UnicodeEncodeError:  # a terminal of few letters, as on Windows
        letters = sys.stdout.encoding
        print(shown["text"].encode(letters, "replace").decode(letters))


def _shell() -> Any:
    """The running IPython shell, or None. It is looked up without importing IPython."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
