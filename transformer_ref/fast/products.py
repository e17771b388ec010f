"""Linear layers in fp32 whose products are computed by oneDNN, where that is faster than what torch calls.

Torch multiplies matrices in fp32 with MKL, which never goes beyond AVX2 on AMD processors. oneDNN does; torch uses it
in bf16 and in compiled models, whose operator is called here directly. `torch.nn.Linear` says what is computed.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.machine import MARGIN, Choice, choose, speedup
from transformer_ref.shapes import is_traced

FEWEST_ROWS = 64
MARGIN_OF_OUTPUTS = 1.05  # on AMD processors the ratio is 1.1 to 1.2 with AVX2 and 2.2 with AVX512
PROBE = 1_024, 256, 256  # rows, in and out of the layer that is measured: the smallest of a training run


class QuickLinear(nn.Linear):
    """`torch.nn.Linear`, by the library that is faster on this machine."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (..., out_features) for x, (..., in_features)."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return what `F.linear` returns, (..., out).

    x: (..., in); weight: (out, in); bias: (out,) or None.
    """
    if not is_quick(x, weight):
        return F.linear(x, weight, bias)
    y = _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias)  # (rows, out)
    return y.view(*x.shape[:-1], len(weight))


def is_quick(x: Tensor, weight: Tensor) -> bool:
    """Return whether oneDNN multiplies these two: many rows in fp32, on a CPU where it is faster."""
    if x.device.type != "cpu" or not (x.dtype == weight.dtype == torch.float32):
        return False
    return x.numel() >= FEWEST_ROWS * x.shape[-1] and not is_traced() and products().value != "plain"


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x W^T + b, (rows, out), by oneDNN. x: (rows, in); weight: (out, in), in any memory layout."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def of_weight(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of a weight, (out, in), for that of the output, (rows, out), and x, (rows, in)."""
    if products().value != "all":
        return gradient.T @ x
    if gradient.shape[1] < x.shape[1]:  # the first factor is copied, and should be the smaller one
        return product(gradient.T.contiguous(), x.T)
    return product(x.T.contiguous(), gradient.T).T


class _Linear(torch.autograd.Function):
    """The three products of a linear layer: its output, and the gradients of input and weight."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        asked = ctx.needs_input_grad
        return (
            product(gradient, weight.T) if asked[0] else None,
            of_weight(gradient, x) if asked[1] else None,
            gradient.sum(dim=0) if asked[2] else None,
        )


def products() -> Choice:
    """Return what oneDNN computes faster: nothing ("plain"), all but weights' gradients ("outputs"), or "all"."""
    return choose("products", torch.device("cpu"), _measured)


@torch.inference_mode()
def _measured() -> tuple[str, str]:
    rows, features, outputs = PROBE
    x, weight, gradient = (
        torch.linspace(-1, 1, first * second).view(first, second)
        for first, second in ((rows, features), (outputs, features), (rows, outputs))
    )
    pairs: tuple[tuple[Callable[[], Tensor], Callable[[], Tensor]], ...] = (
        (partial(F.linear, x, weight), partial(product, x, weight)),
        (lambda: gradient.T @ x, lambda: product(gradient.T.contiguous(), x.T)),
    )
    try:
        if not all(torch.allclose(usual(), other(), rtol=1e-3, atol=1e-3) for usual, other in pairs):
            return "plain", "this torch multiplies something else there"
    except (AttributeError, RuntimeError) as error:  # a torch without oneDNN, or with another operator
        return "plain", f"this torch has no such product: {str(error).splitlines()[0]}"
    outputs_faster, weights_faster = (speedup(*pair) for pair in pairs)
    chosen = "plain" if outputs_faster < MARGIN_OF_OUTPUTS else "all" if weights_faster > MARGIN else "outputs"
    return chosen, f"oneDNN {outputs_faster:.2g} times as fast, {weights_faster:.2g} for the gradients of weights"
