"""A learner's own `greedy_decode` and `beam_search`, where their file has them (chapter 12)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer_ref.decoding.beam_search import Hypothesis, TopK, beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.length_limit import length_limits
from transformer_ref.learner.own_file import OwnCodeError


@torch.inference_mode()
def own_greedy(model: nn.Module, source_ids: Tensor, max_length: int | Sequence[int]) -> Tensor:
    """Return what `greedy_decode` returns, computed by the learner's function. Raises OwnCodeError."""
    code, config = model.code, model.config
    own = code.part("greedy_decode")
    if own is None:
        return greedy_decode(model, source_ids, max_length)
    limits = length_limits(source_ids, max_length)
    longest = max(limits, default=1)  # theirs has one limit for a batch; the rows are cut to their own afterwards
    with code.called(f"greedy_decode(model, src {tuple(source_ids.shape)}, {longest})"):
        with torch.device(source_ids.device):
            ids = own(model, source_ids, longest, config.bos, config.eos, config.pad)
    if not isinstance(ids, Tensor) or ids.dim() != 2 or len(ids) != len(source_ids) or ids.is_floating_point():
        got = f"{ids.dtype} {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise OwnCodeError(
            f"{code.name}: greedy_decode: expected ids, a row for each of {len(source_ids)} sources, got {got}"
        )
    places = torch.arange(ids.shape[1], device=ids.device)
    beyond = places > torch.tensor(limits, device=ids.device)[:, None]  # (batch, target); bos is at 0
    return ids.masked_fill(beyond, config.pad)


@torch.inference_mode()
def own_beam(
    model: nn.Module, source_ids: Tensor, beam: int, max_length: int | Sequence[int], length_penalty: float, top_k: TopK
) -> list[list[Hypothesis]]:
    """Return what `beam_search` returns, by the learner's function, sentence by sentence. Raises OwnCodeError."""
    code, config = model.code, model.config
    own = code.part("beam_search")
    if own is None:
        return beam_search(model, source_ids, beam, max_length, length_penalty, top_k)
    found = []
    for padded, limit in zip(source_ids, length_limits(source_ids, max_length), strict=True):
        source = padded[padded != config.pad]  # (source,)

        def step(prefixes: Tensor, source: Tensor = source) -> Tensor:
            prefixes = torch.as_tensor(prefixes, device=source.device)  # (prefixes, length)
            logits = model(source.expand(len(prefixes), -1), prefixes)[:, -1]  # (prefixes, vocabulary)
            logits[:, config.pad] = -torch.inf  # padding is not a word
            return logits.log_softmax(dim=-1)

        with code.called(f"beam_search(step_fn, {beam}, {limit}, {length_penalty:g})"):
            ranked = [
                Hypothesis([int(id) for id in ids], float(score))
                for ids, score in own(step, beam, limit, length_penalty, config.bos, config.eos)
            ]
        if not ranked or any(not each.ids or math.isnan(each.score) for each in ranked):
            raise OwnCodeError(
                f"{code.name}: beam_search: expected at least one list of ids with its score, got {ranked[:1]}"
            )
        found.append(ranked)
    return found
