"""Attention by two products where the library's kernel is the slower one: on a CPU with units for bf16, in bf16.

`model/attention.py` says what is computed.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.machine import MARGIN, Choice, choose, is_traced, speedup

# Keys: a CPU's softmax over fewer is not vectorized, and takes up to ten times as long. Torch's widest vectors hold 16
# floats (AVX512), and narrower ones divide 16.
SHORTEST = 16
MEASURED = 64, 4, 32, 64  # batch, heads, keys and d_head at which the two ways are measured, for one query each


def quick_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Return what `F.scaled_dot_product_attention` does, by whichever of two ways is the faster here.

    query: (..., query, d_head); key: (..., key, d_head); value: (..., key, d_value); attn_mask: boolean, broadcastable
    to (..., query, key), which shows every query some key.
    """
    kernel = two_products if products_are_faster(query) else F.scaled_dot_product_attention
    return kernel(query, key, value, attn_mask=attn_mask)


def products_are_faster(query: Tensor) -> bool:
    """Return whether two products beat the library's kernel: never in fp32, and never on a GPU, whose kernels are made
    for both."""
    if query.device.type != "cpu" or query.dtype != torch.bfloat16 or is_traced():
        return False
    return attention_kernel().value == "products"


def attention_kernel() -> Choice:
    """Return whether this CPU computes attention in bf16 faster by two "products" or by the library's "kernel".

    With units for bf16 the products win 2 to 10 times, because the kernel computes in fp32; without units they lose as
    much.
    """
    return choose("attention", torch.device("cpu"), _measured_kernel)


def _measured_kernel() -> tuple[str, str]:
    batch, heads, keys, d_head = MEASURED
    query, key = (torch.ones(batch, heads, length, d_head, dtype=torch.bfloat16) for length in (1, keys))
    mask = torch.ones(batch, 1, 1, keys, dtype=torch.bool)
    kernels = F.scaled_dot_product_attention, two_products
    times_as_fast = speedup(*(partial(kernel, query, key, key, attn_mask=mask) for kernel in kernels))
    chosen = "products" if times_as_fast > MARGIN else "kernel"
    return chosen, f"two products {times_as_fast:.2g} times as fast as the library's kernel"


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
