"""How the code of a fixture (see `fixtures/`) calls a learner's function."""

from collections.abc import Callable
from typing import Any


def answered(function: Callable, *arguments: Any) -> Any:
    """Call the answer. This function is the first frame of a traceback, which shows a call that does not fit the
    signature."""
    return function(*arguments)
