"""A trained translator as a browser reads it; a small one travels with the package (chapters 00 and 12).

Each row of a matrix is stored in whole numbers from -127 to 127 and one scale; biases and norms stay float32. The file
is a script, since a page that is opened from a disk may load scripts and nothing else. `python -m
book.recorded.live_model` writes it. Beside it lies live_model.js, which computes with it.
"""

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
import torch
from torch import Tensor

from transformer_ref.config import ModelConfig
from transformer_ref.model.transformer import Transformer
from transformer_ref.special_tokens import SPECIAL_TOKENS
from transformer_ref.text.tokenizer import NFC, SubwordTokenizer, Tokenizer, WordTokenizer, tokenizer_from_json

WEIGHTS = Path(__file__).resolve().parent / "pretrained" / "live_model_weights.js"
PREFIX, SUFFIX = "window.liveModelWeights = ", ";\n"
ENGINE = WEIGHTS.with_name("live_model.js")
LARGEST = 127  # of a signed byte, leaving out -128 so that both signs reach equally far
TIED = ("target_embedding.weight", "output.weight")  # where tied, the same tensor as source_embedding.weight
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


class Packed(NamedTuple):
    """The model in evaluation mode and the tokenizer of both its sides."""

    model: Transformer
    tokenizer: WordTokenizer | SubwordTokenizer


def pack(model: Transformer, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the model as plain values, ready for JSON; its numbers are the bytes of `data`, in base64.

    All float32 numbers come first, in the order of `tensors`: a matrix's scales, one per row, or a vector itself. The
    matrices' signed bytes follow in the same order, row by row. Little-endian.
    tokenizer: of both sides. Raises ValueError for one that is of neither words nor bytes.
    """
    described = _described(tokenizer)
    left_out = TIED if model.config.tie_embeddings else ()
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in left_out}
    return {"config": model.config.to_dict(), **described, **pack_tensors(tensors)}


def pack_tensors(tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Return `tensors` and `data` of `pack` for any matrices and vectors."""
    named = [(name, tensor.detach().float().cpu()) for name, tensor in tensors.items()]
    floats, bytes_ = [], []
    for _, tensor in named:
        if tensor.dim() == 1:
            floats.append(tensor)
            continue
        scale = tensor.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / LARGEST  # (row, 1)
        floats.append(scale.flatten())
        bytes_.append((tensor / scale).round().to(torch.int8).flatten())
    data = torch.cat(floats).numpy().astype("<f4").tobytes() + torch.cat(bytes_).numpy().tobytes()
    return {"tensors": [[name, list(tensor.shape)] for name, tensor in named], "data": base64.b64encode(data).decode()}


def unpack_tensors(packed: dict[str, Any]) -> dict[str, Tensor]:
    """Return the tensors that `pack_tensors` described, rounded as in the browser."""
    data = bytearray(base64.b64decode(packed["data"]))
    first = sum(shape[0] for _, shape in packed["tensors"])  # a scale a row, or a number
    floats = torch.frombuffer(data, dtype=torch.float32, count=first)
    bytes_ = torch.frombuffer(data, dtype=torch.int8, offset=4 * first)
    tensors: dict[str, Tensor] = {}
    for name, shape in packed["tensors"]:
        own, floats = floats[: shape[0]], floats[shape[0] :]
        if len(shape) == 2:
            rows, bytes_ = bytes_[: shape[0] * shape[1]].view(shape), bytes_[shape[0] * shape[1] :]  # (row, column)
            own = rows * own[:, None]  # (row, column)
        tensors[name] = own
    return tensors


def unpack(packed: dict[str, Any]) -> Packed:
    """Return the model that `pack` described, with the rounded weights that the browser uses."""
    config = ModelConfig.from_dict(packed["config"])
    weights = unpack_tensors(packed)
    if config.tie_embeddings:
        weights |= dict.fromkeys(TIED, weights["source_embedding.weight"])
    model = Transformer(config)
    model.load_state_dict(weights)
    return Packed(
        model.eval(),
        _tokenizer(packed["tokens"][len(SPECIAL_TOKENS) :], packed.get("merges"), packed.get("normalization")),
    )


def _described(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the tokens by id, for subwords the merges in their order, and the Unicode normalization, if any."""
    if isinstance(tokenizer, WordTokenizer):
        normalization = {"normalization": tokenizer.normalization} if tokenizer.normalization else {}
        return {"tokens": list(tokenizer.vocabulary.tokens), **normalization}
    library = json.loads(tokenizer.to_json()).get("library", {})
    kind = {name: library.get("pre_tokenizer", {}).get(name) for name in BYTE_LEVEL}
    normalizer = library.get("normalizer")
    if not isinstance(tokenizer, SubwordTokenizer) or kind != BYTE_LEVEL or normalizer not in (None, {"type": NFC}):
        raise ValueError(
            f"tokenizer: expected one of words or of byte-level subwords, got a {type(tokenizer).__name__}"
        )
    model = library["model"]
    merges = [each.split(" ") if isinstance(each, str) else each for each in model["merges"]]
    tokens = [*SPECIAL_TOKENS, *sorted(model["vocab"], key=model["vocab"].__getitem__)]
    return {"tokens": tokens, "merges": merges, **({"normalization": NFC} if normalizer else {})}


def _tokenizer(
    tokens: list[str], merges: list[list[str]] | None, normalization: str | None
) -> WordTokenizer | SubwordTokenizer:
    if merges is None:
        return tokenizer_from_json(json.dumps({"kind": "word", "tokens": tokens, "normalization": normalization}))
    vocabulary = {token: id for id, token in enumerate(tokens)}
    model = tokenizers.models.BPE(vocabulary, [(left, right) for left, right in merges])
    library = json.loads(tokenizers.Tokenizer(model).to_str()) | {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL}
    library["normalizer"] = {"type": normalization} if normalization else None
    return tokenizer_from_json(json.dumps({"kind": "subword", "library": library}))


def read_weights() -> dict[str, Any]:
    """Return the packed model that the script holds."""
    return json.loads(WEIGHTS.read_text(encoding="utf-8").removeprefix(PREFIX).removesuffix(SUFFIX))
