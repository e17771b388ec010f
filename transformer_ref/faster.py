"""The door to `fast/`: its parts where that folder is there, else the readable ones, which compute the same.

accelerate(model) -> the model; TrainingLoss(pad, smoothing); Muon(parameters, processes=..., ...); top_k(x, count);
freed_memory_kept(), a context.
"""

import torch

from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.processes import ALONE, Processes

try:
    from transformer_ref.fast.accelerate import accelerate
    from transformer_ref.fast.loss import PackedLoss as TrainingLoss
    from transformer_ref.fast.memory import freed_memory_kept
    from transformer_ref.fast.muon import BatchedMuon as Muon  # pyright: ignore[reportAssignmentType]  # same calls
    from transformer_ref.fast.top_k import quick_top_k as top_k
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("transformer_ref.fast"):
        raise
    from contextlib import nullcontext as freed_memory_kept  # noqa: F401

    TrainingLoss, top_k = MeanLoss, torch.topk

    def accelerate(model):
        return model

    class Muon(getattr(torch.optim, "Muon", torch.optim.Optimizer)):
        """Torch's own, in each process the whole of it."""

        def __init__(self, parameters, processes: Processes = ALONE, **options) -> None:
            super().__init__(parameters, **options)
