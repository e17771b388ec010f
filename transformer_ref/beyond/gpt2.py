"""GPT-2's weights, as Hugging Face stores them, in the GPT of chapter 13.

    python -m transformer_ref.beyond.gpt2 --real "Once upon a time"        downloads the 124 million weights once
    python -m transformer_ref.beyond.gpt2 --folder FOLDER "Once upon a time"

Their folder has the same numbers in another arrangement: queries, keys and values are one matrix, every matrix lies the
other way round, and the activation is an approximation of GELU (Hendrycks and Gimpel 2016). Reading it needs no library
of theirs; only `--real` asks one to download.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from transformer_ref.beyond.gpt import GPT, generate_cached
from transformer_ref.config import LARGEST_SEED
from transformer_ref.text.lines import expect_text

REPOSITORY = "openai-community/gpt2"
FILES = ("config.json", "model.safetensors", "vocab.json", "merges.txt")
DATA = Path("build/data/gpt2")
MASKS = (".attn.bias", ".attn.masked_bias")  # older files store the causal mask of each block
FLAGS = {  # what our code computes, by the fields of config.json
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "tie_word_embeddings": True,
    "add_cross_attention": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
}
NEEDED = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
EPSILON = 1e-5  # inside the root of a norm, as torch's own
IN_BLOCKS = {  # our module's name in a block -> theirs, and whether its matrix lies the other way round
    "self_attention.out_proj": ("attn.c_proj", True),
    "self_attention_residual.norm": ("ln_1", False),
    "feed_forward.fc1": ("mlp.c_fc", True),
    "feed_forward.fc2": ("mlp.c_proj", True),
    "feed_forward_residual.norm": ("ln_2", False),
}
FUSED = ("q_proj", "k_proj", "v_proj")  # side by side in attn.c_attn, in this order


class GPT2Folder(NamedTuple):
    """A model in evaluation mode and its tokenizer."""

    model: GPT
    tokenizer: tokenizers.Tokenizer


def our_weights(theirs: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Return the weights of a GPT-2 under the names, and in the layout, that `GPT` has.

    theirs: name -> tensor, with or without "transformer." in front. Raises ValueError naming a weight that is missing
    or is not used.
    """
    left = {name.removeprefix("transformer."): tensor for name, tensor in theirs.items()}
    left = {name: tensor for name, tensor in left.items() if not name.endswith(MASKS)}

    def take(name: str) -> Tensor:
        if name not in left:
            raise ValueError(f"{name}: expected a weight of this name, got none")
        return left.pop(name)

    ours = {"embedding.weight": take("wte.weight"), "positions.table": take("wpe.weight")}
    for block in range(layers):
        for name, (their, turned) in IN_BLOCKS.items():
            weight, bias = (take(f"h.{block}.{their}.{kind}") for kind in ("weight", "bias"))
            ours[f"blocks.{block}.{name}.weight"] = weight.T if turned else weight
            ours[f"blocks.{block}.{name}.bias"] = bias
        fused = (take(f"h.{block}.attn.c_attn.{kind}").chunk(3, dim=-1) for kind in ("weight", "bias"))
        for name, weight, bias in zip(FUSED, *fused, strict=True):
            ours[f"blocks.{block}.self_attention.{name}.weight"] = weight.T
            ours[f"blocks.{block}.self_attention.{name}.bias"] = bias
    ours |= {f"norm.{kind}": take(f"ln_f.{kind}") for kind in ("weight", "bias")}
    head = left.pop("lm_head.weight", None)
    if head is not None and not torch.equal(head, ours["embedding.weight"]):
        raise ValueError("lm_head.weight: expected the table of tokens, got another matrix")
    if left:
        raise ValueError(f"weights: expected those of {layers} blocks, got also {', '.join(sorted(left)[:3])}")
    return {name: tensor.detach().float().contiguous() for name, tensor in ours.items()}


def gpt_from(config: dict[str, Any], theirs: dict[str, Tensor]) -> GPT:
    """Return the GPT that a GPT-2's config and weights describe, in evaluation mode and fp32.

    Raises ValueError naming the field or the weight that does not fit.
    """
    for name in NEEDED:
        if name not in config:
            raise ValueError(f"{name}: expected this field in config.json, got none")
        if type(config[name]) is not int or config[name] < 1:
            raise ValueError(f"{name}: expected a number of at least 1 in config.json, got {config[name]!r}")
    for name, wanted in FLAGS.items():
        if config.get(name, wanted) != wanted:
            raise ValueError(f"{name}: expected {wanted!r}, got {config[name]!r}")
    if config.get("layer_norm_epsilon", EPSILON) != EPSILON:
        raise ValueError(f"layer_norm_epsilon: expected {EPSILON}, got {config['layer_norm_epsilon']}")
    width = config["n_embd"]
    d_ff = config.get("n_inner") or 4 * width
    model = GPT(config["vocab_size"], width, config["n_head"], config["n_layer"], d_ff, config["n_positions"])
    ours = our_weights(theirs, config["n_layer"])
    for name, parameter in model.named_parameters():
        if ours[name].shape != parameter.shape:
            raise ValueError(f"{name}: expected shape {tuple(parameter.shape)}, got {tuple(ours[name].shape)}")
        if not ours[name].isfinite().all():
            raise ValueError(f"{name}: expected finite weights, got NaN or infinity")
    model.load_state_dict(ours)
    for block in model.blocks:
        block.feed_forward.activation = partial(F.gelu, approximate="tanh")
    return model.eval()


def load_gpt2(folder: str | Path) -> GPT:
    """Return the GPT of a folder with config.json and model.safetensors.

    Raises FileNotFoundError, or ValueError naming what does not fit.
    """
    config, weights = (Path(folder) / name for name in FILES[:2])
    for path in (config, weights):
        if not path.is_file():
            raise FileNotFoundError(f"folder: expected {path}, which is not there")
    try:
        described, tensors = json.loads(config.read_text(encoding="utf-8")), load_file(weights)
    except (ValueError, SafetensorError) as error:  # no JSON, no UTF-8, no whole safetensors file
        raise ValueError(
            f"folder: expected a whole config.json and model.safetensors in {folder}, got: {error}"
        ) from error
    if not isinstance(described, dict):
        raise ValueError(f"folder: expected fields in {config}, got a {type(described).__name__}")
    return gpt_from(described, tensors)


def load_gpt2_folder(folder: str | Path) -> GPT2Folder:
    """Return the model and the tokenizer, of vocab.json and merges.txt, of a whole folder; raises as `load_gpt2`."""
    paths = [Path(folder) / name for name in FILES[2:]]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"folder: expected {path}, which is not there")
    try:
        model = tokenizers.models.BPE.from_file(*map(str, paths))
    except Exception as error:  # the library raises nothing more special
        raise ValueError(f"folder: expected a vocabulary and its merges in {folder}, got: {error}") from error
    gpt = load_gpt2(folder)
    words, size = tokenizers.Tokenizer(model).get_vocab(), len(gpt.embedding.weight)
    if max(words.values(), default=0) >= size:
        raise ValueError(f"vocab.json: expected ids below {size}, as the model has them, got {max(words.values())}")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return GPT2Folder(gpt, tokenizer)


def downloaded(folder: Path = DATA) -> Path:
    """Return the folder with the real GPT-2, 550 megabytes, downloaded where it is not there.

    Raises OSError saying why, where it cannot be had.
    """
    if not all((folder / name).is_file() for name in FILES):
        try:
            from huggingface_hub import snapshot_download

            snapshot_download(REPOSITORY, allow_patterns=list(FILES), local_dir=folder)
        except Exception as error:  # whichever of its libraries met the network first
            first = (str(error).strip().splitlines() or [type(error).__name__])[0].removeprefix("Got: ")
            raise OSError(
                f"{REPOSITORY}: expected to download {', '.join(FILES)} into {folder}, got: {first}"
            ) from error
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Continue a text; return 0, or 2 after a sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m transformer_ref.beyond.gpt2", description="GPT-2 in our own code.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--real", action="store_true", help="the published 124 million weights, downloaded once")
    where.add_argument("--folder", type=Path, help="a folder as `save_pretrained` writes it, with its vocabulary")
    parser.add_argument("text", nargs="?", default="Once upon a time", help="what is continued")
    parser.add_argument("--tokens", type=int, default=40, help="how many are written")
    parser.add_argument("--tau", type=float, default=0.0, help="temperature; 0 (default) takes the likeliest")
    parser.add_argument("--seed", type=int, default=1, help="of the draws")
    chosen = parser.parse_args(arguments)
    try:
        if not 0 <= chosen.seed <= LARGEST_SEED:
            raise ValueError(f"seed: expected 0 to {LARGEST_SEED}, got {chosen.seed}")
        model, tokenizer = load_gpt2_folder(downloaded() if chosen.real else chosen.folder)
        expect_text("text", chosen.text)
        ids = tokenizer.encode(chosen.text).ids
        if not ids:
            raise ValueError("text: expected at least one token to go on from, got none")
        print(f"{chosen.text!r} is {ids}")
        drawn = torch.Generator().manual_seed(chosen.seed)
        answer = generate_cached(model, torch.tensor([ids]), chosen.tokens, chosen.tau, drawn)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(tokenizer.decode(answer[0].tolist()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
