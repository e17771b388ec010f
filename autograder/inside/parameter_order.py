"""In which order a module's forward uses its parameters: the order of its sub-layers, whatever they are called."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

MOST = 5_000  # uses that are noted
MOST_ITEMS = 32  # of a parameter that is indexed
TURNED = ("T", "mT", "H", "mH", "data")  # attributes of a tensor that are a use of it; others only ask about it


class _Uses(TorchFunctionMode):
    """Records the parameters among the arguments of all calls, and those that are indexed (see `indexing`).

    The items that an index selects from the first axis follow their parameter: W, W[0].
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._names = {id(parameter): name for name, parameter in module.named_parameters()}
        self._shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
        self.seen: list[str] = []

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name = getattr(function, "__name__", "")
        if name == "__get__":
            noted = getattr(getattr(function, "__self__", None), "__name__", "") in TURNED
        else:
            noted = name != "__getitem__"
        if noted:
            self._note((*args, *(kwargs or {}).values()))
        return function(*args, **(kwargs or {}))

    @contextlib.contextmanager
    def indexing(self) -> Iterator[None]:
        """Record indexing of parameters inside the `with`: in torch 2.2 slices and integers bypass the mode."""

        def taken(parameter: nn.Parameter, index: Any) -> Tensor:
            self._note((parameter,))
            self._note_items(self._names.get(id(parameter), ""), index)
            return Tensor.__getitem__(parameter, index)

        nn.Parameter.__getitem__ = taken
        try:
            yield
        finally:
            del nn.Parameter.__getitem__

    def _note(self, values: Any) -> None:
        for value in values:
            if isinstance(value, (list, tuple)):
                self._note(value)
            elif id(value) in self._names and len(self.seen) < MOST:
                self.seen.append(self._names[id(value)])

    def _note_items(self, name: str, index: Any) -> None:
        """Record the items that an index selects."""
        items = _items(name, self._shapes.get(name, ()), index if type(index) is tuple else (index,))
        self.seen += islice(items, MOST - len(self.seen))


def item_name(parameter: str, place: int) -> str:
    """The name of an item of a parameter that holds several along its first axis."""
    return f"{parameter}[{place}]"


def _items(name: str, shape: Sequence[int], indices: tuple) -> Iterator[str]:
    """The items that indices of the first axes select, each before those inside it; none where there are single
    numbers, or too many items."""
    if len(shape) < 2 or shape[0] > MOST_ITEMS or not indices or type(indices[0]) not in (int, slice):
        return
    try:
        places = range(shape[0])[indices[0]]
    except (IndexError, TypeError, ValueError):  # indexing will raise it, too
        return
    for place in [places] if isinstance(places, int) else places:
        yield item_name(name, place)
        yield from _items(item_name(name, place), shape[1:], indices[1:])


def in_order(module: nn.Module, example: tuple) -> list[str]:
    """Names of the parameters in the order of use, each as often as it is used; none if the forward raises an
    exception."""
    watch = _Uses(module)
    before = module.training
    module.eval()
    try:
        with torch.no_grad(), watch, watch.indexing():
            module(*example)
    except Exception:  # it will stop there again when it is called
        return []
    finally:
        module.train(before)
    return watch.seen


def ones(module: nn.Module) -> list[str]:
    """Names of the vectors that begin as ones, which are the scales of norms; also those in the rows of a parameter of
    two or three axes."""
    vectors = {}
    for name, parameter in module.named_parameters():
        if parameter.numel() == max(parameter.shape, default=1):
            vectors[name] = parameter
        elif parameter.dim() < 4:
            vectors |= dict(_rows(name, parameter))
    return [name for name, vector in vectors.items() if set(vector.flatten().tolist()) == {1.0}]


def _rows(name: str, values: Tensor) -> Iterator[tuple[str, Tensor]]:
    if values.dim() == 1:
        yield name, values
    elif len(values) <= MOST_ITEMS:
        for place, item in enumerate(values):
            yield from _rows(item_name(name, place), item)
