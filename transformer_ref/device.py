"""Where the tensors live and how precise they are, chosen on request and never at import."""

import time

import torch

from transformer_ref.config import PRECISIONS, Precision

PROBE_SIZE = 512  # the side of a square matrix: about that of a model's own
PROBE_REPEATS = 5
WORTHWHILE = 1.3  # times as fast must bf16 be; a processor without it in hardware falls far short


def choose_device(request: str | torch.device) -> torch.device:
    """Return the device asked for.

    request: "auto" (the first CUDA device if there is one, else the CPU), "cpu", "cuda" or "cuda:1", or such a device.
    Raises ValueError for another word, and for a CUDA device that this machine does not have.
    """
    request = str(request)
    if request == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = request.partition(":")
    if request != "cpu" and not (kind == "cuda" and (index.isdecimal() or request == "cuda")):
        raise ValueError(f'device: expected "auto", "cpu", "cuda" or "cuda:<number>", got "{request}"')
    present = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "cuda" and int(index or 0) >= present:
        raise ValueError(f'device: expected one of {present} CUDA devices, got "{request}"')
    return torch.device(request)


def choose_precision(request: Precision, device: torch.device) -> torch.dtype:
    """Return the dtype to compute in: torch.float32 or torch.bfloat16.

    request: "fp32", "bf16" or "auto", which multiplies two matrices in both, for some hundredths of a second, and
    takes bf16 where it is clearly faster. Raises ValueError for another word.
    """
    if request not in PRECISIONS:
        raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, got {request!r}")
    if request == "auto":
        seconds = {dtype: _seconds_of_a_product(dtype, device) for dtype in (torch.float32, torch.bfloat16)}
        request = "bf16" if seconds[torch.float32] > WORTHWHILE * seconds[torch.bfloat16] else "fp32"
    return torch.bfloat16 if request == "bf16" else torch.float32


def _seconds_of_a_product(dtype: torch.dtype, device: torch.device) -> float:
    """Return the shortest of some times; the first product, which warms up, is not counted."""
    matrix = torch.ones(PROBE_SIZE, PROBE_SIZE, dtype=dtype, device=device)
    times = []
    for _ in range(PROBE_REPEATS + 1):
        start = time.perf_counter()
        (matrix @ matrix)[0, 0].item()  # .item() waits for a GPU
        times.append(time.perf_counter() - start)
    return min(times[1:])
