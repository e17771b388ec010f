"""The weights of Hugging Face's Marian models, among them the OPUS-MT family, in and out.

A Marian model is the paper's, post-norm, with all sines before all cosines, another activation, one table for both
languages and the output, and a number added to each token's logit. It begins a translation with its padding token.
Reading and writing its folder needs no library of theirs.
"""

import json
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from transformer_ref.atomic_write import usual_mode
from transformer_ref.config import ModelConfig
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import unwrapped
from transformer_ref.text.sentence_pieces import PieceTokenizer

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
NEEDED = (  # fields of config.json
    *("model_type", "vocab_size", "d_model", "encoder_attention_heads", "decoder_attention_heads"),
    *("encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim", "dropout", "max_position_embeddings"),
    *("pad_token_id", "decoder_start_token_id", "eos_token_id", "activation_function", "scale_embedding"),
)
FLAGS = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}
COPIES = (  # of the shared table, of the sinusoids, and what a model may do without
    *("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    *("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
    "final_logits_bias",
)
OF_LAYERS = {  # our module's name in a layer -> Marian's
    "self_attention.q_proj": "self_attn.q_proj",
    "self_attention.k_proj": "self_attn.k_proj",
    "self_attention.v_proj": "self_attn.v_proj",
    "self_attention.out_proj": "self_attn.out_proj",
    "self_attention_residual.norm": "self_attn_layer_norm",
    "cross_attention.q_proj": "encoder_attn.q_proj",
    "cross_attention.k_proj": "encoder_attn.k_proj",
    "cross_attention.v_proj": "encoder_attn.v_proj",
    "cross_attention.out_proj": "encoder_attn.out_proj",
    "cross_attention_residual.norm": "encoder_attn_layer_norm",
    "feed_forward.fc1": "fc1",
    "feed_forward.fc2": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}


class MarianFolder(NamedTuple):
    """A model in evaluation mode, and what it reads and writes with."""

    model: Transformer
    source_tokenizer: PieceTokenizer
    target_tokenizer: PieceTokenizer


def load_marian_folder(folder: str | Path) -> MarianFolder:
    """Return the model and the tokenizers of a whole Marian folder, such as one of OPUS-MT.

    folder: holds what `load_marian` reads, and source.spm, target.spm and vocab.json (or also target_vocab.json).
    Raises FileNotFoundError for what is missing, ValueError naming what does not fit.
    """
    folder, model = Path(folder), load_marian(folder)
    vocabularies = [folder / "vocab.json"] * 2
    if (folder / "target_vocab.json").is_file():
        vocabularies[1] = folder / "target_vocab.json"
    tokenizers = [
        PieceTokenizer.read(_existing(folder / pieces), _json(vocabulary))
        for pieces, vocabulary in zip(("source.spm", "target.spm"), vocabularies, strict=True)
    ]
    sizes = model.config.source_vocabulary, model.config.target_vocabulary
    for vocabulary, tokenizer, size in zip(vocabularies, tokenizers, sizes, strict=True):
        if tokenizer.size != size:
            raise ValueError(f"{vocabulary.name}: expected {size} pieces, as the model has them, got {tokenizer.size}")
    return MarianFolder(model, *tokenizers)


def load_marian(folder: str | Path) -> Transformer:
    """Return the model of a Marian folder, in evaluation mode and fp32.

    folder: holds config.json and model.safetensors or, as older ones do, pytorch_model.bin.
    Text becomes ids by the tokenizer that came with the folder. `bos` is the token that begins a translation; in
    OPUS-MT that is the padding token.
    Raises FileNotFoundError, or ValueError naming the field or the weight that does not fit.
    """
    folder = Path(folder)
    config = _our_config(_json(folder / "config.json"))
    tensors = _read(folder)
    model = Transformer(config).eval()
    names = {name: _their_name(name, tensors) for name, _ in model.named_parameters()}
    if others := sorted(set(tensors) - {*names.values(), *COPIES}):
        raise ValueError(f"{others[0]}: expected no weight of this name, since our model has no place for it")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            their = names[name]
            if their not in tensors:
                raise ValueError(f"{their}: expected a weight of this name in {folder}, got none")
            tensor = tensors[their].squeeze(0) if name == "output.bias" else tensors[their]
            if tensor.shape != parameter.shape:
                raise ValueError(f"{their}: expected shape {tuple(parameter.shape)}, got {tuple(tensor.shape)}")
            if not tensor.isfinite().all():
                raise ValueError(f"{their}: expected finite weights, got NaN or infinity in {folder}")
            parameter.copy_(tensor)
    return model


def save_marian(model: Transformer, folder: str | Path) -> None:
    """Write the model as a Marian folder, which `transformers.MarianMTModel.from_pretrained` reads.

    Raises ValueError naming the field of the config that Marian does not support.
    """
    model = unwrapped(model)
    folder, config = Path(folder), model.config
    for name, wanted in (
        ("norm_first", False),
        ("last_norm", False),
        ("layout", "concatenated"),
        ("tie_embeddings", True),
    ):
        if getattr(config, name) != wanted:
            raise ValueError(f"{name}: expected {wanted!r}, which Marian has, got {getattr(config, name)!r}")
    shared = {"model.shared.weight": model.output.weight}
    tensors = {
        _their_name(name, shared): parameter.detach().float().cpu().contiguous()
        for name, parameter in model.named_parameters()
    }
    tensors["final_logits_bias"] = tensors.get("final_logits_bias", torch.zeros(config.target_vocabulary)).unsqueeze(0)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.safetensors"
    mode = usual_mode(path)
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(mode)  # safetensors creates files that only their owner can read
    (folder / "config.json").write_text(json.dumps(their_config(config), indent=2) + "\n", encoding="utf-8")


def _our_config(theirs: dict[str, Any]) -> ModelConfig:
    for name in NEEDED:
        if name not in theirs:
            raise ValueError(f"{name}: expected this field in config.json, got none")
    for name, wanted in FLAGS.items():
        if theirs.get(name, wanted) != wanted:  # folders of today do not say it and have it so
            raise ValueError(f"{name}: expected {wanted}, the paper's model, got {theirs[name]!r}")
    for name, wanted in (
        ("decoder_attention_heads", theirs["encoder_attention_heads"]),
        ("decoder_ffn_dim", theirs["encoder_ffn_dim"]),
        ("model_type", "marian"),
    ):
        if theirs[name] != wanted:
            raise ValueError(f"{name}: expected {wanted!r}, got {theirs[name]!r}")
    if theirs["activation_function"] not in ACTIVATIONS:
        raise ValueError(
            f"activation_function: expected one of {', '.join(ACTIVATIONS)}, got {theirs['activation_function']!r}"
        )
    shared = theirs.get("share_encoder_decoder_embeddings", True)  # older folders do not say it and share
    if not shared and "decoder_vocab_size" not in theirs:
        raise ValueError("decoder_vocab_size: expected this field in config.json, since the tables differ, got none")
    return ModelConfig(
        source_vocabulary=theirs["vocab_size"],
        target_vocabulary=theirs["vocab_size"] if shared else theirs["decoder_vocab_size"],
        d_model=theirs["d_model"],
        heads=theirs["encoder_attention_heads"],
        encoder_layers=theirs["encoder_layers"],
        decoder_layers=theirs["decoder_layers"],
        d_ff=theirs["encoder_ffn_dim"],
        dropout=theirs["dropout"],
        tie_embeddings=shared,
        max_length=theirs["max_position_embeddings"],
        pad=theirs["pad_token_id"],
        bos=theirs["decoder_start_token_id"],
        eos=theirs["eos_token_id"],
        activation=ACTIVATIONS[theirs["activation_function"]],
        layout="concatenated",
        scale_embedding=theirs["scale_embedding"],
        output_bias=True,
    )


def their_config(config: ModelConfig) -> dict[str, Any]:
    """Return the arguments of the `transformers.MarianConfig` with these sizes."""
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": config.target_vocabulary,
        "decoder_vocab_size": config.target_vocabulary,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "activation_function": config.activation,
        "scale_embedding": config.scale_embedding,
        "max_position_embeddings": config.max_length,
        "pad_token_id": config.pad,
        "bos_token_id": config.bos,
        "eos_token_id": config.eos,
        "forced_eos_token_id": None,
        "decoder_start_token_id": config.bos,
    }


def _their_name(name: str, tensors: dict[str, Tensor]) -> str:
    """Return Marian's name of a parameter; whether the embeddings are shared is seen from `tensors`."""
    if name == "output.bias":
        return "final_logits_bias"
    if name in ("source_embedding.weight", "target_embedding.weight", "output.weight"):
        if "model.shared.weight" in tensors:
            return "model.shared.weight"
        of = {
            "source_embedding.weight": "model.encoder.embed_tokens.weight",
            "target_embedding.weight": "model.decoder.embed_tokens.weight",
        }
        return of.get(name, "lm_head.weight" if "lm_head.weight" in tensors else "model.decoder.embed_tokens.weight")
    stack, layers, index, module = name.split(".", 3)
    module, part = module.rsplit(".", 1)
    return f"model.{stack}.{layers}.{index}.{OF_LAYERS[module]}.{part}"


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_existing(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name}: expected JSON, got {path} ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path.name}: expected an object in JSON, got {type(content).__name__} in {path}")
    return content


def _read(folder: Path) -> dict[str, Tensor]:
    path = folder / "model.safetensors"
    try:
        if path.is_file():
            return load_file(path)
        path = _existing(folder / "pytorch_model.bin")
        return torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, RuntimeError, UnpicklingError, EOFError) as error:
        raise ValueError(
            f"{path.name}: expected a complete file of weights, got {path} ({str(error).splitlines()[0]})"
        ) from error


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"folder: expected the file {path}, got nothing")
    return path
