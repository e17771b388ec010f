"""Sentences of a natural length and no meaning, always the same ones."""

import torch

from transformer_ref.data.batching import BatchStream
from transformer_ref.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS

SENTENCES, MEAN_LENGTH, DEVIATION = 2_000, 14, 5  # lengths as in Multi30k
Ids = list[list[int]]


def invented_sentences(vocabulary: int, count: int) -> tuple[Ids, Ids]:
    """Return `count` sources and targets without special tokens; a target is one token longer than its source."""
    generator = torch.Generator().manual_seed(1)
    lengths = (torch.randn(count, generator=generator) * DEVIATION + MEAN_LENGTH).clamp(3, 40).long().tolist()
    sources, targets = (
        [
            torch.randint(len(SPECIAL_TOKENS), vocabulary, (length + longer,), generator=generator).tolist()
            for length in lengths
        ]
        for longer in (0, 1)
    )
    return sources, targets


def invented_stream(vocabulary: int, tokens_per_batch: int) -> BatchStream:
    """Return endless training batches of such sentences."""
    return BatchStream(*invented_sentences(vocabulary, SENTENCES), tokens_per_batch, PAD, BOS, EOS, seed=1)
