"""Attention by two products where the library's kernel is the slower one: on a CPU, in bf16 or for what is only read.

`model/attention.py` says what is computed.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

SHORTEST = 16  # keys: a CPU's softmax over fewer is not vectorized, and takes up to ten times as long
FEW = 64 * 64  # cells of queries by keys


def quick_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Return what `F.scaled_dot_product_attention` does, by whichever of two ways is the faster here.

    query: (..., query, d_head); key: (..., key, d_head); value: (..., key, d_value); attn_mask: boolean, broadcastable
    to (..., query, key), which shows every query some key.
    """
    kernel = two_products if products_are_faster(query, key) else F.scaled_dot_product_attention
    return kernel(query, key, value, attn_mask=attn_mask)


def products_are_faster(query: Tensor, key: Tensor) -> bool:
    """Return whether two products beat the library's kernel.

    They win 1.6 to 4 times in bf16, 1.1 to 2.6 times in fp32 up to FEW cells, and lose beyond or with gradients.
    """
    if query.device.type != "cpu":
        return False
    learns = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    return query.dtype == torch.bfloat16 or (not learns and query.shape[-2] * key.shape[-2] <= FEW)


def two_products(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Return what the library's kernel does; every query is shown some key."""
    scores = (query @ key.transpose(-2, -1)).mul_(query.shape[-1] ** -0.5)  # (..., query, key)
    if attn_mask is not None:
        bias = scores.new_zeros(attn_mask.shape).masked_fill_(~attn_mask, -torch.inf)
        scores = scores.add_(bias)  # in a tenth of the time that filling the larger scores takes
    keys = scores.shape[-1]
    if keys < SHORTEST:
        scores = F.pad(scores, (0, SHORTEST - keys), value=-torch.inf)
    return scores.softmax(dim=-1)[..., :keys] @ value  # (..., query, d_value)
