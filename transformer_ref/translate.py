"""A line of text becomes a translated line (chapter 12).

The road in six files: `__main__` -> here: tokenizer.encode -> batching.pad_sequences -> transformer.encode ->
greedy or beam_search, one cached step at a time -> tokenizer.decode.
"""

import warnings

from transformer_ref.data.batching import pad_sequences
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.memory import freed_memory_kept
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import Tokenizer

EXTRA_LENGTH = 50  # a translation may be this much longer than its source: Vaswani et al. 2017, section 6.1


class Translator:
    """A model between two tokenizers."""

    def __init__(self, model: Transformer, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer

    def translate(self, lines: list[str], beam: int = 5, batch_size: int = 64,
                  length_exponent: float = 1.0) -> list[str]:
        """Return one translation a line, in the same order; an empty line stays empty.

        beam: hypotheses kept at each step, 1 for greedy decoding; batch_size: lines decoded together;
        length_exponent: see `beam_search`. A line too long for the model is cut, with a warning.
        Raises ValueError when the model is in training mode.
        """
        sources = [self._source_ids(line) for line in lines]
        translations = [""] * len(lines)
        filled = [i for i, line in enumerate(lines) if line.strip()]
        by_length = sorted(filled, key=lambda i: len(sources[i]))
        with freed_memory_kept():
            for start in range(0, len(by_length), batch_size):
                batch = by_length[start:start + batch_size]
                decoded = self._decode([sources[i] for i in batch], beam, length_exponent)
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

    def _decode(self, sources: list[list[int]], beam: int, length_exponent: float) -> list[list[int]]:
        config = self.model.config
        device = next(self.model.parameters()).device
        source_ids = pad_sequences(sources, config.pad).to(device)  # (batch, source)
        # one limit for the batch, whose lines are of similar length: only an answer without end meets it
        max_length = min(source_ids.shape[1] + EXTRA_LENGTH, config.max_length)
        if beam == 1:
            return greedy_decode(self.model, source_ids, max_length).tolist()
        hypotheses = beam_search(self.model, source_ids, beam, max_length, length_exponent)
        return [best_first[0].ids for best_first in hypotheses]
