"""Muon, one matrix after another (chapter 10). `torch.optim.Muon` says what is computed, and rounds to bf16.

Muon (Jordan et al. 2024) replaces a matrix's momentum by the nearest orthogonal matrix, so that it moves in every
direction alike.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from transformer_ref.config import PRECISIONS, Precision
from transformer_ref.machine import DTYPES, faster_muon_precision
from transformer_ref.training.processes import ALONE, Processes

TorchsMuon: Any = getattr(torch.optim, "Muon", torch.optim.Optimizer)  # torch 2.9 has one; before, nobody makes ours


class Muon(TorchsMuon):
    """`torch.optim.Muon` with `adjust_lr_fn="match_rms_adamw"`, in a precision that can be chosen.

    processes: those that take each step together, with the same gradients.
    precision: of the products. In "bf16", which torch uses, the result equals torch's bit for bit. "auto" chooses bf16
    if a short measurement finds it faster than fp32: on processors without bf16 units it takes more than ten times as
    long. The other arguments are those of `torch.optim.Muon`.
    Raises ValueError for a precision of another name.
    """

    def __init__(
        self, parameters: Iterable[Tensor], processes: Processes = ALONE, precision: Precision = "auto", **options: Any
    ) -> None:
        if precision not in PRECISIONS:
            raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, got {precision!r}")
        super().__init__(parameters, **options)
        self._processes, self.precision = processes, precision

    def settle_precision(self, device: torch.device) -> Precision:
        """Choose the products' precision on this device, keep it and return it; the first process decides for all."""
        if self.precision == "auto":
            is_bf16 = self._processes.is_first and faster_muon_precision(device).value == "bf16"
            self.precision = "bf16" if self._processes.of_first(float(is_bf16), device) else "fp32"
        return self.precision

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update every matrix; see `torch.optim.Muon.step`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self.move(group, [each for each in group["params"] if each.grad is not None])
        return loss

    def move(self, group: dict, matrices: list[Tensor]) -> None:
        """Update those matrices of a group that have a gradient."""
        for matrix in matrices:
            direction = self.direction(matrix, group)[None]  # (1, rows, columns)
            apply_update(matrix, orthogonal(direction, **self.settings(group, matrix.device))[0], group)

    def direction(self, matrix: Tensor, group: dict) -> Tensor:
        """Return the momentum of a matrix's gradients, (rows, columns)."""
        memory = self.state[matrix]
        if "momentum_buffer" not in memory:
            memory["momentum_buffer"] = torch.zeros_like(matrix)
        momentum = memory["momentum_buffer"]
        momentum.lerp_(matrix.grad, 1 - group["momentum"])
        return matrix.grad.lerp(momentum, group["momentum"]) if group["nesterov"] else momentum

    def settings(self, group: dict, device: torch.device) -> dict[str, Any]:
        """Return the arguments of `orthogonal`, except the matrices."""
        return dict(
            coefficients=group["ns_coefficients"],
            steps=group["ns_steps"],
            smallest=group["eps"],
            dtype=DTYPES[self.settle_precision(device)],
        )


def apply_update(matrix: Tensor, update: Tensor, group: dict) -> None:
    """Update a matrix by a direction of its shape, scaled to the size of AdamW's updates."""
    rate = group["lr"] * 0.2 * math.sqrt(max(matrix.shape))
    matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-rate)


def orthogonal(
    matrices: Tensor,
    coefficients: tuple[float, float, float],
    steps: int,
    smallest: float,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """Return approximately the nearest orthogonal matrix to each, in the dtype: (matrices, rows, columns).

    A Newton-Schulz iteration: a X + b (X X^T) X + c (X X^T)^2 X draws every singular value of X toward 1. coefficients:
    (a, b, c); smallest: lower bound of the norm in the division. Source: Jordan et al. 2024.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.to(dtype)
    x = x.mT if is_tall else x  # the product with its own transpose is then the smaller of the two
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(smallest)
    a, b, c = coefficients
    for _ in range(steps):
        gram = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x
