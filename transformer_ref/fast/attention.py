"""Attention where the kernel that the library would choose is slower: on a CPU with units for bf16, and on a GPU.

`model/attention.py` says what is computed.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.machine import MARGIN, Choice, choose, speedup
from transformer_ref.shapes import is_traced

# Keys: a CPU's softmax over fewer is not vectorized, and takes up to ten times as long. Torch's widest vectors hold 16
# floats (AVX512), and narrower ones divide 16.
SHORTEST = 16
MEASURED = 16, 4, 32, 64  # batch, heads, queries and as many keys, and d_head at which the two ways are measured


def quick_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False
) -> Tensor:
    """Return what `F.scaled_dot_product_attention` returns, computed in the way that is fastest on this machine.

    query: (..., query, d_head); key: (..., key, d_head); value: (..., key, d_value); attn_mask: boolean, broadcastable
    to (..., query, key), with at least one True for every query; is_causal: hide later keys, instead of a mask.
    """
    if query.device.type == "cuda" and not is_traced():
        with without_cudnn():
            return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, is_causal=is_causal)
    if products_are_faster(query) and not is_causal:
        return two_products(query, key, value, attn_mask=attn_mask)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, is_causal=is_causal)


def without_cudnn() -> AbstractContextManager[None]:
    """Return a context without cuDNN's attention, which on a GPU makes a plan for each of hundreds of shapes."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # torch before 2.3, which has no such kernel
        return nullcontext()
    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def products_are_faster(query: Tensor) -> bool:
    """Return whether two matrix products are faster than the library's kernel: never in fp32, and never on a GPU."""
    if query.device.type != "cpu" or query.dtype != torch.bfloat16 or is_traced():
        return False
    return attention_kernel().value == "products"


def attention_kernel() -> Choice:
    """Return whether this CPU computes attention in bf16 faster by two "products" or by the library's "kernel".

    Measured with gradients, as in training. With units for bf16 the products then win 3 to 10 times, because the kernel
    computes in fp32, and without gradients up to 1.6 times. Without units they lose as much.
    """
    return choose("attention", torch.device("cpu"), _measured_kernel)


def _measured_kernel() -> tuple[str, str]:
    kernels = F.scaled_dot_product_attention, two_products
    times_as_fast = speedup(*(partial(_with_gradient, kernel) for kernel in kernels))
    chosen = "products" if times_as_fast > MARGIN else "kernel"
    return chosen, f"two products {times_as_fast:.2g} times as fast as the library's kernel"


@torch.inference_mode(mode=False)  # the choice may first be needed within it, where no gradients exist
@torch.enable_grad()
def _with_gradient(kernel: Callable[..., Tensor]) -> Tensor:
    query = torch.ones(MEASURED, dtype=torch.bfloat16, requires_grad=True)
    mask = torch.ones(MEASURED[0], 1, 1, MEASURED[2], dtype=torch.bool)
    (gradient,) = torch.autograd.grad(kernel(query, query, query, attn_mask=mask).sum(), query)
    return gradient


def two_products(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Return what the library's kernel returns; every query must have at least one key."""
    scores = (query @ key.transpose(-2, -1)).mul_(query.shape[-1] ** -0.5)  # (..., query, key)
    if attn_mask is not None:
        bias = scores.new_zeros(attn_mask.shape).masked_fill_(~attn_mask, -torch.inf)
        scores = scores.add_(bias)  # in a tenth of the time that filling the larger scores takes
    keys = scores.shape[-1]
    if keys < SHORTEST:
        scores = F.pad(scores, (0, SHORTEST - keys), value=-torch.inf)
    return scores.softmax(dim=-1)[..., :keys] @ value  # (..., query, d_value)
