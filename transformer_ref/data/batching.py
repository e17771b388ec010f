"""Sentences of ids become batches of similar length (chapter 10); `parallel_text.is_usable` drops those too long."""

import copy
import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor


class _Ids(NamedTuple):
    source: Tensor  # (batch, source), ending in eos
    target_input: Tensor  # (batch, target), beginning with bos
    target_labels: Tensor  # (batch, target), ending in eos


class Batch(_Ids):
    """The input of one training step; the target is there twice, as the decoder's input and as the labels.

    real: the indices of the real tokens in `target_labels.flatten()`, (real,), or None before `counted` found them.
    """

    real: Tensor | None = None

    def counted(self, pad: int) -> "Batch":
        """Return the batch with `real`. Call it before the batch is copied to a GPU: there it would synchronize."""
        if self.real is not None:
            return self
        batch = Batch(*self)
        batch.real = real_indices(self.target_labels, pad)
        return batch

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on that device."""
        batch = Batch(*(moved(tensor, device) for tensor in self))
        batch.real = None if self.real is None else moved(self.real, device)
        return batch

    def rows(self, first: int, every: int) -> "Batch":
        """Return the batch with every `every`-th row, from row `first` on."""
        return Batch(*(tensor[first::every] for tensor in self))


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Return the tensor on that device. CUDA copies from page-locked memory asynchronously."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.contiguous().pin_memory()
    return tensor.to(device, non_blocking=True)


def real_indices(ids: Tensor, pad: int) -> Tensor:
    """Return where `ids.flatten()` is not `pad`: (real,) of int64, in ascending order."""
    return (ids != pad).flatten().nonzero().squeeze(1)


def pad_sequences(sequences: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Return the sequences as rows of one tensor, (batch, longest), with `pad` at the end."""
    longest = max((len(sequence) for sequence in sequences), default=0)
    rows = [[*sequence, *[pad] * (longest - len(sequence))] for sequence in sequences]
    return torch.tensor(rows, dtype=torch.int64).view(len(sequences), longest)  # (batch, longest)


def shift_right(labels: Tensor, bos: int) -> Tensor:
    """Return the decoder's input for these labels: bos first, the last label dropped; (batch, target) both."""
    return torch.cat([torch.full_like(labels[:, :1], bos), labels[:, :-1]], dim=1)  # (batch, target)


def token_batches(lengths: Sequence[int], max_tokens: int, generator: torch.Generator | None = None) -> list[list[int]]:
    """Return lists of indices, each index once; no padded batch has more than `max_tokens` cells.

    lengths: tokens of each item; generator: mixes items of equal length, then the order of the batches.
    Without one the batches come from short to long. Raises ValueError naming an item longer than max_tokens.
    """
    for item, length in enumerate(lengths):
        if length > max_tokens:
            raise ValueError(f"lengths: expected at most max_tokens ({max_tokens}), got {length} for item {item}")
    order = range(len(lengths)) if generator is None else _shuffled(len(lengths), generator)
    batches: list[list[int]] = []
    for item in sorted(order, key=lambda item: lengths[item]):  # the newest item is the longest
        if not batches or lengths[item] * (len(batches[-1]) + 1) > max_tokens:
            batches.append([])
        batches[-1].append(item)
    if generator is None:
        return batches
    return [batches[place] for place in _shuffled(len(batches), generator)]


def _longer_lengths(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[int]:
    """Return the number of tokens of the longer side of each pair, eos included."""
    known = [getattr(side, "lengths", None) for side in (sources, targets)]
    if all(isinstance(lengths, Tensor) for lengths in known):  # mapped from a file: none is read for its length
        return torch.maximum(*known).add(1).tolist()
    return [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]


def _shuffled(count: int, generator: torch.Generator) -> list[int]:
    return torch.randperm(count, generator=generator).tolist()


class BatchStream:
    """An endless stream of batches, each epoch in another order; its state is (epoch, position), which can be set.

    sources, targets: ids without special tokens; max_tokens: cells of the longer side of a batch.
    pad, bos, eos: the special ids; seed: what the order depends on, and nothing else.
    pack, shift: functions with the signatures of `token_batches` and `shift_right`. `lengths` are the tokens of each
    pair's longer side, eos included.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        max_tokens: int,
        pad: int,
        bos: int,
        eos: int,
        seed: int,
        pack: Callable[..., list[list[int]]] = token_batches,
        shift: Callable[[Tensor, int], Tensor] = shift_right,
    ) -> None:
        if len(sources) != len(targets) or not sources:
            raise ValueError(
                f"targets: expected one for each of {len(sources)} sources (at least one), got {len(targets)}"
            )
        self.sources, self.targets, self.max_tokens = sources, targets, max_tokens
        self.pad, self.bos, self.eos, self.seed = pad, bos, eos, seed
        self.epoch, self.position = 0, 0
        self._pack, self._shift = pack, shift
        self.lengths = _longer_lengths(sources, targets)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            order = self._order()
            while self.position < len(order):
                items = order[self.position]
                self.position += 1
                yield self.batch(items)
            self.epoch, self.position = self.epoch + 1, 0

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of all ids in their order, in hexadecimal."""
        digest = hashlib.sha256()
        for side in (self.sources, self.targets):
            for ids in side:
                digest.update(len(ids).to_bytes(8, "little") + array("i", ids).tobytes())
        return digest.hexdigest()

    def one_epoch(self) -> Iterator[Batch]:
        """Yield each item once, from short to long, whatever the state of the stream."""
        return (self.batch(items) for items in self._pack(self.lengths, self.max_tokens))

    def batch(self, items: Sequence[int]) -> Batch:
        """Return these items as one batch."""
        sources = [[*self.sources[item], self.eos] for item in items]
        labels = pad_sequences([[*self.targets[item], self.eos] for item in items], self.pad)
        return Batch(pad_sequences(sources, self.pad), self._shift(labels, self.bos), labels)

    def _order(self) -> list[list[int]]:
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        return self._pack(self.lengths, self.max_tokens, generator)


class NextBatch:
    """The batches of a stream, each built on request before it is taken, for example while a GPU computes.

    The stream's state counts only the batches that were taken.
    """

    def __init__(self, stream: BatchStream) -> None:
        self._stream = stream
        self._ahead = copy.copy(stream)  # has its own position
        self._batches = iter(self._ahead)
        self._built: Batch | None = None

    def build(self) -> None:
        """Build the next batch, unless it is built already."""
        if self._built is None:
            self._built = next(self._batches)

    def take(self) -> Batch:
        """Return the next batch."""
        self.build()
        batch, self._built = self._built, None
        self._stream.epoch, self._stream.position = self._ahead.epoch, self._ahead.position
        return batch
