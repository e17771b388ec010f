"""The small trained translator that travels with the package; a browser computes with the same file (chapter 00).

Each row of a matrix is stored in whole numbers from -127 to 127 and one scale; biases and norms stay float32. The file
is a script, since a page that is opened from a disk may load scripts and nothing else. `python -m
book.recorded.live_model` writes it.
"""

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_ref.config import ModelConfig
from transformer_ref.model.transformer import Transformer
from transformer_ref.special_tokens import SPECIAL_TOKENS
from transformer_ref.text.tokenizer import WordTokenizer, tokenizer_from_json

WEIGHTS = Path(__file__).resolve().parent / "pretrained" / "live_model_weights.js"
PREFIX, SUFFIX = "window.liveModelWeights = ", ";\n"
LARGEST = 127  # of a signed byte, leaving out -128 so that both signs reach equally far
TIED = ("target_embedding.table", "output.weight")  # the same tensor as source_embedding.table


class Packed(NamedTuple):
    """The model in evaluation mode and the tokenizer of both its sides."""

    model: Transformer
    tokenizer: WordTokenizer


def pack(model: Transformer, tokenizer: WordTokenizer) -> dict[str, Any]:
    """Return the model as plain values, ready for JSON; its numbers are the bytes of `data`, in base64.

    Every number that is stored as float32 comes first, in the order of `tensors`: a matrix's scales, one a row, or a
    vector itself. The matrices' signed bytes follow in the same order, row by row. Little-endian.
    Raises ValueError for a model without tied embeddings.
    """
    if not model.config.tie_embeddings:
        raise ValueError("model: expected tied embeddings, got three tables")
    tensors = [(name, tensor.float()) for name, tensor in model.state_dict().items() if name not in TIED]
    floats, bytes_ = [], []
    for _, tensor in tensors:
        if tensor.dim() == 1:
            floats.append(tensor)
            continue
        scale = tensor.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / LARGEST  # (row, 1)
        floats.append(scale.flatten())
        bytes_.append((tensor / scale).round().to(torch.int8).flatten())
    data = torch.cat(floats).numpy().astype("<f4").tobytes() + torch.cat(bytes_).numpy().tobytes()
    return {
        "config": model.config.to_dict(),
        "tokens": list(tokenizer.vocabulary.tokens),
        "tensors": [[name, list(tensor.shape)] for name, tensor in tensors],
        "data": base64.b64encode(data).decode(),
    }


def unpack(packed: dict[str, Any]) -> Packed:
    """Return the model that `pack` described, with the rounded weights that the browser computes with."""
    config = ModelConfig.from_dict(packed["config"])
    data = bytearray(base64.b64decode(packed["data"]))
    first = sum(shape[0] for _, shape in packed["tensors"])  # a scale a row, or a number
    floats = torch.frombuffer(data, dtype=torch.float32, count=first)
    bytes_ = torch.frombuffer(data, dtype=torch.int8, offset=4 * first)
    weights: dict[str, Tensor] = {}
    for name, shape in packed["tensors"]:
        own, floats = floats[: shape[0]], floats[shape[0] :]
        if len(shape) == 2:
            rows, bytes_ = bytes_[: shape[0] * shape[1]].view(shape), bytes_[shape[0] * shape[1] :]  # (row, column)
            own = rows * own[:, None]  # (row, column)
        weights[name] = own
    weights |= dict.fromkeys(TIED, weights["source_embedding.table"])
    model = Transformer(config)
    model.load_state_dict(weights)
    description = {"kind": "word", "tokens": packed["tokens"][len(SPECIAL_TOKENS) :]}
    tokenizer = tokenizer_from_json(json.dumps(description))
    assert isinstance(tokenizer, WordTokenizer)
    return Packed(model.eval(), tokenizer)


def read_weights(path: Path = WEIGHTS) -> dict[str, Any]:
    """Return the packed model as the script holds it."""
    return json.loads(path.read_text(encoding="utf-8").removeprefix(PREFIX).removesuffix(SUFFIX))
