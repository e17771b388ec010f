"""A line of text becomes a translated line (chapter 12).

The road in six files: `__main__` -> here: tokenizer.encode -> batching.pad_sequences -> transformer.encode ->
greedy or beam_search, one cached step at a time -> tokenizer.decode.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from transformer_ref.config import DecodingConfig, fields_from
from transformer_ref.data.batching import pad_sequences
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.faster import accelerate, top_k
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import Tokenizer


class Translator:
    """A model between two tokenizers; its parts are exchanged for faster ones that compute the same."""

    def __init__(self, model: Transformer, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        self.model = accelerate(model)
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer

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
