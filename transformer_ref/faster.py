"""The interface to `fast/`: its parts where that folder exists, otherwise the readable ones, which compute the same.

accelerate(model) -> the model; for_inference(model, int8=False) -> what decodes as the model does;
TrainingLoss(pad, smoothing); Muon(parameters, processes=..., ...); linear(x, weight, bias=None); top_k(x, count);
freed_memory_kept(), a context;
measure_machine(device) -> what is chosen for this machine.
"""

from typing import Any

import torch

from transformer_ref.machine import Choice, faster_muon_precision, faster_precision
from transformer_ref.training.loss import MeanLoss

try:
    from transformer_ref.fast.accelerate import accelerate
    from transformer_ref.fast.attention import attention_kernel
    from transformer_ref.fast.inference import for_inference
    from transformer_ref.fast.loss import PackedLoss as TrainingLoss
    from transformer_ref.fast.memory import freed_memory_kept
    from transformer_ref.fast.muon import BatchedMuon as Muon  # pyright: ignore[reportAssignmentType]  # same calls
    from transformer_ref.fast.packed import faster_linear
    from transformer_ref.fast.products import linear, products
    from transformer_ref.fast.top_k import quick_top_k as top_k
    from transformer_ref.fast.top_k import top_k_length
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("transformer_ref.fast"):
        raise
    from contextlib import nullcontext as freed_memory_kept  # noqa: F401

    from transformer_ref.training.muon import Muon  # noqa: F401

    TrainingLoss, top_k, linear = MeanLoss, torch.topk, torch.nn.functional.linear

    attention_kernel = faster_linear = products = top_k_length = None

    def accelerate(model):
        return model

    def for_inference(model: Any, int8: bool = False) -> Any:
        if int8:
            raise ValueError("precision: expected the folder transformer_ref/fast for int8, got none; fp32 needs none")
        return model


def measure_machine(device: torch.device) -> list[Choice]:
    """Return all choices that are made for a device by measuring; those not made yet are measured now."""
    choices = [faster_precision(device), faster_muon_precision(device)]
    kernels = [] if device.type != "cpu" else [attention_kernel, products, faster_linear, top_k_length]
    return choices + [measure() for measure in kernels if measure]
