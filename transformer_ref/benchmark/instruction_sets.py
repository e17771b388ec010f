"""The instruction sets that can be measured on one machine.

A processor with AVX-512 can be limited to AVX2, the newest set that most laptops and hosted runners have. The limits
are environment variables that each library reads when it is loaded, so each set is measured in processes of its own.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch

from transformer_ref.device import CPU_INFO


class InstructionSet(NamedTuple):
    """name: "AVX2", "AVX512-bf16" and so on; environment: limits a process to this set, empty for the machine's own."""

    name: str
    environment: Mapping[str, str]


AVX2 = InstructionSet(
    "AVX2",
    {
        "ATEN_CPU_CAPABILITY": "avx2",  # torch's own kernels
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # oneDNN, in torch and in CTranslate2, which uses it on AMD processors
        "DNNL_MAX_CPU_ISA": "AVX2",  # the same in older versions
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # read on Intel processors; on AMD processors MKL never goes beyond AVX2
        "CT2_FORCE_CPU_ISA": "AVX2",  # CTranslate2's own kernels, which on AMD processors use AVX2 anyway
    },
)


def instruction_sets(device: torch.device) -> list[InstructionSet]:
    """Return the instruction sets that can be measured here: AVX2, if it can be set, then the processor's own."""
    own = InstructionSet(own_name(device), {})
    return [AVX2, own] if own.name.startswith("AVX512") else [own]


def own_name(device: torch.device) -> str:
    """Return the name of the newest instruction set that torch uses in this process, "CUDA" on a GPU."""
    if device.type != "cpu":
        return device.type.upper()
    name = torch.backends.cpu.get_cpu_capability()
    has_bf16 = CPU_INFO.is_file() and "avx512_bf16" in CPU_INFO.read_text(encoding="utf-8")
    return f"{name}-bf16" if name == "AVX512" and has_bf16 else name
