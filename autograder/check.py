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

    Returns None when everything checked here is right, else the points earned so far.
    """
    namespace = inspect.currentframe().f_back.f_globals
    if not isinstance(exercise_id, str):
        print(
            'check: expected the id of an exercise in quotes, such as check("attention-weights"), '
            f"got {type(exercise_id).__name__}"
        )
        return 0.0
    if GRADED in os.environ:
        print("A check is answered when its own cell is graded; it is not counted here.")
        return None
    outcome = _judged_here(exercise_id, namespace)
    print(outcome["text"])
    if outcome["possible"]:
        _earned[exercise_id] = (outcome["earned"], outcome["possible"])
    return None if outcome["passed"] else float(outcome["earned"])


def progress() -> None:
    """Print what the checks run so far in this notebook have earned."""
    if not _earned:
        print("No check has been run in this session yet.")
        return
    width = max(map(len, _earned))
    for exercise_id, (earned, possible) in _earned.items():
        mark = "✓" if earned == possible else "·"
        print(f"  {mark} {exercise_id:<{width}}  {earned:g} of {possible:g} visible points")
    total, most = (sum(column) for column in zip(*_earned.values(), strict=True))
    print(f"  {total:g} of {most:g} visible points. Hidden checks decide the rest when the notebook is graded.")


def _judged_here(exercise_id: str, namespace: dict[str, Any]) -> dict[str, Any]:
    from autograder.judging.in_notebook import judge_in_notebook

    return judge_in_notebook(exercise_id, namespace)
