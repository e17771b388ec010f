"""Counts the work of an answer: the entries of the tensors that it creates and that it computes with.

A dispatch mode sees the inputs and outputs of each of torch's operations. A view, or a write in place, creates nothing.
The counter decides nothing, and it cannot see what is computed without torch.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

FRESH = ("lift_fresh", "lift_fresh_copy")  # numbers that came from Python: no operation made them
GLUE = ("cat", "stack")  # what grows piece by piece is glued anew at each step: what is computed with it counts
READING = frozenset("mm bmm mv dot addmm addmv baddbmm mul div add sub sum mean cumsum prod".split())  # arithmetic


class Made(TorchDispatchMode):
    """Counts inside the `with`: `total`, the elements of all new tensors, except by concatenation, and of the inputs of
    arithmetic; `largest`, the elements of the largest new tensor; `visits`, how often each watched tensor was visited;
    `unread`, the watched tensors that no operation has read.

    watched: tensors, or groups of them; a visit lasts until another watched tensor is used.
    """

    supports_higher_order_operators = True

    def __init__(self, watched: Sequence[Any] = ()) -> None:
        super().__init__()
        self.total = self.largest = 0
        self.visits, self._here = [0] * len(watched), -1
        self.unread = set(range(len(watched)))
        self._watched = {_place(tensor): at for at, group in enumerate(watched) for tensor in _tensors(group)}

    def _pass_on(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.name().partition("::")[2].partition(".")[0]
        given = list(_tensors((args, kwargs or {})))
        known = set() if name in FRESH else {_place(each) for each in given}
        for at in sorted({self._watched[place] for place in known if place in self._watched}):
            self.visits[at] += at != self._here
            self._here = at
            if name.endswith("_") or not self._is_view(result, at):
                self.unread.discard(at)
        if name in READING:
            self.total += sum(each.numel() for each in given)
        for tensor in _tensors(result):
            place = _place(tensor)
            if place not in known:
                known.add(place)
                numbers = _numbers(tensor)
                self.total += 0 if name in GLUE else numbers
                self.largest = max(self.largest, numbers)
        return result

    def _is_view(self, result: Any, at: int) -> bool:
        """Whether the result is a view of the watched tensor, as in a conversion to NumPy or to a list."""
        seen = [self._watched.get(_place(tensor)) for tensor in _tensors(result)]
        return bool(seen) and set(seen) == {at}


# Given a class that has it already, torch wraps this method so that its first call imports the compiler: a second.
Made.__torch_dispatch__ = Made._pass_on


def while_running(function: Callable, *arguments: Any, watched: Sequence[Any] = ()) -> tuple[Any, Made]:
    """The result of the function, computed without gradients, and the counts."""
    made = Made(watched)
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
    """The address of a tensor's data; the object itself if it has none."""
    try:
        return tensor.untyped_storage().data_ptr() or id(tensor)
    except (NotImplementedError, RuntimeError):  # sparse, and other layouts
        return id(tensor)


def _numbers(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().nbytes() // tensor.element_size()
    except (NotImplementedError, RuntimeError):
        return tensor.numel()
