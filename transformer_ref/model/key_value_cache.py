"""The KV cache: keys and values that do not have to be computed again (chapter 11).

While a translation grows, the keys and values of the words already written never change: the causal mask
keeps later words from touching them. Those of the source never change at all.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class KeysAndValues(NamedTuple):
    """The keys and values of one attention layer."""

    key: Tensor  # (batch, heads, key, d_head)
    value: Tensor  # (batch, heads, key, d_head)


class KeyValueCache:
    """The keys and values of one attention layer, none at first.

    The memory has room for more positions, so that a new one is written without moving the others; when it is full, its
    size is doubled. Since it is written in place, decode without gradients. On a CPU bf16 is kept as fp32, whose small
    products, one row per sentence, are twice as fast.
    """

    def __init__(self) -> None:
        self.length = 0  # the number of positions held
        self._room: KeysAndValues | None = None  # (batch, heads, at least `length`, d_head)

    @property
    def held(self) -> KeysAndValues | None:
        """The keys and values so far, (batch, heads, length, d_head), or None if there are none."""
        return None if self._room is None else KeysAndValues(*(each[:, :, : self.length] for each in self._room))

    def append(self, new: KeysAndValues) -> KeysAndValues:
        """Append keys and values of any number of positions, and return all of them.

        Raises ValueError when the batch size differs from the cache's.
        """
        end = self.length + new.key.shape[2]
        if self._room is None:
            self._room = KeysAndValues(*(each.to(kept_dtype(each)).contiguous() for each in new))
        elif len(new.key) != len(self._room.key):
            raise ValueError(f"cache: expected a batch of {len(self._room.key)} rows, got {len(new.key)}")
        else:
            if end > self._room.key.shape[2]:
                self._room = KeysAndValues(*(_larger(each, 2 * end) for each in self.held))
            for room, added in zip(self._room, new, strict=True):
                room[:, :, self.length : end] = added
        self.length = end
        return self.held

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in the given order; a row may be repeated.

        rows: (rows,) of int64 indices.
        """
        if self._room is not None:
            self._room = KeysAndValues(*(each.index_select(0, rows) for each in self._room))


def kept_dtype(new: Tensor) -> torch.dtype:
    """Return the dtype in which a cache keeps new keys or values."""
    return torch.float32 if new.dtype == torch.bfloat16 and new.device.type == "cpu" else new.dtype


def _larger(held: Tensor, positions: int) -> Tensor:
    """Return memory for this many positions, (batch, heads, positions, d_head), that begins with the current ones."""
    batch, heads, length, d_head = held.shape
    room = held.new_empty(batch, heads, positions, d_head)
    room[:, :, :length] = held
    return room


class DecoderCache:
    """One cache for the target and one for the source in each decoder layer."""

    def __init__(self, layers: int) -> None:
        self.target = [KeyValueCache() for _ in range(layers)]
        self.source = [KeyValueCache() for _ in range(layers)]

    @property
    def length(self) -> int:
        """The number of target tokens held in each row."""
        return self.target[0].length

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch."""
        for cache in self.target + self.source:
            cache.select(rows)
