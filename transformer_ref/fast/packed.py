"""Linear layers whose weights are packed once. `torch.nn.Linear` says what is computed.

A library of matrix products copies the weights into the order in which it reads them, at every call. While a model
writes, a call has few rows, so the copy takes as long as much of the product. oneDNN can keep the copy: torch uses this
in compiled models, and its operators for that are called here directly.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.machine import MARGIN_OF_LENGTHS, Choice, choose, speedup

PROBE_ROWS = 20  # of the products that are compared
PROBE_SHAPES = ((1_024, 256), (256, 1_024)) * 4 + ((8_000, 256),)  # (out, in); together too large for a cache


class PackedLinear:
    """x W^T + b with the weights packed.

    weight: (out, in), fp32, on the CPU; bias: (out,) or None; relu: also take max(0, .) of the result.
    Raises RuntimeError or AttributeError where this torch cannot pack them.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, relu: bool = False) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), PROBE_ROWS)
        self._bias = None if bias is None else bias.detach()
        self._after = "relu" if relu else "none"
        self._product = torch.ops.mkldnn._linear_pointwise

    def __call__(self, x: Tensor) -> Tensor:
        """Return (..., out), fp32, for x, (..., in), fp32."""
        return self._product(x, self._packed, self._bias, self._after, [], "")


def faster_linear() -> Choice:
    """Return whether a linear layer with few rows is faster "packed" or "plain" on this CPU, in fp32."""
    return choose("linear", torch.device("cpu"), _measured)


@torch.inference_mode()
def _measured() -> tuple[str, str]:
    inputs = [torch.ones(PROBE_ROWS, features) for _, features in PROBE_SHAPES]
    weights = [torch.ones(shape) for shape in PROBE_SHAPES]
    try:
        packed = [PackedLinear(weight) for weight in weights]
        packed[0](inputs[0])
    except (AttributeError, RuntimeError) as error:  # a torch without oneDNN, or with other operators
        return "plain", f"this torch packs no weights: {str(error).splitlines()[0]}"
    plain = [partial(F.linear, weight=weight) for weight in weights]
    both = (partial(_last, layers, inputs) for layers in (plain, packed))
    ratio = speedup(*both)
    return "packed" if ratio > MARGIN_OF_LENGTHS else "plain", f"packed weights {ratio:.2g} times as fast"


def _last(layers: list, inputs: list[Tensor]) -> Tensor:
    """Return the last layer's output; together the weights exceed the cache, so each is read anew."""
    return [layer(x) for layer, x in zip(layers, inputs, strict=True)][-1]
