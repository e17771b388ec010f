"""Which query may attend to which key (chapter 08): boolean, True = may attend.

A mask broadcasts to (batch, heads, query, key). Every mask of the package is built here.
`torch.nn.MultiheadAttention` reads True the other way round, as forbidden.
"""

import torch
from torch import Tensor

from transformer_ref.shapes import expect_ids


def padding_mask(ids: Tensor, pad: int) -> Tensor:
    """Return a mask that is True at every key that is a real token.

    ids: (batch, key). Returns (batch, 1, 1, key): the same keys for each head and each query.
    """
    expect_ids("ids", ids, "batch", "key")
    return (ids != pad)[:, None, None, :]  # (batch, 1, 1, key)


def causal_mask(query_length: int, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """Return a mask that is True where the key is not later than the query.

    offset: number of earlier positions whose keys are cached; query i is at position offset + i.
    Returns (query, offset + query). Without an offset it has the attribute `is_causal`, by which `fused_attention`
    recognizes it on a GPU; so do not modify it in place.
    """
    query_position = torch.arange(offset, offset + query_length, device=device)
    key_position = torch.arange(offset + query_length, device=device)
    mask = key_position <= query_position[:, None]  # (query, key)
    mask.is_causal = offset == 0
    return mask


def decoder_mask(ids: Tensor, pad: int) -> Tensor:
    """Return a mask that is True where the key is a real token and not later than the query.

    ids: (batch, target). Returns (batch, 1, target, target).
    """
    return padding_mask(ids, pad) & causal_mask(ids.shape[1], device=ids.device)  # (batch, 1, query, key)
