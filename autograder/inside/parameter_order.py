"""In which order a module's forward uses its parameters: the order of its sub-layers, whatever they are called."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

MOST = 5_000  # uses that are noted
TURNED = ("T", "mT", "H", "mH", "data")  # attributes of a tensor that are a use of it; others only ask about it


class _Uses(TorchFunctionMode):
    """Records the parameters among the arguments of all calls, and those that are indexed (see `indexing`)."""

    def __init__(self, names: dict[int, str]) -> None:
        super().__init__()
        self._names = names
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


def in_order(module: nn.Module, example: tuple) -> list[str]:
    """Names of the parameters in the order of use, each as often as it is used; none if the forward raises an
    exception."""
    watch = _Uses({id(parameter): name for name, parameter in module.named_parameters()})
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
    """Names of the vectors that begin as ones: the scales of norms."""
    vectors = {name: p for name, p in module.named_parameters() if p.numel() == max(p.shape, default=1)}
    return [name for name, vector in vectors.items() if set(vector.flatten().tolist()) == {1.0}]
