"""All that one probe shows of an answer."""

from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Raised:
    """An exception of the learner's, with the last of their own lines that it passed through.

    kinds: the names of its class and of the classes that it comes from.
    """

    type: str
    message: str
    line: int = 0
    source: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Structure:
    """What a class shows when its parameters cannot be read as the roles it should hold."""

    module: bool
    parameters: tuple[tuple[str, tuple[int, ...]], ...]
    shapes: tuple[str, ...]
    repeatable: bool
    unregistered: tuple[str, ...]

    def outline(self) -> tuple:
        """What two classes share when they are built alike under other names."""
        sizes = sorted(tuple(sorted(shape)) for _, shape in self.parameters if len(shape) > 1)
        return self.module, tuple(sizes), self.shapes, self.repeatable, self.unregistered


@dataclass(frozen=True)
class Observation:
    """All that one probe shows."""

    result: Any
    inputs: tuple = ()
    changed: tuple[str, ...] = ()
    drawn: bool = False
    reseeded: bool = False
    gradients: dict[str, torch.Tensor | None] = field(default_factory=dict)
