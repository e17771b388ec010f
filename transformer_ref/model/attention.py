"""Scaled dot-product attention (chapter 05, with masks from chapter 08).

    Attention(Q, K, V) = softmax( Q K^T / sqrt(d_k) ) V

Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1, equation 1. Each query scores every key, a softmax
turns the scores into weights, and the result is the weighted sum of the values.

Two paths compute it behind one signature. The explicit one is the formula and returns the weights; the
fused one is the library's kernel, which never stores them. A test holds them equal.

Masks are boolean, True = may attend (the opposite of `torch.nn.MultiheadAttention`). A query that may
attend to no key gets zeros, on both paths.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.model.similarity import scaled_dot_product_scores
from transformer_ref.model.softmax import masked_softmax
from transformer_ref.shapes import expect_mask, expect_shape

Kernel = Callable[..., Tensor]  # query, key, value and perhaps attn_mask -> softmax( Q K^T / sqrt(d_k) ) V


class AttentionResult(NamedTuple):
    """The result of attention: the output and, if they were computed, the weights."""

    output: Tensor  # (..., query, d_value)
    weights: Tensor | None  # (..., query, key)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return each query's attention weights over the keys: softmax( Q K^T / sqrt(d_k) ).

    query: (..., query, d_head); key: (..., key, d_head), the same leading axes.
    mask: boolean, broadcastable to (..., query, key), True = may attend; None allows every key.
    Returns (..., query, key): rows sum to 1, or are all zero where the mask allows no key.
    Raises TypeError or ValueError naming the argument whose dtype or shape does not fit.
    """
    scores = scaled_dot_product_scores(query, key)  # Q K^T / sqrt(d_k)   (..., query, key)
    return masked_softmax(scores, mask, dim=-1)  # each query shares out 1 over the keys


def attend(weights: Tensor, value: Tensor) -> Tensor:
    """Return the weighted averages of the values: A V.

    weights: (..., query, key); value: (..., key, d_value). Returns (..., query, d_value).
    """
    expect_shape("weights", weights, ..., "query", "key")
    expect_shape("value", value, *weights.shape[:-2], weights.shape[-1], "d_value")
    return weights @ value  # (..., query, d_value)


def explicit_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> AttentionResult:
    """Return softmax( Q K^T / sqrt(d_k) ) V and the weights, step by step.

    query: (..., query, d_head); key: (..., key, d_head); value: (..., key, d_value).
    mask: boolean, broadcastable to (..., query, key), True = may attend; None allows every key.
    Raises TypeError or ValueError naming the argument whose dtype or shape does not fit.
    """
    weights = attention_weights(query, key, mask)  # (..., query, key)
    return AttentionResult(attend(weights, value), weights)


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    kernel: Kernel = F.scaled_dot_product_attention,
) -> AttentionResult:
    """Return what `explicit_attention` does, by the library's kernel and without the weights.

    kernel: has the signature of `F.scaled_dot_product_attention`; every query of its mask may attend to some key. On a
    GPU a mask from `causal_mask` is replaced by `is_causal`, since only then can the flash kernel be chosen (Dao et al.
    2022).

    A kernel may return NaN for a query without keys. Here such a query attends to every key, and its output is then set
    to zero, which also stops every gradient.
    """
    expect_shape("query", query, ..., "query", "d_head")
    expect_shape("key", key, *query.shape[:-2], "key", query.shape[-1])
    expect_shape("value", value, *key.shape[:-1], "d_value")
    if mask is None:
        return AttentionResult(kernel(query, key, value), weights=None)
    expect_mask("mask", mask, *query.shape[:-1], key.shape[-2])
    if query.device.type != "cpu" and getattr(mask, "is_causal", False):
        return AttentionResult(kernel(query, key, value, is_causal=True), weights=None)
    blind = ~mask.any(dim=-1, keepdim=True)  # (..., query, 1)
    shown = torch.atleast_2d(mask | blind)  # the kernel wants a query axis
    output = kernel(query, key, value, attn_mask=shown)
    return AttentionResult(output.masked_fill(blind, 0.0), weights=None)
