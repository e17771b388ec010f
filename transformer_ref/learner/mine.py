"""What a notebook takes from earlier chapters: the learner's own code, from `my_transformer.py`, or the package's.

`python -m autograder assemble` writes that file from the cells that pass. Under grading there is none.
"""

import inspect
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = "my_transformer.py"
MODULE = "my_transformer"  # under which it can be imported
NOT_MINE = "NOT_MINE"  # its list of the names for which it holds the course's answer
GRADED = "ATTENTION_BY_HAND_GRADED"  # environment variable: set while a submission is graded

GIVEN = {  # name in the notebooks -> where the package has what does the same
    "scaled_scores": "transformer_ref.model.similarity.scaled_dot_product_scores",  # 03
    "softmax": "transformer_ref.model.softmax.softmax",  # 04
    "MultiHeadAttention": "transformer_ref.model.keeping_weights.MultiHeadAttention",  # 06
    "sinusoidal_pe": "transformer_ref.model.positional_encoding.sinusoidal_table",  # 07
    "padding_mask": "transformer_ref.model.masks.padding_mask",  # 08
    "causal_mask": "transformer_ref.model.masks.causal_mask",
    "decoder_mask": "transformer_ref.model.masks.decoder_mask",
    "EncoderLayer": "transformer_ref.model.tokens_alone.EncoderLayer",  # 09
    "Transformer": "transformer_ref.model.transformer.Transformer",
}

_loaded: dict[Path, tuple[str, ModuleType]] = {}  # text and module of each file, so that its parts are of one module


def part(name: str) -> Any:
    """Return the object called `name`: the learner's if their notebook says USE_MINE = True, else the package's.

    The package's is used too if the file lacks it or cannot be run. A line says which is used. Raises ValueError for a
    name that no earlier chapter has.
    """
    if name not in GIVEN:
        raise ValueError(f"name: expected one of {', '.join(GIVEN)}, got {name!r}")
    use_mine = bool(inspect.currentframe().f_back.f_globals.get("USE_MINE"))
    module, _, attribute = GIVEN[name].rpartition(".")
    given = getattr(import_module(module), attribute)
    if GRADED in os.environ:
        return given
    if not use_mine:
        print(f"{name}: the package's (USE_MINE is False).")
        return given
    path = own_file()
    if path is None:
        print(f"{name}: the package's. There is no {FILE} next to this notebook or one folder above.")
        return given
    own = _load(path)
    if isinstance(own, str):
        print(f"{name}: the package's. {path} {own}")
        return given
    if not hasattr(own, name):
        print(f"{name}: the package's. {path} has no {name}.")
        return given
    print(f"{name}: yours, from {path}.")
    return getattr(own, name)


def own_file(start: Path | None = None) -> Path | None:
    """Return the learner's file: next to the notebook or one folder above. Only the learner's file may run."""
    start = start or Path.cwd()
    return next((path for path in (start / FILE, start.parent / FILE) if path.is_file()), None)


def _load(path: Path) -> ModuleType | str:
    """Return the file's module, run once for all of its parts, or the reason why it cannot be run."""
    try:
        text = path.read_text(encoding="utf-8")
        if _loaded.get(path, ("",))[0] != text:
            _loaded[path] = text, run_text(str(path), text)
    except (Exception, SystemExit) as error:  # it is the learner's to edit
        return f"stops with {type(error).__name__}: {error}."
    sys.modules[MODULE] = _loaded[path][1]
    return _loaded[path][1]


def run_text(name: str, text: str) -> ModuleType:
    """Run a source as the file of that name and return its module, importable as `my_transformer`.

    Raises whatever the source raises; then the module of that name from before is restored.
    """
    module = ModuleType(MODULE)
    module.__file__ = name
    before = sys.modules.get(MODULE)
    sys.modules[MODULE] = module  # before it runs: a dataclass in it looks itself up
    try:
        exec(compile(text, name, "exec"), module.__dict__)
    except BaseException:
        sys.modules.pop(MODULE, None)
        if before is not None:
            sys.modules[MODULE] = before
        raise
    return module
