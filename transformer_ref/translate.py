"""A line of text becomes a translated line (chapter 12).

The road in six files: `__main__` -> here: tokenizer.encode -> batching.pad_sequences -> transformer.encode ->
greedy or beam_search, one cached step at a time -> tokenizer.decode.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_ref.config import DecodingConfig, fields_from
from transformer_ref.data.batching import pad_sequences
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.device import choose_device
from transformer_ref.faster import accelerate, top_k
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import Tokenizer
from transformer_ref.training.checkpoint import load_checkpoint


class Attention(NamedTuple):
    """Who looked at whom while a translation was read; each row of weights sums to one."""

    source: list[str]  # the source's tokens, eos last
    target: list[str]  # the tokens the decoder read, bos first; the row of each says where it looked for the next one
    encoder: Tensor  # (layers, heads, source, source)
    decoder: Tensor  # (layers, heads, target, target)
    cross: Tensor  # (layers, heads, target, source)


class Translator:
    """A model between two tokenizers; its parts are exchanged for faster ones that compute the same."""

    def __init__(self, model: Transformer, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        self.model = accelerate(model)
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> "Translator":
        """Return what `train` or `learn` left in a folder. Raises what `load_checkpoint` and `choose_device` raise."""
        checkpoint = load_checkpoint(folder, choose_device(device))
        return cls(checkpoint.model, checkpoint.source_tokenizer, checkpoint.target_tokenizer)

    def translate(self, lines: Sequence[str], **settings: Any) -> list[str]:
        """Return one translation a line, in the same order; an empty line stays empty.

        settings: fields of `DecodingConfig`, such as beam=1. A line too long for the model is cut, with a warning.
        Raises TypeError for one string in place of a list, ValueError for a setting that does not fit or a model in
        training mode.
        """
        if isinstance(lines, str):
            raise TypeError(f"lines: expected a list of lines, got the string {lines[:40]!r}")
        config = DecodingConfig(**fields_from(DecodingConfig, settings))
        sources = [self._source_ids(line) for line in lines]
        translations = [""] * len(lines)
        filled = [i for i, line in enumerate(lines) if line.strip()]
        by_length = sorted(filled, key=lambda i: len(sources[i]))
        for start in range(0, len(by_length), config.batch_size):
            batch = by_length[start:start + config.batch_size]
            decoded = self._decode([sources[i] for i in batch], config)
            for i, target_ids in zip(batch, decoded, strict=True):
                translations[i] = self.target_tokenizer.decode(target_ids)
        return translations

    @torch.inference_mode()
    def attention(self, source: str, target: str | None = None) -> Attention:
        """Return the weights of every layer and head for a sentence and its translation, by default our own.

        Raises ValueError for a target longer than the model can read, or a model in training mode.
        """
        if target is None:
            target, = self.translate([source])
        config, device = self.model.config, next(self.model.parameters()).device
        target_ids = [config.bos, *self.target_tokenizer.encode(target)]
        source_ids = self._source_ids(source)
        encoded = self.model.encode(torch.tensor([source_ids], device=device), need_weights=True)
        decoded = self.model.decode(torch.tensor([target_ids], device=device), encoded, need_weights=True)
        weights = (torch.cat(each) for each in (encoded.weights, decoded.self_weights, decoded.cross_weights))
        return Attention(self.source_tokenizer.tokens(source_ids), self.target_tokenizer.tokens(target_ids), *weights)

    def _source_ids(self, line: str) -> list[int]:
        ids = self.source_tokenizer.encode(line)
        longest = self.model.config.max_length - 1  # eos follows
        if len(ids) > longest:
            warnings.warn(f"source: expected at most {longest} tokens, got {len(ids)}; the rest is cut off",
                          stacklevel=2)
        return [*ids[:longest], self.model.config.eos]

    def _decode(self, sources: list[list[int]], config: DecodingConfig) -> list[list[int]]:
        pad, longest = self.model.config.pad, self.model.config.max_length
        device = next(self.model.parameters()).device
        source_ids = pad_sequences(sources, pad).to(device)  # (batch, source)
        # one limit for the batch, whose lines are of similar length: only an answer without end meets it
        max_length = min(source_ids.shape[1] + config.extra_length, longest)
        if config.beam == 1:
            return greedy_decode(self.model, source_ids, max_length).tolist()
        hypotheses = beam_search(self.model, source_ids, config.beam, max_length, config.length_exponent, top_k)
        return [best_first[0].ids for best_first in hypotheses]
