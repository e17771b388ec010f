"""The GPT of letters that travels with the package, as a browser reads it (chapter 13).

`python -m book.recorded.gpt` trains it and writes its weights; live_model.js next to them computes with it.
"""

import json
from typing import Any

from transformer_ref.beyond.gpt import GPT
from transformer_ref.beyond.tales import ALPHABET
from transformer_ref.live_model import WEIGHTS, pack_tensors, unpack_tensors

GPT_WEIGHTS = WEIGHTS.with_name("gpt_weights.js")
PREFIX, SUFFIX = "window.gptWeights = ", ";\n"
SIZES = dict(d_model=64, h=4, layers=4, d_ff=192, max_length=192)


def pack(model: GPT, sizes: dict[str, int] = SIZES, alphabet: str = ALPHABET) -> dict[str, Any]:
    """Return the model as plain values, ready for JSON; see `transformer_ref.live_model.pack`."""
    return {"sizes": sizes, "alphabet": alphabet, **pack_tensors(model.state_dict())}


def unpack(packed: dict[str, Any]) -> GPT:
    """Return the model that `pack` described, in evaluation mode, with the rounded weights that a browser uses."""
    model = GPT(len(packed["alphabet"]), **packed["sizes"])
    model.load_state_dict(unpack_tensors(packed))
    return model.eval()


def trained_gpt() -> GPT:
    """Return the trained GPT of letters; its letters are `tales.ALPHABET`."""
    return unpack(json.loads(GPT_WEIGHTS.read_text(encoding="utf-8").removeprefix(PREFIX).removesuffix(SUFFIX)))
