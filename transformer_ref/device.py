"""The device and the precision of tensors, chosen on request and never at import."""

import platform
import re
from pathlib import Path

import torch

from transformer_ref.config import PRECISIONS, Precision
from transformer_ref.machine import DTYPES, faster_precision

CPU_INFO = Path("/proc/cpuinfo")


def choose_device(request: str | torch.device) -> torch.device:
    """Return the device asked for.

    request: "auto" (the first CUDA device, else the GPU of a Mac, "mps", else the CPU), "cpu", "mps", "cuda" or
    "cuda:1", or such a device. Raises ValueError for another request, and for a device that this machine does not have.
    """
    request = str(request)
    has_mps = torch.backends.mps.is_available()
    if request == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    kind, _, index = request.partition(":")
    if request not in ("cpu", "mps", "mps:0") and not (kind == "cuda" and (index.isdecimal() or request == "cuda")):
        raise ValueError(f'device: expected "auto", "cpu", "mps", "cuda" or "cuda:<number>", got "{request}"')
    present = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "cuda" and int(index or 0) >= present:
        raise ValueError(f'device: expected one of {present} CUDA devices, got "{request}"')
    if kind == "mps" and not has_mps:
        raise ValueError(
            f'device: expected one that this machine has, got "{request}", the GPU of a Mac with Apple silicon'
        )
    return torch.device(request)


def device_name(device: torch.device) -> str:
    """Return the name of a GPU, or of the processor, such as "AMD EPYC 7763 64-Core Processor" on Linux."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    described = CPU_INFO.read_text(encoding="utf-8", errors="replace") if CPU_INFO.is_file() else ""
    found = re.search(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def choose_precision(request: Precision, device: torch.device) -> torch.dtype:
    """Return the dtype to compute in: torch.float32 or torch.bfloat16.

    request: "fp32", "bf16" or "auto", which is bf16 where this machine multiplies matrices clearly faster in it
    (`transformer_ref/machine.py`). "auto" never chooses fp16: its range is so small that a training run would have to
    scale its loss, so a GPU without bf16 units computes in fp32. Raises ValueError for another word.
    """
    if request not in PRECISIONS:
        raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, got {request!r}")
    return DTYPES[faster_precision(device).value if request == "auto" else request]
