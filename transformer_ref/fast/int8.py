"""Linear layers that multiply 8-bit integers. `torch.nn.Linear` says what is approximated.

The weights of each output channel are divided by their own scale and rounded to integers from -127 to 127, once. At
each call, the inputs are rounded with one scale for the whole tensor ("dynamic quantization"), the products are summed
exactly, and the sums are scaled back to fp32. Source: Jacob et al. 2018, section 2.

It calls torch's own operators directly. The modules that `torch.ao.quantization` puts around them are deprecated.
"""

import warnings
from functools import lru_cache, partial

import torch
from torch import Tensor

from transformer_ref.machine import MARGIN_OF_LENGTHS, Choice, choose, speedup

ENGINES = ("fbgemm", "onednn", "qnnpack")  # torch's libraries of int8 products; "x86" is one of the first two
PROBE_ROWS = (40, 400)  # rows of greedy decoding and of a beam search
PROBE_FEATURES = 512
SMALLEST_SCALE = 1e-12  # for a channel whose weights are all zero


class Int8Linear:
    """x W^T + b with W in int8.

    weight: (out, in), fp32, on the CPU; bias: (out,) or None; relu: also take max(0, .) of the result.
    Raises ValueError where this torch has no engine for int8.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, relu: bool = False, engine: str | None = None):
        engine = str(int8_engine().value) if engine is None else engine
        self._packed = _pack(weight, bias, engine)
        self._reduce_range = saturates(engine)
        self._product = torch.ops.quantized.linear_relu_dynamic if relu else torch.ops.quantized.linear_dynamic

    def __call__(self, x: Tensor) -> Tensor:
        """Return (..., out), fp32, for x, (..., in), fp32."""
        return self._product(x, self._packed, self._reduce_range)


def int8_engine() -> Choice:
    """Return the engine that multiplies 8-bit integers fastest on this CPU; raise ValueError if there is none."""
    return choose("int8", torch.device("cpu"), _measured_engine)


def _measured_engine() -> tuple[str, str]:
    engines = available_engines()
    if not engines:
        raise ValueError(
            f"precision: expected a torch with one of the engines {', '.join(ENGINES)} for int8, got "
            f"{', '.join(torch.backends.quantized.supported_engines)}; fp32 works everywhere"
        )
    chosen, why = engines[0], "no other engine here"
    for other in engines[1:]:
        ratio = _speedup_of(other, chosen)
        if ratio > MARGIN_OF_LENGTHS:
            chosen, why = other, f"{ratio:.2g} times as fast as {chosen}"
        elif other != "qnnpack":
            why = f"{other} {ratio:.2g} times as fast"
    return chosen, why


def _speedup_of(engine: str, usual: str) -> float:
    """Return the speedup of an engine over the default one: the mean for few and for many rows."""
    weight = torch.linspace(-1, 1, PROBE_FEATURES).expand(PROBE_FEATURES, -1)
    linears, ratio = [Int8Linear(weight, engine=each) for each in (usual, engine)], 1.0
    for rows in PROBE_ROWS:
        x = torch.ones(rows, PROBE_FEATURES)
        ratio *= speedup(*(partial(linear, x) for linear in linears))
    return ratio ** (1 / len(PROBE_ROWS))


def available_engines() -> list[str]:
    """Return the engines that this torch has and that work on this machine."""
    return [engine for engine in ENGINES if engine in torch.backends.quantized.supported_engines]


@lru_cache(maxsize=len(ENGINES))
def saturates(engine: str) -> bool:
    """Return whether the engine's sums overflow with inputs of 8 bits.

    Processors without VNNI add pairs of products in 16 bits: 2 * 255 * 127 does not fit, so inputs get 7 bits.
    """
    weight = torch.ones(64, 256)  # 127 everywhere
    result = torch.ops.quantized.linear_dynamic(weight, _pack(weight, None, engine), False)  # of inputs 255
    return bool((result - 256).abs().max() > 1)


def _pack(weight: Tensor, bias: Tensor | None, engine: str):
    """Return the weights, rounded and packed for the engine."""
    weight = weight.detach().float()
    scale = weight.abs().amax(dim=1).div_(127).clamp_min_(SMALLEST_SCALE)  # (out,)
    offset = torch.zeros(len(scale), dtype=torch.int64)
    before = torch.backends.quantized.engine
    with warnings.catch_warnings():
        # torch 2.13 announces the end of its quantized tensors; its operators for these products ask for one
        warnings.filterwarnings("ignore", message=".*quantized tensor creation functions")
        try:
            torch.backends.quantized.engine = engine
            rounded = torch.quantize_per_channel(weight, scale.double(), offset, 0, torch.qint8)
            return torch.ops.quantized.linear_prepack(rounded, None if bias is None else bias.detach().float())
        finally:
            torch.backends.quantized.engine = before
