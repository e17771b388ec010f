"""A model that an exercise passes to an answer: the answer holds a proxy; computation happens where the model is."""

from collections.abc import Callable
from typing import Any

import torch

Proxy = Callable[..., Any]


class ModelProxy(torch.nn.Module):
    """A model that an exercise passes to an answer; its forward is computed in the process of the model.

    It has a mode, training or evaluation, and no visible weights.
    parts: name -> attribute of the model that the answer may use (see `parts_of`).
    """

    def __init__(self, call: Proxy, training: bool, parts: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._call = call
        self.training = training
        for name, part in (parts or {}).items():
            setattr(self, name, part)

    def forward(self, *arguments: Any) -> Any:
        """The model's output for the arguments, in the mode of this proxy."""
        return self._call(*arguments, self.training)


def in_mode(model: torch.nn.Module) -> Proxy:
    """The model as a function whose last argument says whether it is in training mode."""

    def call(*arguments: Any) -> Any:
        *inputs, training = arguments
        before = model.training
        try:
            with torch.no_grad():
                return model.train(training is True)(*inputs)
        finally:
            model.train(before)

    return call


def parts_of(model: torch.nn.Module) -> dict[str, Any]:
    """The attributes of a model that an answer may use, named in its `allowed_parts`; a list of layers as a list."""
    parts = {name: getattr(model, name) for name in getattr(model, "allowed_parts", ())}
    return {name: list(part) if isinstance(part, torch.nn.ModuleList) else part for name, part in parts.items()}
