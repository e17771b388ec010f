"""Keys and values that were computed once and need not be computed again (chapter 11).

While a translation grows, the keys and values of the words already written never change: the causal mask
keeps later words from touching them. Those of the source never change at all.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class KeysAndValues(NamedTuple):
    """What one attention layer can be asked about."""

    key: Tensor  # (batch, heads, key, d_head)
    value: Tensor  # (batch, heads, key, d_head)


class KeyValueCache:
    """The keys and values of one attention layer, none at first."""

    def __init__(self) -> None:
        self.held: KeysAndValues | None = None

    @property
    def length(self) -> int:
        """The number of positions held."""
        return 0 if self.held is None else self.held.key.shape[-2]

    def append(self, new: KeysAndValues) -> KeysAndValues:
        """Return all that is held, after adding these at the end, any number of positions.

        Raises ValueError when the batch differs from the one held.
        """
        if self.held is not None:
            if len(new.key) != len(self.held.key):
                raise ValueError(f"cache: expected a batch of {len(self.held.key)} rows, got {len(new.key)}")
            new = KeysAndValues(torch.cat([self.held.key, new.key], dim=-2),
                                torch.cat([self.held.value, new.value], dim=-2))
        self.held = new  # (batch, heads, all so far, d_head)
        return new

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in the given order; a row may be repeated.

        rows: (rows,) of int64 indices.
        """
        if self.held is not None:
            self.held = KeysAndValues(self.held.key[rows], self.held.value[rows])


class DecoderCache:
    """One cache for the target and one for the source in each decoder layer."""

    def __init__(self, layers: int) -> None:
        self.target = [KeyValueCache() for _ in range(layers)]
        self.source = [KeyValueCache() for _ in range(layers)]

    @property
    def length(self) -> int:
        """The number of target positions held: where the next one stands."""
        return self.target[0].length

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch: the others are finished."""
        for cache in self.target + self.source:
            cache.select(rows)

    def select_sources(self, rows: Tensor) -> None:
        """Keep the given rows of the sources, of which several rows of the target may share one."""
        for cache in self.source:
            cache.select(rows)

    def reorder(self, rows: Tensor) -> None:
        """Exchange rows that share one source, as beams do: only what was written so far moves."""
        for cache in self.target:
            cache.select(rows)
