"""A model for CTranslate2, which decodes on CPUs and GPUs without torch, in 8 bits if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from transformer_ref.model.encoder import EncoderLayer
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import unwrapped

if TYPE_CHECKING:
    import numpy as np

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}  # our name -> theirs


def token_names(size: int) -> list[str]:
    """Return the names by which `save_ctranslate2` calls the ids 0 to size - 1: "0", "1", ..."""
    return [str(id) for id in range(size)]


def save_ctranslate2(model: Transformer, folder: str | Path, quantization: str | None = None) -> None:
    """Write the model for `ctranslate2.Translator(folder)`; an existing folder is replaced.

    Ids are written as in `token_names`: translate_batch([["57", "12", "2"]]) returns such names. The source
    ends in eos, as everywhere here.
    quantization: None for fp32, or a name of theirs such as "int8".
    Raises ModuleNotFoundError without the library, ValueError for a variant that it does not have.
    """
    import ctranslate2  # an extra of its own: the rest of the package does without

    model = unwrapped(model)
    config = model.config
    if config.last_norm and not config.norm_first:
        raise ValueError("last_norm: expected False in a post-norm model for CTranslate2, got True")
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm_first,
        activation=getattr(ctranslate2.specs.Activation, ACTIVATIONS[config.activation]),
    )
    _fill_embedding(spec.encoder.embeddings[0], spec.encoder, model.source_embedding, model)
    _fill_embedding(spec.decoder.embeddings, spec.decoder, model.target_embedding, model)
    for layers, our_stack, their_stack in (
        (spec.encoder.layer, model.encoder, spec.encoder),
        (spec.decoder.layer, model.decoder, spec.decoder),
    ):
        for their, our in zip(layers, our_stack.layers, strict=True):
            _fill_layer(their, our)
        if config.norm_first:
            _fill_norm(their_stack.layer_norm, our_stack.norm)
    _fill_linear(spec.decoder.projection, model.output)
    spec.register_source_vocabulary(token_names(config.source_vocabulary))
    spec.register_target_vocabulary(token_names(config.target_vocabulary))
    spec.config.bos_token, spec.config.eos_token = str(config.bos), str(config.eos)
    spec.config.unk_token = str(config.pad)
    spec.config.decoder_start_token = str(config.bos)
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization=quantization)
    Path(folder).mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _fill_embedding(their_table, their_stack, our: nn.Module, model: Transformer) -> None:
    their_table.weight = _array(our.weight)
    their_stack.scale_embeddings = model.config.scale_embedding
    their_stack.position_encodings.encodings = _array(model.positions.table)


def _fill_layer(their, our: nn.Module) -> None:
    _fill_attention(their.self_attention, our.self_attention, stacked=3)
    _fill_norm(their.self_attention.layer_norm, our.self_attention_residual.norm)
    if not isinstance(our, EncoderLayer):
        _fill_attention(their.attention, our.cross_attention, stacked=1)
        _fill_norm(their.attention.layer_norm, our.cross_attention_residual.norm)
    _fill_linear(their.ffn.linear_0, our.feed_forward.fc1)
    _fill_linear(their.ffn.linear_1, our.feed_forward.fc2)
    _fill_norm(their.ffn.layer_norm, our.feed_forward_residual.norm)


def _fill_attention(their, our: MultiHeadAttention, stacked: int) -> None:
    """Fill one matrix with the first `stacked` of query, key, value, the next with the rest; then the output."""
    projections = our.q_proj, our.k_proj, our.v_proj
    groups = [projections[:stacked], projections[stacked:]] if stacked < len(projections) else [projections]
    for linear, group in zip(their.linear, groups, strict=False):
        linear.weight = _array(torch.cat([one.weight for one in group]))
        linear.bias = _array(torch.cat([one.bias for one in group]))
    _fill_linear(their.linear[-1], our.out_proj)


def _fill_linear(their, our: nn.Linear) -> None:
    their.weight = _array(our.weight)
    if our.bias is not None:
        their.bias = _array(our.bias)


def _fill_norm(their, our: nn.LayerNorm) -> None:
    their.gamma, their.beta = _array(our.weight), _array(our.bias)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy().copy()  # their quantization rounds what it is given, in place
