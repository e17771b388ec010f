"""How much an answer makes while it runs: the numbers in the tensors that it asks torch for, in all and at once.

Torch tells of each operation what goes in and what comes out (dispatch mode). A view, or what is written in place,
makes nothing. It decides nothing, and what is computed without torch is not seen.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

FRESH = ("aten::lift_fresh", "aten::lift_fresh_copy")  # numbers that came from Python: no operation made them


class Made(TorchDispatchMode):
    """Inside the `with`: `total`, the numbers in all tensors that were made, and `largest`, those in the largest."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.total = self.largest = 0

    def _pass_on(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = function(*args, **(kwargs or {}))
        known = {_place(each) for each in _tensors((args, kwargs or {}))}
        if function.name().partition(".")[0] in FRESH:
            known = set()
        for tensor in _tensors(result):
            place = _place(tensor)
            if place not in known:
                known.add(place)
                numbers = _numbers(tensor)
                self.total += numbers
                self.largest = max(self.largest, numbers)
        return result


# Given a class that has it already, torch wraps this method so that its first call imports the compiler: a second.
Made.__torch_dispatch__ = Made._pass_on


def while_running(function: Callable, *arguments: Any) -> tuple[Any, Made]:
    """What the function returns, without gradients, and what it made."""
    made = Made()
    with torch.no_grad(), made:
        result = function(*arguments)
    return result, made


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _place(tensor: Tensor) -> int:
    """Where its numbers lie; of what has no such place, itself."""
    try:
        return tensor.untyped_storage().data_ptr() or id(tensor)
    except (NotImplementedError, RuntimeError):  # sparse, and other layouts
        return id(tensor)


def _numbers(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().nbytes() // tensor.element_size()
    except (NotImplementedError, RuntimeError):
        return tensor.numel()
