"""What a notebook takes from earlier chapters: the learner's own code, from `my_transformer.py`, or the package's.

`python -m autograder assemble` writes that file from the cells that pass. Under grading there is none.
"""

import inspect
import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = "my_transformer.py"
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


def part(name: str) -> Any:
    """Return what is called `name`: the learner's where their notebook says USE_MINE = True, else the package's.

    The package's also where the file lacks it or cannot be run. A line says which. Raises ValueError for a name that no
    earlier chapter has.
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
        print(f"{name}: the package's. There is no {FILE} beside this notebook or one folder above.")
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
    """The learner's file: beside the notebook, or in the folder of notebooks above it. No further up: a file that
    is run must be the learner's own."""
    start = start or Path.cwd()
    return next((path for path in (start / FILE, start.parent / FILE) if path.is_file()), None)


def _load(path: Path) -> ModuleType | str:
    """The file, run anew as it is now, or why that cannot be done. It becomes importable as `my_transformer`."""
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # it is the learner's to edit
        return f"stops with {type(error).__name__}: {error}."
    sys.modules[path.stem] = module
    return module
