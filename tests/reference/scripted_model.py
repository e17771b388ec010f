"""Models that say what a script says, for tests of decoding."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from drawn import tiny_config
from torch import Tensor

from transformer_ref.config import ModelConfig
from transformer_ref.model.decoder import Decoded
from transformer_ref.model.transformer import Encoded

Script = Callable[[list[int], list[int]], Sequence[float]]  # source, target so far -> the next token's logits


class WrittenSoFar:
    """The cache of a scripted model: the target ids of each row, and how often it was fed."""

    def __init__(self) -> None:
        self.ids: Tensor | None = None

    def append(self, ids: Tensor) -> Tensor:
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        return self.ids

    def select(self, rows: Tensor) -> None:
        self.ids = self.ids[rows]


class ScriptedModel:
    """Has the interface of `Transformer`; gets the logits of each row from the script."""

    def __init__(self, script: Script, config: ModelConfig | None = None) -> None:
        self.script = script
        self.config = tiny_config() if config is None else config
        self.training = False
        self.rows_decoded = 0

    def parameters(self) -> Iterator[Tensor]:
        yield torch.empty(0)  # says where the model lives

    def encode(self, source_ids: Tensor) -> Encoded:
        return Encoded(source_ids, (source_ids != self.config.pad)[:, None, None], [])

    def new_cache(self) -> WrittenSoFar:
        return WrittenSoFar()

    def modules(self) -> Iterator[Any]:
        return iter(())  # nothing in it could be faster

    def decode(
        self,
        target_ids: Tensor,
        encoded: Encoded,
        cache: WrittenSoFar | None = None,
        mask: Tensor | None = None,
        positions: Sequence[int] | None = None,
    ) -> Decoded:
        self.rows_decoded += len(target_ids)
        written = target_ids if cache is None else cache.append(target_ids)
        if mask is None:
            end = torch.arange(written.shape[1]) + 1
            mask = (end <= end[-target_ids.shape[1] :, None]).expand(len(written), 1, -1, -1)
        hidden = []
        for ids, rows, source, shown in zip(written, mask[:, 0], encoded.memory, encoded.mask, strict=True):
            real = source[shown[0, 0]].tolist()
            hidden.append([list(self.script(real, ids[own].tolist())) for own in rows])
        return Decoded(torch.tensor(hidden, dtype=torch.float64), [], [])

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden


def random_script(seed: int, vocabulary: int) -> Script:
    """Return a script that draws the logits from the seed, the source and the target so far."""

    def script(source: list[int], target: list[int]) -> list[float]:
        drawing = random.Random(repr((seed, source, target)))
        return [drawing.gauss(0, 2) for _ in range(vocabulary)]

    return script


def says(answer: Callable[[list[int]], list[int]], vocabulary: int, pad: int) -> Script:
    """Return a script that translates a source word by word, then returns pads."""

    def script(source: list[int], target: list[int]) -> list[float]:
        words, written = answer(source), len(target) - 1
        wanted = words[written] if target[1:] == words[:written] and written < len(words) else pad
        return [float(id == wanted) for id in range(vocabulary)]

    return script
