"""What a notebook calls: `check("attention-weights")` and `progress()`.

In a learner's own Jupyter the judge is imported into the same process. Under grading this says that it waits: the judge
asks from outside the sandbox, when it comes to the check's own cell.
"""

import inspect
import os
from typing import Any

GRADED = "ATTENTION_BY_HAND_GRADED"  # environment variable: set while a submission is graded

_earned: dict[str, tuple[float, float]] = {}


def check(exercise_id: str) -> float | None:
    """Print a report on the learner's answer to one exercise, e.g. `check("attention-weights")`.

    It asks the visible questions, then the hidden ones with numbers drawn on the spot, and says all about both. Returns
    None when everything checked here is right, else the points earned so far.
    """
    return _check(exercise_id, inspect.currentframe().f_back.f_globals, whole=True)


def visible_check(exercise_id: str) -> float | None:
    """What `check` is in the notebooks of a class whose hidden checks wait until grading: only visible ones are asked.

    Returns as `check` does. Grading knows no difference between the two.
    """
    return _check(exercise_id, inspect.currentframe().f_back.f_globals, whole=False)


def progress() -> None:
    """Print where the learner stands: every exercise of the notebook, what this session's checks have earned, what is
    next."""
    if GRADED in os.environ:
        print("Points are counted when the notebook is graded.")
        return
    from autograder.judging.standing import standing

    print(standing(_earned, inspect.currentframe().f_back.f_globals))


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
    from autograder.judging.in_notebook import judge_in_notebook

    outcome = judge_in_notebook(exercise_id, namespace, whole)
    print(outcome["text"])
    if outcome["possible"]:
        _earned[exercise_id] = (outcome["earned"], outcome["possible"])
    return None if outcome["passed"] else float(outcome["earned"])
