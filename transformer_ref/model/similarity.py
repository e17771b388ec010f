"""The similarity of two vectors as one number (chapter 03)."""

import math

from torch import Tensor

from transformer_ref.shapes import expect_shape


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum over the last axis of a * b.

    a, b: (..., d_model), broadcast against each other. Returns (...).
    Raises ValueError when the last axes differ.
    """
    expect_shape("a", a, ..., "d_model")
    expect_shape("b", b, ..., a.shape[-1])
    return (a * b).sum(dim=-1)  # (...)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine between each vector of `a` and each of `b`: the dot product of their directions.

    a: (n, d_model); b: (m, d_model). Returns (n, m); a zero vector has similarity 0 to everything.
    """
    expect_shape("a", a, "n", "d_model")
    expect_shape("b", b, "m", a.shape[-1])
    return _direction(a) @ _direction(b).T  # (n, m)


def _direction(vectors: Tensor) -> Tensor:
    length = vectors.norm(dim=-1, keepdim=True)
    return vectors / length.where(length > 0, 1)


def scaled_dot_product_scores(query: Tensor, key: Tensor) -> Tensor:
    """Return one score for each query and each key: Q K^T / sqrt(d_k).

    query: (..., query, d_head); key: (..., key, d_head), the same leading axes. Returns (..., query, key).
    With entries of variance 1 a dot product of d_k terms has variance d_k; dividing by its square root
    brings the scores back to variance 1 for every d_k (Vaswani et al. 2017, section 3.2.1, note 4).
    """
    expect_shape("query", query, ..., "query", "d_head")
    expect_shape("key", key, *query.shape[:-2], "key", query.shape[-1])
    d_k = query.shape[-1]
    return query @ key.transpose(-2, -1) / math.sqrt(d_k)  # (..., query, key)
