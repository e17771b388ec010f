"""Decoding on a CPU in fewer and larger steps. `model/transformer.py` says what is computed.

Everything that the steps share is prepared once: queries, keys and values come from one product, the keys and values of
the source are computed when it is encoded, and one bias hides what the mask hides in all layers. Without checks of
shapes and calls from module to module, a step has half as many operations. This counts most when few sentences are
decoded together.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.config import ModelConfig
from transformer_ref.fast.attention import SHORTEST, quick_attention
from transformer_ref.fast.dropout import PooledDropout
from transformer_ref.fast.int8 import Int8Linear
from transformer_ref.fast.packed import PackedLinear, faster_linear
from transformer_ref.fast.products import QuickLinear
from transformer_ref.model.attention import fused_attention
from transformer_ref.model.decoder import Decoded, Decoder, DecoderLayer
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.encoder import Encoder, EncoderLayer
from transformer_ref.model.feed_forward import FeedForward
from transformer_ref.model.key_value_cache import kept_dtype
from transformer_ref.model.masks import padding_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention, merge_heads
from transformer_ref.model.positional_encoding import LearnedPositions, SinusoidalPositions
from transformer_ref.model.residual import Residual
from transformer_ref.model.transformer import Transformer
from transformer_ref.shapes import expect_padding_last

KNOWN = frozenset(
    [Transformer, Embedding, SinusoidalPositions, LearnedPositions, Encoder, EncoderLayer, Decoder, DecoderLayer]
    + [MultiHeadAttention, Residual, FeedForward, PooledDropout, nn.Dropout, nn.LayerNorm, nn.Identity, nn.Linear]
    + [nn.ModuleList, QuickLinear]
)
KERNELS = (quick_attention, F.scaled_dot_product_attention)
MORE_STEPS = 16  # that the cache makes memory for at a time

Product = Callable[[Tensor], Tensor]  # (..., in) -> (..., out)


def for_inference(model: Any, int8: bool = False) -> Any:
    """Return a faster model with the same outputs for decoding: an `InferenceTransformer`, or the model itself.

    model: in evaluation mode; int8: multiply 8-bit integers, on a CPU. Without int8, a model that is on a GPU, in
    training mode or made of other parts than the package's is returned itself. The weights are copied: later changes of
    the model have no effect.
    Raises ValueError where int8 is requested and not available.
    """
    unknown = _first_unknown_part(model)
    if unknown is None and int8:
        weight = model.output.weight
        if weight.device.type != "cpu":
            raise ValueError(f"precision: expected the device cpu for int8, got {weight.device}")
        if weight.dtype != torch.float32:
            raise ValueError(f"precision: expected weights in fp32 for int8, got {weight.dtype}")
        if model.training:
            raise ValueError("model: expected evaluation mode (model.eval()) for int8, got training mode")
        return InferenceTransformer(model, int8=True)
    if int8:
        raise ValueError(f"precision: expected a model of the package's own parts for int8, got {unknown}")
    if unknown is not None or model.training or model.output.weight.device.type != "cpu":
        return model
    return InferenceTransformer(model)


def _first_unknown_part(model) -> str | None:
    """Return the name of a part whose class is not the package's own, or None."""
    if type(model) is not Transformer:
        return type(model).__name__
    for module in model.modules():
        hooked = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
        if type(module) not in KNOWN or hooked or getattr(module, "kernel", quick_attention) not in KERNELS:
            return type(module).__name__
    return None


class InferenceEncoded(NamedTuple):
    """The encoded sources of a batch, with the keys and values for each decoder layer."""

    keys: list[Tensor]  # one (batch, heads, source, d_head) a layer; at least SHORTEST positions
    values: list[Tensor]  # one (batch, heads, source, d_head) a layer
    bias: Tensor  # (batch, heads, 1, source), 0 at real tokens and minus infinity elsewhere

    def select(self, rows: Tensor) -> "InferenceEncoded":
        """Return the given rows of the batch, in the given order; these tensors may be overwritten."""
        keys, values = ([_selected(each, 0, rows) for each in side] for side in (self.keys, self.values))
        return InferenceEncoded(keys, values, _selected(self.bias, 0, rows))


class InferenceCache:
    """The keys and values of every decoder layer's self-attention, in one piece of memory with room for more.

    Positions beyond `length` hold zeros. The bias masks them; they make rows of scores long enough to be vectorized.
    """

    def __init__(self) -> None:
        self.length = 0  # positions held
        self.room: Tensor | None = None  # (layers, 2, batch, heads, positions, d_head)

    def grow(self, shape: Sequence[int], added: int, like: Tensor) -> None:
        """Make room for more positions. shape: (layers, 2, batch, heads), d_head last; added: a step's positions."""
        *leading, d_head = shape
        end = self.length + added
        if self.room is None or end > self.room.shape[4]:
            positions = max(end + MORE_STEPS * added, SHORTEST)
            room = torch.zeros(*leading, positions, d_head, dtype=kept_dtype(like))
            if self.room is not None:
                room[..., : self.length, :] = self.room[..., : self.length, :]
            self.room = room

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in the given order."""
        if self.room is not None:
            self.room = _selected(self.room, 2, rows)


class InferenceTransformer:
    """A `Transformer` with only those methods that `greedy_decode` and `beam_search` call.

    model: in evaluation mode, made of the package's own parts, on a CPU; int8: multiply 8-bit integers.
    """

    training = False

    def __init__(self, model: Transformer, int8: bool = False) -> None:
        self.config: ModelConfig = model.config
        self._model = model
        linear = Int8Linear if int8 else _linear_in(model.output.weight.dtype)
        self._encoder_layers = [_InferenceLayer(layer, linear) for layer in model.encoder.layers]
        self._decoder_layers = [_InferenceLayer(layer, linear) for layer in model.decoder.layers]
        self.logits: Product = linear(model.output.weight, model.output.bias)

    def encode(self, source_ids: Tensor) -> InferenceEncoded:
        """Return the encoded sources; see `Transformer.encode`."""
        expect_padding_last("source_ids", source_ids, self.config.pad)
        model, mask = self._model, padding_mask(source_ids, self.config.pad)  # (batch, 1, 1, source)
        x = model.positions(model.source_embedding(source_ids))  # (batch, source, d_model)
        for layer in self._encoder_layers:
            query, key, value = layer.queries_keys_values(layer.self_residual.read(x))
            attended = fused_attention(query, key, value, mask, quick_attention).output
            x = _written(layer.self_residual, x, layer.self_output(merge_heads(attended)))
            x = _written(layer.ff_residual, x, layer.feed_forward(layer.ff_residual.read(x)))
        memory = model.encoder.norm(x)  # (batch, source, d_model)
        spare = max(SHORTEST - memory.shape[1], 0)
        blind = ~mask.any(dim=-1, keepdim=True)  # (batch, 1, 1, 1), sources of padding only: they answer zeros
        bias = _hiding(F.pad(mask, (0, spare)) | blind, memory).expand(-1, self.config.heads, -1, -1).contiguous()
        keys, values = [], []
        for layer in self._decoder_layers:
            both = layer.source_keys_values(memory)  # (2, batch, heads, source, d_head)
            key, value = F.pad(both, (0, 0, 0, spare)).to(kept_dtype(memory)).contiguous()
            keys.append(key)
            values.append(value.masked_fill_(blind, 0.0))
        return InferenceEncoded(keys, values, bias)

    def new_cache(self) -> InferenceCache:
        """Return an empty cache for `decode`."""
        return InferenceCache()

    def decode(
        self,
        target_ids: Tensor,
        encoded: InferenceEncoded,
        cache: InferenceCache,
        mask: Tensor | None = None,
        positions: Sequence[int] | None = None,
    ) -> Decoded:
        """Return the decoder's output for the next tokens, with an empty list of weights; see `Transformer.decode`.

        target_ids: (batch, target): without a mask one token; with one, each token is the newest
            of a hypothesis.
        """
        model, heads = self._model, self.config.heads
        places = cache.length if positions is None else positions
        x = model.positions(model.target_embedding(target_ids), places)  # (batch, target, d_model)
        batch, target, _ = x.shape
        start, end = cache.length, cache.length + target
        cache.grow((len(self._decoder_layers), 2, batch, heads, self.config.d_head), target, x)
        shown = max(end, SHORTEST)
        if mask is None:
            bias = _hiding(torch.arange(shown)[None, None] < end, x)  # (1, 1, shown)
        else:
            bias = _hiding(F.pad(mask, (0, shown - end)), x)
            bias = bias.expand(batch, heads, -1, -1).flatten(0, 1)  # (batch * heads, target, shown)
        of_source = encoded.bias.flatten(0, 1)  # (batch * heads, 1, source)
        for index, layer in enumerate(self._decoder_layers):
            query, *new = layer.queries_keys_values(layer.self_residual.read(x))
            for place, each in zip(cache.room[index], new, strict=True):
                place[:, :, start:end] = each
            key, value = cache.room[index, :, :, :, :shown]  # (batch, heads, shown, d_head)
            attended = _attended(query, key, value, bias, x)
            x = _written(layer.self_residual, x, layer.self_output(attended))
            query = layer.queries(layer.cross_residual.read(x))
            attended = _attended(query, encoded.keys[index], encoded.values[index], of_source, x)
            x = _written(layer.cross_residual, x, layer.cross_output(attended))
            x = _written(layer.ff_residual, x, layer.feed_forward(layer.ff_residual.read(x)))
        cache.length = end
        return Decoded(model.decoder.norm(x), [], [])


class _InferenceLayer:
    """The matrix products of an encoder or decoder layer. A decoder layer's query weights hold the scores' scale."""

    def __init__(self, layer: Any, linear: Callable[..., Product]) -> None:
        attention, self.is_decoder = layer.self_attention, isinstance(layer, DecoderLayer)
        self.heads = attention.heads
        scale = (attention.q_proj.out_features / self.heads) ** -0.5 if self.is_decoder else 1.0
        projections = [(attention.q_proj, scale), (attention.k_proj, 1.0), (attention.v_proj, 1.0)]
        self._query_key_value = linear(*_side_by_side(projections))
        self.self_output = linear(attention.out_proj.weight, attention.out_proj.bias)
        self.self_residual: Residual = layer.self_attention_residual
        if self.is_decoder:
            cross = layer.cross_attention
            self._query = linear(*_side_by_side([(cross.q_proj, scale)]))
            self._key_value = linear(*_side_by_side([(cross.k_proj, 1.0), (cross.v_proj, 1.0)]))
            self.cross_output = linear(cross.out_proj.weight, cross.out_proj.bias)
            self.cross_residual: Residual = layer.cross_attention_residual
        ff = layer.feed_forward
        self.ff_residual: Residual = layer.feed_forward_residual
        self._is_relu = ff.activation is F.relu
        self._activation = ff.activation
        self._fc1 = linear(ff.fc1.weight, ff.fc1.bias, relu=self._is_relu)
        self._fc2 = linear(ff.fc2.weight, ff.fc2.bias)

    def queries_keys_values(self, x: Tensor) -> Tensor:
        """Return (3, batch, heads, length, d_head) for x, (batch, length, d_model), of the self-attention."""
        return self._by_head(self._query_key_value(x), 3)

    def queries(self, x: Tensor) -> Tensor:
        """Return (batch, heads, length, d_head) for x, (batch, length, d_model), of the cross-attention."""
        return self._by_head(self._query(x), 1)[0]

    def source_keys_values(self, memory: Tensor) -> Tensor:
        """Return (2, batch, heads, source, d_head) for memory, (batch, source, d_model), of the cross-attention."""
        return self._by_head(self._key_value(memory), 2)

    def feed_forward(self, x: Tensor) -> Tensor:
        """Return what `FeedForward` returns, (batch, length, d_model), for x of the same shape."""
        wide = self._fc1(x)  # (batch, length, d_ff)
        return self._fc2(wide if self._is_relu else self._activation(wide))

    def _by_head(self, x: Tensor, pieces: int) -> Tensor:
        batch, length, features = x.shape
        x = x.view(batch, length, pieces, self.heads, features // (pieces * self.heads))
        return x.permute(2, 0, 3, 1, 4)  # (pieces, batch, heads, length, d_head)


def _side_by_side(projections: list[tuple[nn.Linear, float]]) -> tuple[Tensor, Tensor | None]:
    """Return the weights, each times its factor, as one matrix, and the biases as one vector."""
    weights = [projection.weight.detach() * factor for projection, factor in projections]
    biases = [None if each.bias is None else each.bias.detach() * factor for each, factor in projections]
    return torch.cat(weights), None if biases[0] is None else torch.cat(biases)  # all have a bias, or none has


def _linear_in(dtype: torch.dtype) -> Callable[..., Product]:
    """Return the class or function that makes a linear layer with weights in this dtype."""
    packed = dtype == torch.float32 and faster_linear().value == "packed"
    return PackedLinear if packed else _linear


def _linear(weight: Tensor, bias: Tensor | None = None, relu: bool = False) -> Product:
    """Return x -> x W^T + b, or its ReLU."""
    if not relu:
        return partial(F.linear, weight=weight.detach(), bias=None if bias is None else bias.detach())
    return lambda x: F.linear(x, weight, bias).relu_()


def _selected(x: Tensor, axis: int, rows: Tensor) -> Tensor:
    """Return the given rows of an axis, in the memory of x if rows only move from the end to indices that are free."""
    count = len(rows)
    moved = (rows != torch.arange(count)).nonzero().squeeze(1)
    source = rows[moved]
    if len(moved) and int(source.min()) < count:
        return x.index_select(axis, rows)
    if len(moved):
        x.index_copy_(axis, moved, x.index_select(axis, source))
    return x.narrow(axis, 0, count)


def _hiding(mask: Tensor, like: Tensor) -> Tensor:
    """Return what is added to scores: 0 where the mask is True and minus infinity elsewhere."""
    return torch.zeros(mask.shape, dtype=kept_dtype(like)).masked_fill_(~mask, -math.inf)


def _attended(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, like: Tensor) -> Tensor:
    """Return the attention output of each query, all heads side by side, (batch, query, d_model), dtype as `like`.

    query: (batch, heads, query, d_head), scaled; key, value: (batch, heads, key, d_head); bias: broadcastable to
    (batch * heads, query, key).
    """
    query = query.to(key.dtype).flatten(0, 1)  # (batch * heads, query, d_head)
    scores = torch.baddbmm(bias, query, key.flatten(0, 1).mT)  # (batch * heads, query, key)
    mixed = torch.bmm(scores.softmax(dim=-1), value.flatten(0, 1))  # (batch * heads, query, d_head)
    mixed = mixed.unflatten(0, (len(key), -1)).transpose(1, 2)  # (batch, query, heads, d_head)
    return mixed.to(like.dtype).flatten(2)  # (batch, query, d_model)


def _written(residual: Residual, x: Tensor, change: Tensor) -> Tensor:
    """Return what `Residual.write` returns, in the memory of `change`."""
    updated = change.add_(x)
    return updated if residual.norm_first else residual.norm(updated)
