"""Muon, all matrices of one shape at once. `torch.optim.Muon` says what is computed.

It moves one matrix after another. The matrices of a small model are small, and a processor would spend
a third of a training step on starting their products. Where several processes take the same step, each makes its share
of the products.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from transformer_ref.device import choose_precision
from transformer_ref.training.processes import ALONE, Processes

TorchsMuon: Any = getattr(torch.optim, "Muon", torch.optim.Optimizer)  # torch 2.9 has one; before, nobody makes ours


class BatchedMuon(TorchsMuon):
    """What `torch.optim.Muon` does with `adjust_lr_fn="match_rms_adamw"`, in fewer and larger products.

    processes: those that take the step together, with the same gradients.
    dtype: what the products are computed in. In torch.bfloat16, as torch does, the result equals torch's bit for bit.
    None chooses bf16 where a short measurement finds it faster than fp32: without units for bf16, on most processors,
    it takes more than ten times as long.
    The other arguments are those of `torch.optim.Muon`.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        processes: Processes = ALONE,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(parameters, **options)
        self._processes, self._dtype = processes, dtype

    def dtype_on(self, device: torch.device) -> torch.dtype:
        """Return what the products are computed in on this device; the first process decides for all."""
        if self._dtype is None:
            is_bf16 = choose_precision("auto", device) == torch.bfloat16
            is_bf16 = bool(self._processes.of_first(float(is_bf16), device))
            self._dtype = torch.bfloat16 if is_bf16 else torch.float32
        return self._dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Move every matrix; see `torch.optim.Muon.step`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        begun = []
        for group in self.param_groups:
            moving = sorted((each for each in group["params"] if each.grad is not None), key=attrgetter("shape"))
            for _, of_shape in itertools.groupby(moving, key=attrgetter("shape")):
                matrices = list(of_shape)
                begun.append((matrices, group, self._updates(matrices, group)))
        for matrices, group, updates in begun:
            rate = group["lr"] * 0.2 * math.sqrt(max(matrices[0].shape))
            for matrix, update in zip(matrices, updates(), strict=True):
                matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-rate)
        return loss

    def _updates(self, matrices: list[Tensor], group: dict) -> Callable[[], Tensor]:
        """Begin to compute where matrices of one shape should move, and return what waits for the answer."""
        directions = []
        for matrix in matrices:
            memory = self.state[matrix]
            if "momentum_buffer" not in memory:
                memory["momentum_buffer"] = torch.zeros_like(matrix)
            momentum = memory["momentum_buffer"]
            momentum.lerp_(matrix.grad, 1 - group["momentum"])
            directions.append(matrix.grad.lerp(momentum, group["momentum"]) if group["nesterov"] else momentum)
        nearest = partial(
            orthogonal,
            coefficients=group["ns_coefficients"],
            steps=group["ns_steps"],
            smallest=group["eps"],
            dtype=self.dtype_on(matrices[0].device),
        )
        return self._processes.shared(nearest, directions)


def orthogonal(
    matrices: Tensor,
    coefficients: tuple[float, float, float],
    steps: int,
    smallest: float,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """Return about the nearest orthogonal matrix to each, in the dtype: (matrices, rows, columns).

    A Newton-Schulz iteration: a X + b (X X^T) X + c (X X^T)^2 X draws every singular value of X toward 1.
    coefficients: (a, b, c); smallest: the least norm that is divided by. Source: Jordan et al. 2024.
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
