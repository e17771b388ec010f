"""Several hypotheses side by side, so that a good beginning is not lost to a better first word (chapter 11).

A hypothesis is as probable as the product of its tokens, so log p is a sum. Hypotheses are compared by

    score = log p / length^exponent        length counts the generated tokens, eos included

since every token lowers log p, and without the division short answers would win (Wu et al. 2016, section 7,
divide by a similar power).
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_ref.model.transformer import Transformer

PIECE = 100  # cells of a row in which a maximum is looked for


class Hypothesis(NamedTuple):
    """One translation: its ids from bos to eos (without eos where max_length cut it) and its score."""

    ids: list[int]
    score: float


class Beams(NamedTuple):
    """The hypotheses that go on, for the sentences that are still open."""

    sentence: Tensor  # (open,), the sentence's row in the batch
    places: Tensor  # (open,), how many hypotheses may go on: `beam` less the finished ones
    ids: Tensor  # (open, beam, length)
    log_probability: Tensor  # (open, beam); minus infinity at a place without a hypothesis
    lineage: Tensor  # (open, beam, length * beam), which tokens of the sentence's hypotheses, ever, are its own


@torch.inference_mode()
def beam_search(model: Transformer, source_ids: Tensor, beam: int, max_length: int,
                length_exponent: float) -> list[list[Hypothesis]]:
    """Return for each source up to `beam` hypotheses, the best first.

    model: in evaluation mode; source_ids: (batch, source), padded at the end.
    beam: hypotheses kept at each step; max_length: the most tokens to add to bos.
    length_exponent: 0 compares log p itself, 1 its mean over the tokens.
    At each step the continuations of all hypotheses of a sentence compete, by log p. One that ends in eos
    is finished: it keeps its place in the beam and is never extended. A sentence is done when all its places
    are taken. Hypotheses cut at max_length rank behind the finished ones.
    Raises ValueError when the model is in training mode or `beam` is below 1.
    """
    if model.training:
        raise ValueError("model: expected evaluation mode (model.eval()), got training mode")
    if beam < 1:
        raise ValueError(f"beam: expected at least 1, got {beam}")
    eos = model.config.eos
    found: list[list[Hypothesis]] = [[] for _ in source_ids]
    beams = _first_beams(source_ids, beam, model.config.bos)
    encoded = model.encode(source_ids)  # (open, ...)
    cache = model.new_cache()
    for length in range(1, max_length + 1):
        # keys and values stay where they were written: a hypothesis changes its lineage, not its place in memory
        hidden = model.decode(beams.ids[:, :, -1], encoded, cache, lineage=beams.lineage).hidden
        beams = _best_continuations(beams, model.logits(hidden))
        ended = (beams.ids[:, :, -1] == eos) & beams.log_probability.isfinite()  # (open, beam)
        for sentence, ids, log_probability in _listed(beams, ended):
            found[sentence].append(Hypothesis(ids, log_probability / length ** length_exponent))
        beams = _without(beams, ended)
        still_open = (beams.places > 0).nonzero().squeeze(1)
        if len(still_open) == 0:
            break
        if len(still_open) < len(beams.sentence):
            beams, encoded = Beams(*(tensor[still_open] for tensor in beams)), encoded.select(still_open)
            cache.select(still_open)
    for sentence, ids, log_probability in _listed(beams, beams.log_probability.isfinite()):
        found[sentence].append(Hypothesis(ids, log_probability / max_length ** length_exponent))
    return [sorted(of_one_source, key=lambda one: (one.ids[-1] == eos, one.score), reverse=True)
            for of_one_source in found]


def _first_beams(source_ids: Tensor, beam: int, bos: int) -> Beams:
    """Return bos as every hypothesis; only the first one counts, or all would grow alike."""
    batch, device = source_ids.shape[0], source_ids.device
    log_probability = torch.full((batch, beam), -torch.inf, device=device)
    log_probability[:, 0] = 0.0
    return Beams(sentence=torch.arange(batch, device=device), places=source_ids.new_full((batch,), beam),
                 ids=source_ids.new_full((batch, beam, 1), bos), log_probability=log_probability,
                 lineage=torch.eye(beam, dtype=torch.bool, device=device).repeat(batch, 1, 1))


def _best_continuations(beams: Beams, logits: Tensor) -> Beams:
    """Return the most probable continuations, best first; logits: (open, beam, vocabulary)."""
    count, beam = beams.log_probability.shape
    precise = torch.promote_types(logits.dtype, torch.float32)
    # of one hypothesis no more than its `beam` best continuations can win
    added, tokens = largest(logits.log_softmax(dim=-1, dtype=precise), min(beam, logits.shape[-1]))
    candidates = beams.log_probability[:, :, None] + added  # (open, beam, beam)
    best, choice = candidates.flatten(1).topk(beam, dim=-1)  # (open, beam)
    parent = choice // added.shape[-1]  # (open, beam)
    token = tokens.flatten(1).gather(1, choice)  # (open, beam)
    has_place = torch.arange(beam, device=best.device) < beams.places[:, None]  # (open, beam)
    row = torch.arange(count, device=best.device)[:, None]  # (open, 1)
    itself = torch.eye(beam, dtype=torch.bool, device=best.device).expand(count, -1, -1)  # (open, beam, beam)
    return beams._replace(ids=torch.cat([beams.ids[row, parent], token[:, :, None]], dim=-1),
                          log_probability=best.masked_fill(~has_place, -torch.inf),
                          lineage=torch.cat([beams.lineage[row, parent], itself], dim=-1))


def largest(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest of each row, the largest first, and where they stand, as `x.topk(count)` does.

    A long row is cut into pieces. The pieces with the largest maxima hold all that is wanted, and a maximum is found
    in a fraction of the time that a ranking takes.
    """
    if x.shape[-1] < 2 * count * PIECE:
        return x.topk(count, dim=-1)
    pieces = x.unfold(-1, PIECE, PIECE)  # (..., pieces, cells)
    chosen = pieces.amax(dim=-1).topk(count, dim=-1).indices[..., None]  # (..., count, 1)
    places = chosen * PIECE + torch.arange(PIECE, device=x.device)  # (..., count, cells)
    rest = torch.arange(pieces.shape[-2] * PIECE, x.shape[-1], device=x.device)  # shorter than a piece
    places = torch.cat([places.flatten(-2), rest.expand(*x.shape[:-1], -1)], dim=-1)  # (..., candidates)
    values, order = x.gather(-1, places).topk(count, dim=-1)  # (..., count)
    return values, places.gather(-1, order)


def _without(beams: Beams, ended: Tensor) -> Beams:
    """Return the beams after those that ended have left, each with its place."""
    return beams._replace(places=beams.places - ended.sum(dim=1),
                          log_probability=beams.log_probability.masked_fill(ended, -torch.inf))


def _listed(beams: Beams, chosen: Tensor) -> Iterator[tuple[int, list[int], float]]:
    """Yield sentence, ids and log p of the chosen hypotheses; chosen: boolean, (open, beam)."""
    for row, number in chosen.nonzero().tolist():
        ids, log_probability = beams.ids[row, number], beams.log_probability[row, number]
        yield int(beams.sentence[row]), ids.tolist(), float(log_probability)
