"""Attention that costs less (chapter 16): what the formula costs, and three ways around it.

`attention_flops` and `attention_memory` count. `linear_attention` has features instead of the softmax, so that the
brackets can be moved: Katharopoulos et al. 2020, "Transformers are RNNs". `online_softmax` and `tiled_attention` give
the softmax's own result without the table: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax";
Dao et al. 2022, "FlashAttention". With `grouped_query` heads share keys and values: Ainslie et al. 2023, "GQA".
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.model.attention import AttentionResult, explicit_attention
from transformer_ref.model.key_value_cache import KeyValueCache
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention, merge_heads, split_heads
from transformer_ref.model.similarity import scaled_dot_product_scores
from transformer_ref.shapes import expect_shape

CHUNK = 64  # tokens of causal linear attention that are computed at once
TILE = 256  # queries, and keys, of one tile


# ---- what it costs ------------------------------------------------------------------------------------------


def attention_flops(n: int, d: int, h: int) -> int:
    """Return the number of additions and multiplications in the two products Q K^T and A V of a layer.

    n: tokens; d: width of the layer, d_model; h: heads, of width d / h, which do not change the count. A multiplication
    and an addition count as two. Softmax, scaling and the four projections are left out.
    Raises ValueError where h does not divide d.
    """
    d_head = _d_head(d, h)
    scores = h * n * n * 2 * d_head  # n x n dot products of d_head numbers in each head
    mixing = h * n * d_head * 2 * n  # n x d_head sums over n values
    return scores + mixing


def attention_memory(n: int, d: int, h: int, bytes_per_element: int = 4) -> int:
    """Return the bytes of Q, K, V and the output, (n, d) each, and of one n x n table of weights for each head.

    n, d, h: as in `attention_flops`. bytes_per_element: 4 in float32, 2 in bfloat16.
    One sentence, one layer; the weights may be written over the scores, so a head has one table.
    Raises ValueError where h does not divide d.
    """
    _d_head(d, h)
    return (4 * n * d + h * n * n) * bytes_per_element


def cache_bytes(layers: int, groups: int, d_head: int, length: int, bytes_per_element: int = 4) -> int:
    """Return the bytes of the keys and values of one sentence: 2 L g d_head T, times the bytes of a number.

    layers: L; groups: g, heads of keys and values, not of queries; d_head: their width; length: T, tokens so far.
    """
    return 2 * layers * groups * d_head * length * bytes_per_element


def _d_head(d: int, h: int) -> int:
    if h < 1:
        raise ValueError(f"h: expected at least 1, got {h}")
    if d % h:
        raise ValueError(f"d: expected a multiple of heads ({h}), got {d}")
    return d // h


# ---- linear attention: products grouped differently --------------------------------------------------------------


def feature_map(x: Tensor) -> Tensor:
    """Return phi(x) = elu(x) + 1 of each number: x + 1 where x > 0, e^x elsewhere, so never less than 0.

    Below -17 in float32, below -6 in bfloat16, it rounds to 0; where all features of all keys do, the shares are NaN.
    Katharopoulos et al. 2020, section 3.2.1. Any shape.
    """
    return F.elu(x) + 1


class LinearState(NamedTuple):
    """The state of linear attention after all keys and values so far; its size does not grow."""

    mixed: Tensor  # (..., d_head, d_value), the sum of phi(k) v^T
    total: Tensor  # (..., d_head), the sum of phi(k)


def empty_state(key: Tensor, value: Tensor) -> LinearState:
    """Return the state before the first token. key: (..., key, d_head); value: (..., key, d_value)."""
    leading, d_head, d_value = key.shape[:-2], key.shape[-1], value.shape[-1]
    return LinearState(key.new_zeros(*leading, d_head, d_value), key.new_zeros(*leading, d_head))


def linear_step(state: LinearState, query: Tensor, key: Tensor, value: Tensor) -> tuple[LinearState, Tensor]:
    """Return the state after one more token and that token's output: a step of a recurrent network.

    query, key: (..., d_head) and value: (..., d_value) of the newest token, which sees itself.
    Katharopoulos et al. 2020, section 3.4.
    """
    features = feature_map(key)  # (..., d_head)
    mixed = state.mixed + features[..., :, None] * value[..., None, :]  # (..., d_head, d_value)
    state = LinearState(mixed, state.total + features)
    asked = feature_map(query)  # (..., d_head)
    norm = (asked * state.total).sum(dim=-1, keepdim=True)  # (..., 1)
    return state, (asked[..., None, :] @ state.mixed)[..., 0, :] / norm  # (..., d_value)


def linear_attention(query: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Tensor:
    """Return phi(Q) (phi(K)^T V), each row divided by phi(q) . (sum of phi(k)); no table of query by key.

    query: (..., query, d_head); key: (..., key, d_head); value: (..., key, d_value).
    causal: a query attends only to the keys up to its own position; then there are as many keys as queries.
    Returns (..., query, d_value). Nothing is divided by the root of d_head.
    Raises ValueError where shapes do not fit or there is no key. Katharopoulos et al. 2020, sections 3.2 and 3.3.
    """
    _expect_attention(query, key, value, causal)
    if causal:
        return _causal_linear_attention(query, key, value)
    asked, features = feature_map(query), feature_map(key)
    mixed = features.transpose(-2, -1) @ value  # (..., d_head, d_value), before any query is looked at
    total = features.sum(dim=-2)[..., None]  # (..., d_head, 1)
    return (asked @ mixed) / (asked @ total)  # (..., query, d_value)


def _causal_linear_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Compute it by chunks: a small masked table within a chunk, and only the state of all earlier chunks."""
    state, pieces = empty_state(key, value), []
    for begin in range(0, query.shape[-2], CHUNK):
        here = slice(begin, begin + CHUNK)
        asked, features, values = feature_map(query[..., here, :]), feature_map(key[..., here, :]), value[..., here, :]
        near = (asked @ features.transpose(-2, -1)).tril()  # (..., chunk, chunk)
        top = near @ values + asked @ state.mixed  # (..., chunk, d_value)
        norm = near.sum(dim=-1, keepdim=True) + asked @ state.total[..., None]  # (..., chunk, 1)
        pieces.append(top / norm)
        state = LinearState(
            state.mixed + features.transpose(-2, -1) @ values,  # (..., d_head, d_value)
            state.total + features.sum(dim=-2),  # (..., d_head)
        )
    return torch.cat(pieces, dim=-2)  # (..., query, d_value)


class FeatureAttention(MultiHeadAttention):
    """Multi-head attention whose weights are products of features, with any mask.

    It computes linear attention, but with the (query, key) table: its sentences are short, and a mask may hide any key.
    """

    def forward(
        self,
        query_input: Tensor,
        key_value_input: Tensor | None = None,
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> AttentionResult:
        """Return the attended tokens (batch, query, d_model) and each head's weights; see `MultiHeadAttention`."""
        query = split_heads(self.q_proj(query_input), self.heads)  # (batch, heads, query, d_head)
        key, value = self._keys_and_values(query_input, key_value_input, cache)  # (batch, heads, key, d_head)
        weights = feature_map(query) @ feature_map(key).transpose(-2, -1)  # (batch, heads, query, key)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        total = weights.sum(dim=-1, keepdim=True)  # (batch, heads, query, 1)
        weights = weights / total.masked_fill(total == 0, 1.0)  # zeros where no key may be seen
        output = self.out_proj(merge_heads(self.dropout(weights) @ value))  # (batch, query, d_model)
        return AttentionResult(output, weights if need_weights else None)


# ---- online softmax: the same numbers, piece by piece ----------------------------------------------------------


class Running(NamedTuple):
    """The state of a softmax-weighted sum after some of its blocks."""

    largest: Tensor  # (..., query, 1), the largest score so far, minus infinity before the first
    total: Tensor  # (..., query, 1), the sum of exp(score - largest)
    mixed: Tensor  # (..., query, d_value), the values times the same exponentials


def fold(running: Running | None, scores: Tensor, values: Tensor) -> Running:
    """Return the state after one more block; None stands for no block yet.

    scores: (..., query, n), minus infinity where a key is hidden; values: (..., n, d_value). n may differ each time.
    Sums under a smaller maximum are scaled down: exp(s - new) = exp(s - old) exp(old - new).
    """
    if running is None:
        start = scores.new_full((*scores.shape[:-1], 1), -torch.inf)  # (..., query, 1)
        nothing = values.new_zeros(*scores.shape[:-1], values.shape[-1])  # (..., query, d_value)
        running = Running(start, torch.zeros_like(start), nothing)
    largest = torch.maximum(running.largest, scores.amax(dim=-1, keepdim=True))  # (..., query, 1)
    shift = largest.masked_fill(largest == -torch.inf, 0.0)  # a row that has seen no key: inf - inf is not a number
    rescale = torch.exp(running.largest - shift)  # (..., query, 1)
    exponentials = torch.exp(scores - shift)  # (..., query, n)
    return Running(
        largest,
        running.total * rescale + exponentials.sum(dim=-1, keepdim=True),
        running.mixed * rescale + exponentials @ values,
    )


def finish(running: Running) -> Tensor:
    """Return the output, (..., query, d_value): zeros in a row that has seen no key."""
    blind = running.total == 0  # (..., query, 1)
    return (running.mixed / running.total.masked_fill(blind, 1.0)).masked_fill(blind, 0.0)


def online_softmax(blocks: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """Return softmax(all scores side by side) @ (all values below each other), reading each block once.

    blocks: pairs (scores (..., query, n), values (..., n, d_value)); n may differ; scores may be minus infinity, whole
    blocks of them too. Returns (..., query, d_value); zeros for a query without any key.
    Raises ValueError where there is no block. Milakov and Gimelshein 2018, algorithm 3.
    """
    running = None
    for scores, values in blocks:
        running = fold(running, scores, values)
    if running is None:
        raise ValueError("blocks: expected at least one, got none")
    return finish(running)


def tiled_attention(query: Tensor, key: Tensor, value: Tensor, causal: bool = False, tile: int = TILE) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_head)) V, with never more than tile x tile scores at once.

    query: (..., query, d_head); key: (..., key, d_head); value: (..., key, d_value).
    causal: a query attends only to the keys up to its own position; tiles without a key to see are left out.
    Returns (..., query, d_value). Raises ValueError where shapes do not fit, there is no key, or tile is below 1.
    Dao et al. 2022, algorithm 1, with the queries in the outer loop, as their second version has it.
    """
    _expect_attention(query, key, value, causal)
    if tile < 1:
        raise ValueError(f"tile: expected at least 1, got {tile}")
    rows = []
    for top in range(0, query.shape[-2], tile):
        asked = query[..., top : top + tile, :]  # (..., tile, d_head)
        end = min(top + tile, key.shape[-2]) if causal else key.shape[-2]
        rows.append(online_softmax(_tiles(asked, key, value, end, tile, top if causal else None)))
    return torch.cat(rows, dim=-2)  # (..., query, d_value)


def _tiles(
    asked: Tensor, key: Tensor, value: Tensor, end: int, tile: int, top: int | None
) -> Iterable[tuple[Tensor, Tensor]]:
    """Yield scores and values, a tile of keys at a time; `top` is the first query's position, None for no mask."""
    for left in range(0, end, tile):
        keys = key[..., left : min(left + tile, end), :]  # (..., tile, d_head)
        scores = scaled_dot_product_scores(asked, keys)  # (..., tile, tile)
        if top is not None and left + keys.shape[-2] > top:
            later = ~causal_mask(asked.shape[-2], top, asked.device)[:, left : left + keys.shape[-2]]
            scores = scores.masked_fill(later, -torch.inf)
        yield scores, value[..., left : left + keys.shape[-2], :]


# ---- grouped queries: fewer keys and values -----------------------------------------------------------------


def grouped_query(query: Tensor, key: Tensor, value: Tensor, groups: int) -> Tensor:
    """Return attention in which head i uses the keys and values of group i // (h / groups).

    query: (batch, h, query, d_head); key: (batch, groups, key, d_head); value: (batch, groups, key, d_value).
    groups: heads of keys and values; h of them are multi-head attention, 1 is multi-query attention.
    Returns (batch, h, query, d_value). Raises ValueError where groups does not divide h or key and value have another
    number of heads. Ainslie et al. 2023, section 2.2.
    """
    expect_shape("query", query, "batch", "h", "query", "d_head")
    heads = query.shape[1]
    if groups < 1 or heads % groups:
        raise ValueError(f"groups: expected a divisor of the heads ({heads}), got {groups}")
    expect_shape("key", key, query.shape[0], groups, "key", query.shape[-1])
    expect_shape("value", value, query.shape[0], groups, key.shape[2], "d_value")
    apart = query.unflatten(1, (groups, heads // groups))  # (batch, groups, heads of a group, query, d_head)
    asked = apart.flatten(2, 3)  # (batch, groups, heads of a group * query, d_head)
    output = explicit_attention(asked, key, value).output  # (batch, groups, heads of a group * query, d_value)
    return output.unflatten(2, apart.shape[2:4]).flatten(1, 2)  # (batch, h, query, d_value)


def _expect_attention(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> None:
    expect_shape("query", query, ..., "query", "d_head")
    expect_shape("key", key, *query.shape[:-2], query.shape[-2] if causal else "key", query.shape[-1])
    expect_shape("value", value, *key.shape[:-1], "d_value")
    if not key.shape[-2]:
        raise ValueError("key: expected at least one to look at, got none")
