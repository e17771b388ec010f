"""The notebook as it was at a check's cell, for the probes that run after its last cell.

Nothing here is trusted: it only keeps an honest notebook that uses a name again later from being judged by that.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


class Snapshots:
    """Snapshots of a notebook's namespace and of torch's settings."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[dict[str, Any], torch.dtype, bool]] = {}

    @contextlib.contextmanager
    def at(self, namespace: dict[str, Any], request: dict[str, Any]) -> Iterator[None]:
        """Store a snapshot under this name, or restore the one that was stored under it before."""
        name = request.get("moment")
        if name in self._kept:
            now = _state(namespace)
            _set(namespace, self._kept[name])
            try:
                yield
            finally:
                _set(namespace, now)
            return
        yield
        if name:
            self._kept[name] = _state(namespace)


def _state(namespace: dict[str, Any]) -> tuple[dict[str, Any], torch.dtype, bool]:
    return dict(namespace), torch.get_default_dtype(), torch.is_grad_enabled()


def _set(namespace: dict[str, Any], state: tuple[dict[str, Any], torch.dtype, bool]) -> None:
    namespace.clear()
    namespace.update(state[0])
    torch.set_default_dtype(state[1])
    torch.set_grad_enabled(state[2])
