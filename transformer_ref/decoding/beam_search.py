"""Beam search (chapter 11): several hypotheses side by side, since a likely first word may hide a better sentence.

The probability of a hypothesis is the product over its tokens, so log p is a sum. Hypotheses are compared by

    score = log p / length^exponent        length counts the generated tokens, eos included

since every token lowers log p, and without the division short answers would win (Wu et al. 2016, section 7,
divide by a similar power).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.config import expect_length_penalty
from transformer_ref.decoding.arguments import expect_evaluation_mode, kept_rows
from transformer_ref.decoding.length_limit import length_limits
from transformer_ref.model.transformer import Transformer

TopK = Callable[[Tensor, int], tuple[Tensor, Tensor]]  # values and places of each row's largest, the largest first


class Hypothesis(NamedTuple):
    """One translation: its ids from bos to eos (without eos where max_length cut it) and its score."""

    ids: list[int]
    score: float


class Beams(NamedTuple):
    """The unfinished hypotheses of the sentences that are not done yet."""

    sentence: Tensor  # (open,), the sentence's row in the batch
    limit: Tensor  # (open,), the most tokens that the sentence's hypotheses may have
    missing: Tensor  # (open,), how many finished hypotheses the sentence still waits for
    ids: Tensor  # (open, beam, length); at first one hypothesis, (open, 1, 1)
    log_probability: Tensor  # (open, beam); minus infinity at a place without a hypothesis
    lineage: Tensor  # (open, beam, 1 + (length - 1) * beam), which tokens of all hypotheses so far are its own


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source_ids: Tensor,
    beam_size: int,
    max_length: int | Sequence[int],
    length_penalty: float,
    top_k: TopK = torch.topk,
) -> list[list[Hypothesis]]:
    """Return for each source up to `beam_size` hypotheses, the best first.

    model: in evaluation mode; source_ids: (batch, source), padded at the end.
    beam_size: hypotheses kept at each step; max_length: the maximum number of tokens after bos, one for all sources or
    one for each. length_penalty: 0 compares log p itself, 1 its mean over the tokens; top_k: a function with the
    signature of `torch.topk`. At each step the continuations of all hypotheses of a sentence compete, by log p. One of
    the best `beam_size` that ends in eos is finished: it is never extended, and the next best takes its place. A
    sentence is done when `beam_size` hypotheses are finished. Hypotheses cut at max_length rank behind the finished
    ones. Raises ValueError when the model is in training mode, `beam_size` or `max_length` is below 1, or
    `length_penalty` is not from 0 to 10.
    """
    expect_evaluation_mode(model)
    limits = length_limits(source_ids, max_length)
    expect_length_penalty(length_penalty)
    if beam_size < 1:
        raise ValueError(f"beam_size: expected at least 1, got {beam_size}")
    eos = model.config.eos
    encoded = model.encode(source_ids)  # (open, ...)
    found = Found(len(source_ids), beam_size, max(limits, default=0))
    beams = _first_beams(source_ids, limits, beam_size, model.config.bos)
    cache = model.new_cache()
    for length in range(1, max(limits, default=0) + 1):
        # keys and values stay where they were written: a hypothesis changes its lineage, not its place in memory
        newest = beams.ids[:, :, -1]  # (open, hypotheses)
        positions = [length - 1] * newest.shape[1]
        hidden = model.decode(newest, encoded, cache, mask=beams.lineage[:, None], positions=positions).hidden
        logits = model.logits(hidden)  # (open, hypotheses, vocabulary)
        log_probability, parent, token = _best_continuations(beams, logits, beam_size, model.config.pad, top_k)
        ends = token == eos  # (open, up to 2 * beam)
        finished = (ends & log_probability.isfinite())[:, :beam_size]
        found.add(beams, log_probability[:, :beam_size], parent[:, :beam_size], finished, eos)
        beams = _grown(
            beams, beam_size, log_probability.masked_fill(ends, -torch.inf), parent, token, finished.sum(dim=1)
        )
        goes_on = (beams.missing > 0) & beams.log_probability[:, 0].isfinite()  # (open,)
        if length in limits:  # some sentences may not grow any longer
            at_limit = beams.limit == length
            cut = (goes_on & at_limit)[:, None] & beams.log_probability.isfinite()  # (open, beam)
            each = torch.arange(beam_size, device=source_ids.device).expand(len(beams.ids), -1)
            found.add(beams, beams.log_probability, each, cut)
            goes_on = goes_on & ~at_limit
        still_open = kept_rows(goes_on)  # the only line of the loop that waits for a GPU
        if len(still_open) < len(beams.sentence):
            beams, encoded = Beams(*(tensor[still_open] for tensor in beams)), encoded.select(still_open)
            cache.select(still_open)
        if len(still_open) == 0:
            break
    return [
        sorted(of_one_source, key=lambda one: (one.ids[-1] == eos, one.score), reverse=True)[:beam_size]
        for of_one_source in found.hypotheses(length_penalty)
    ]


class Found:
    """The hypotheses found so far, kept on the model's device: reading them at each step would synchronize with a GPU.

    sentences: of the batch; beam_size, max_length: those of the search.
    """

    def __init__(self, sentences: int, beam_size: int, max_length: int) -> None:
        # A sentence ends with fewer than `beam` hypotheses before its last step, which adds at most `beam`. The last
        # place of each row takes what is not kept, so that no step depends on how many are.
        self._spare = 2 * beam_size
        self._sizes = sentences, self._spare + 1, max_length + 1
        self._ids: Tensor | None = None  # (sentence, place, max_length + 1)

    def add(self, beams: Beams, log_probability: Tensor, parent: Tensor, chosen: Tensor, *end: int) -> None:
        """Keep the hypotheses where `chosen` is True: the ids of a parent, then those of `end`.

        log_probability, parent, chosen: (open, any number).
        """
        if self._ids is None:  # now the dtype is known
            self._ids = beams.ids.new_zeros(self._sizes)
            self._length = beams.ids.new_zeros(self._sizes[:2])  # (sentence, place), in tokens
            self._log_probability = log_probability.new_zeros(self._sizes[:2])  # (sentence, place)
            self._count = beams.ids.new_zeros(self._sizes[:1])  # (sentence,)
        length = beams.ids.shape[2]
        row = torch.arange(len(beams.ids), device=parent.device)[:, None]  # (open, 1)
        place = self._count[beams.sentence][:, None] + chosen.cumsum(dim=1) - 1  # (open, any number)
        where = beams.sentence[:, None], place.masked_fill(~chosen, self._spare)
        self._ids[:, :, :length][where] = beams.ids[row, parent]
        # not [where] = id: a GPU would wait for a number that comes from the CPU
        for offset, id in enumerate(end):
            self._ids[:, :, length + offset][where] = self._ids.new_full((), id)
        self._length[where] = self._length.new_full((), length + len(end))
        self._log_probability[where] = log_probability
        self._count[beams.sentence] += chosen.sum(dim=1)

    def hypotheses(self, length_penalty: float) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, in the order in which they were added, with their scores."""
        if self._ids is None:
            return []
        columns = (each.tolist() for each in (self._count, self._ids, self._length, self._log_probability))
        return [
            [
                Hypothesis(ids[:length], log_p / (length - 1) ** length_penalty)
                for ids, length, log_p in zip(rows[:count], lengths, log_ps, strict=False)
            ]
            for count, rows, lengths, log_ps in zip(*columns, strict=True)
        ]


def _first_beams(source_ids: Tensor, limits: list[int], beam_size: int, bos: int) -> Beams:
    """Return bos as the only hypothesis of each sentence; the first step finds `beam_size` of its continuations."""
    batch, device = source_ids.shape[0], source_ids.device
    return Beams(
        sentence=torch.arange(batch, device=device),
        limit=torch.tensor(limits, device=device),
        missing=source_ids.new_full((batch,), beam_size),
        ids=source_ids.new_full((batch, 1, 1), bos),
        log_probability=torch.zeros(batch, 1, device=device),
        lineage=torch.ones(batch, 1, 1, dtype=torch.bool, device=device),
    )


def _best_continuations(
    beams: Beams, logits: Tensor, beam_size: int, pad: int, top_k: TopK
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log p of the best continuations, the best first, with the index of the hypothesis and the token of each.

    logits: (open, hypotheses, vocabulary). Returns (open, beam_size to 2 * beam_size) each: of 2 * beam_size,
    `beam_size` go on if `beam_size` end. If a sentence has fewer than `beam_size` continuations, the rest has log p
    minus infinity.
    """
    precise = torch.promote_types(logits.dtype, torch.float32)
    log_p = logits.log_softmax(dim=-1, dtype=precise)  # (open, beam, vocabulary)
    log_p[..., pad] = -torch.inf  # padding is not a word
    # of one hypothesis no more than its `beam` best continuations and eos can be wanted
    added, tokens = top_k(log_p, min(beam_size + 1, logits.shape[-1]))
    candidates = (beams.log_probability[:, :, None] + added).flatten(1)  # (open, up to beam * (beam + 1))
    best, choice = candidates.topk(min(2 * beam_size, candidates.shape[1]), dim=-1)
    parent, token = choice // added.shape[-1], tokens.flatten(1).gather(1, choice)
    lacking = beam_size - best.shape[1]
    if lacking > 0:  # at the first step, if the vocabulary is smaller than the beam
        best = F.pad(best, (0, lacking), value=-torch.inf)
        parent, token = F.pad(parent, (0, lacking)), F.pad(token, (0, lacking))
    return best, parent, token


def _grown(
    beams: Beams, beam_size: int, log_probability: Tensor, parent: Tensor, token: Tensor, finished: Tensor
) -> Beams:
    """Return the beams, one token longer: the best `beam_size` continuations, if a sentence has that many."""
    count = len(beams.ids)
    best, choice = log_probability.topk(beam_size, dim=-1)  # (open, beam)
    parent, token = parent.gather(1, choice), token.gather(1, choice)
    row = torch.arange(count, device=best.device)[:, None]  # (open, 1)
    itself = torch.eye(beam_size, dtype=torch.bool, device=best.device).expand(count, -1, -1)  # (open, beam, beam)
    return Beams(
        sentence=beams.sentence,
        limit=beams.limit,
        missing=beams.missing - finished,
        log_probability=best,
        ids=torch.cat([beams.ids[row, parent], token[:, :, None]], dim=-1),
        lineage=torch.cat([beams.lineage[row, parent], itself], dim=-1),
    )
