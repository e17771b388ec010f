"""What the last code cell of a notebook calls: `explore("softmax")` shows the learner's own functions at work.

Each notebook has a file of its name in `explorers/`; its `explorer` takes the learner's functions as arguments, and the
arguments' names say which.
"""

import inspect
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

GRADED = "ATTENTION_BY_HAND_GRADED"  # environment variable: set while a submission is graded


def explore(notebook: str) -> Any:
    """Return the explorer of a notebook, a widget that calls the notebook's current functions.

    notebook: the notebook's name, such as "softmax". Returns None under grading, and, with a message, if ipywidgets is
    not installed. Raises ValueError for a notebook without an explorer.
    """
    if GRADED in os.environ:
        return None
    try:
        import ipywidgets  # noqa: F401 - asked for by name, since a missing one is distinguished from a broken explorer
    except ModuleNotFoundError:
        print("The explorer needs ipywidgets. Run `%pip install ipywidgets` in a cell of its own, restart the kernel.")
        return None
    try:
        module = import_module(f"transformer_ref.visualization.explorers.{notebook}")
    except ModuleNotFoundError as error:
        raise ValueError(f"notebook: expected the name of a notebook with an explorer, got {notebook!r}") from error
    names = inspect.signature(module.explorer).parameters
    cells = inspect.currentframe().f_back.f_globals
    return module.explorer(*(_in_cells(cells, name) for name in names))


def _in_cells(cells: dict[str, Any], name: str) -> Callable[..., Any]:
    """Return a function that looks a name up in the notebook at each call: a corrected one is used at once."""

    def call(*arguments: Any) -> Any:
        from transformer_ref.visualization.explorers.panel import NotYet

        if not callable(cells.get(name)):
            raise NotYet(f"There is no {name} in this notebook yet. Run the cell that defines it.")
        return cells[name](*arguments)

    call.__name__ = name
    return call
