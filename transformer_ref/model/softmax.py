"""Scores become probabilities: positive numbers that sum to one (chapters 04 and 08)."""

import torch
from torch import Tensor

from transformer_ref.shapes import expect_mask


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    """Return exp(scores) divided by its sum along `dim`.

    softmax(x) = softmax(x - c) for every number c; with c = max(x) no exponential exceeds 1, so none
    overflows, and the largest is 1, so the sum is never 0.
    scores: floating point, any shape. Returns the same shape and dtype.
    """
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


def masked_softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    """Return the softmax over the positions where `mask` is True, and exactly zero elsewhere.

    mask: boolean, broadcastable to `scores`, True = may attend; None allows every position.
    A slice without any True gives zeros, with zero gradients. The lowest finite number hides a
    score where minus infinity would do the same, but would turn such a slice into 0 / 0.
    Raises TypeError or ValueError for a mask of another dtype or shape.
    """
    if mask is None:
        return softmax(scores, dim)
    expect_mask("mask", mask, *scores.shape)
    hidden = ~mask
    weights = softmax(scores.masked_fill(hidden, torch.finfo(scores.dtype).min), dim)
    return weights.masked_fill(hidden, 0.0)
