"""Errors about shapes that name the argument, what was expected and what came."""

from types import EllipsisType

import torch
from torch import Tensor

Axis = str | int | EllipsisType


def expect_shape(name: str, tensor: Tensor, *axes: Axis) -> None:
    """Check that `tensor` has the given axes.

    axes: one item per axis. A word stands for any size, an integer for exactly that size; `...` as the first item
    stands for any number of leading axes.

    Raises TypeError when `tensor` is not a tensor, ValueError when its shape differs, for example
    "query: expected shape (batch, heads, query, d_head), got (2, 3)".
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    open_ended = axes[0] is ...
    wanted = axes[1:] if open_ended else axes
    shape = tuple(tensor.shape)
    enough = len(shape) >= len(wanted) if open_ended else len(shape) == len(wanted)
    if not enough or any(
        isinstance(axis, int) and axis != size for axis, size in zip(reversed(wanted), reversed(shape), strict=False)
    ):
        words = ", ".join("..." if axis is ... else str(axis) for axis in axes)
        raise ValueError(f"{name}: expected shape ({words}), got {shape}")


def expect_ids(name: str, ids: Tensor, *axes: Axis) -> None:
    """Check that `ids` holds 64-bit integers and has these axes; raises as `expect_shape` does."""
    expect_shape(name, ids, *axes)
    if ids.dtype != torch.int64:
        raise TypeError(f"{name}: expected ids of dtype torch.int64, got {ids.dtype}")


def expect_padding_last(name: str, ids: Tensor, pad: int) -> None:
    """Check that no row of `ids`, (batch, length), has a token after its padding; raise ValueError otherwise.

    Raises what `expect_ids` raises for anything but such ids. While a graph is traced or compiled, only the shape is
    checked. The same holds in a training step on a GPU, where a look at the values would synchronize: `Gradients`
    checks a batch on the CPU, before it is copied.
    """
    expect_ids(name, ids, "batch", "length")
    if (ids.device.type != "cpu" and torch.is_grad_enabled()) or is_traced():
        return
    real = ids != pad  # (batch, length)
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError(f"{name}: expected padding (id {pad}) at the end of a row only, got a token after it")


def is_traced() -> bool:
    """Return whether torch is tracing or compiling: a graph must fit other tensors, and other machines."""
    compiling = getattr(torch.compiler, "is_compiling", None)  # torch 2.3 has it
    return torch.jit.is_tracing() or bool(compiling and compiling())


def expect_mask(name: str, mask: Tensor, *sizes: int) -> None:
    """Check that `mask` is boolean and broadcasts to `sizes`.

    Raises TypeError for another dtype and ValueError
    for a shape that does not broadcast.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name}: expected a boolean tensor (True = may attend), got {got}")
    if mask.dim() > len(sizes) or any(
        have not in (1, size) for have, size in zip(reversed(mask.shape), reversed(sizes), strict=False)
    ):
        raise ValueError(f"{name}: expected a shape that broadcasts to {sizes}, got {tuple(mask.shape)}")
