"""One training run in several processes, as torchrun starts them (chapter 10).

Each process holds the whole model and reads its own rows of every batch; the gradients are summed, so all take
the same step, and it is the step that one process would have taken with the whole batch (Li et al. 2020, section 2,
is the same idea with the sum hidden behind the backward pass). With dropout it is so on average only: each process
draws for its own rows, as one process would not.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import torch
import torch.distributed as distributed
from torch import Tensor, nn

from transformer_ref.data.batching import Batch, moved

Result = TypeVar("Result")
STARTED_BY_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK")


class Processes(NamedTuple):
    """This process among those that train together. Only the first one writes files and output."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether this process writes files and shows the progress."""
        return self.rank == 0

    def rows(self, batch: Batch, parts: int) -> list[Batch]:
        """Return this process's share of a batch, in at most `parts` pieces, which are processed one after another."""
        pieces = parts * self.count
        mine = [batch.rows(self.rank * parts + part, pieces) for part in range(parts)]
        return [piece for piece in mine if len(piece.source)]

    @torch.no_grad()
    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all processes, in all of them."""
        if self.count == 1:
            return
        parameters = list(parameters)
        for parameter in parameters:
            if parameter.grad is None:  # a process whose share was empty
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([parameter.grad.flatten() for parameter in parameters])
        distributed.all_reduce(flat)
        pieces = flat.split([parameter.numel() for parameter in parameters])
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.grad = piece.view_as(parameter)

    def shared(self, function: Callable[[Tensor], Tensor], matrices: Sequence[Tensor]) -> Callable[[], Tensor]:
        """Compute a share of function(matrices, stacked), and return a function that waits for the whole result.

        function: treats each matrix separately, and keeps its shape. All processes pass the same matrices and get the
        same result, which is exchanged while they compute something else.
        """
        share = math.ceil(len(matrices) / self.count)
        first = min(self.rank * share, len(matrices) - 1)  # with too few for all, the last is done several times
        mine = function(torch.stack(matrices[first : first + share]))  # (at most share, rows, columns)
        if self.count == 1:
            return lambda: mine
        filled = mine.new_zeros(share, *mine.shape[1:])
        filled[: len(mine)] = mine
        everyones = mine.new_empty(self.count * share, *mine.shape[1:])
        travelling = distributed.all_gather_into_tensor(everyones, filled, async_op=True)

        def arrived() -> Tensor:
            travelling.wait()
            return everyones[: len(matrices)]

        return arrived

    def sum_of_parts(self, parts: Tensor) -> Tensor:
        """Return numbers, (parts,), whose sum is that of all parts of all processes, without waiting for a GPU."""
        if self.count == 1:
            return parts
        total = parts.sum(dtype=torch.float64)[None]
        distributed.all_reduce(total)
        return total

    def sums(self, numbers: list[float], device: torch.device) -> list[float]:
        """Return the sum of each number over all processes; a GPU is waited for once."""
        if self.count == 1:
            return numbers
        total = moved(torch.tensor(numbers, dtype=torch.float64), device)
        distributed.all_reduce(total)
        return total.tolist()

    def of_first(self, number: float, device: torch.device) -> float:
        """Return the first process's number, so that all processes make the same decision."""
        return self.sums([number if self.is_first else 0.0], device)[0]

    def first_alone(self, action: Callable[[], Result]) -> Result:
        """Return the result of an action, such as a download; the other processes begin when the first is done."""
        if not self.is_first:
            distributed.barrier()
        result = action()
        if self.is_first and self.count > 1:
            distributed.barrier()
        return result


ALONE = Processes()


def join_processes(device: str) -> tuple[Processes, str]:
    """Return this process within its group and its device, if torchrun started it; otherwise a group of one.

    device: as for `choose_device`; "auto" and "cuda" become the CUDA device with this process's number, and without
        one "auto" is the CPU. Raises ValueError for "mps", on which processes cannot exchange tensors.
    """
    if not all(name in os.environ for name in STARTED_BY_TORCHRUN):
        return ALONE, device
    if device == "cuda" or (device == "auto" and torch.cuda.is_available()):
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    elif device == "auto":
        device = "cpu"
    elif device.startswith("mps"):
        raise ValueError(f"device: expected one on which processes can exchange tensors, cpu or cuda, got {device!r}")
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return Processes(distributed.get_rank(), distributed.get_world_size()), device


def leave_processes(processes: Processes) -> None:
    """Leave the group, if there is one."""
    if processes.count > 1:
        distributed.destroy_process_group()
