"""Sampling: the next token is drawn at random, by its probability (chapter 11).

Three settings control how random the draw is: a temperature sharpens or flattens all probabilities, top-k keeps the k
most probable tokens (Fan et al. 2018, section 5.4), top-p the fewest tokens whose probabilities sum to p (Holtzman et
al. 2020, section 3.1).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_ref.decoding.arguments import expect_evaluation_mode
from transformer_ref.decoding.length_limit import length_limits
from transformer_ref.model.softmax import softmax
from transformer_ref.model.transformer import Transformer


def sampling_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return the probabilities to draw from; those of excluded tokens are exactly zero, and each row sums to one.

    logits: (..., vocabulary); temperature: above 0, below 1 sharpens; top_k: at least 1, ties with the last are kept;
    top_p: in (0, 1]. With both, top-p chooses among what top-k kept. Raises ValueError naming the argument.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature: expected more than 0 (greedy decoding is the limit) and no infinity, got {temperature}"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: expected at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p: expected more than 0 and at most 1, got {top_p}")
    logits = logits / temperature
    if top_k is not None and top_k < logits.shape[-1]:
        weakest = logits.topk(top_k, dim=-1).values[..., -1:]  # (..., 1)
        logits = logits.masked_fill(logits < weakest, -torch.inf)
    probabilities = softmax(logits)
    if top_p is not None and top_p < 1:
        descending, order = probabilities.sort(dim=-1, descending=True, stable=True)
        before = descending.cumsum(dim=-1) - descending  # what likelier tokens reach without this one
        kept = descending.masked_fill(before >= top_p, 0.0)
        probabilities = torch.zeros_like(kept).scatter(-1, order, kept)
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    return probabilities


def draw(probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return an index drawn from each row of probabilities, (..., vocabulary) -> (...), or that of a NaN.

    Each index gets an exponential waiting time with its probability as the rate, and the shortest wins. The draws equal
    those of `torch.multinomial`, which on a GPU synchronizes to check the probabilities.
    """
    times = torch.empty_like(probabilities).exponential_(generator=generator)
    return (probabilities / times).argmax(dim=-1)


@torch.inference_mode()
def sample_decode(
    model: Transformer,
    source_ids: Tensor,
    max_length: int | Sequence[int],
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Return for each source a translation drawn token by token.

    model: in evaluation mode; source_ids: (batch, source), padded at the end; max_length: the maximum number of tokens
    after bos, one for all sources or one for each; generator: on the model's device; the rest: see
    `sampling_probabilities`. Returns (batch, at most max_length + 1): bos, the tokens, eos where it was drawn, then
    pads.
    Raises ValueError when the model is in training mode, max_length is below 1 or a logit is NaN.
    """
    expect_evaluation_mode(model)
    config, limits = model.config, length_limits(source_ids, max_length)
    encoded, cache = model.encode(source_ids), model.new_cache()
    target = source_ids.new_full((source_ids.shape[0], max(limits, default=0) + 1), config.pad)  # (batch, target)
    target[:, 0] = config.bos
    ended = torch.zeros(source_ids.shape[0], dtype=torch.bool, device=source_ids.device)  # (batch,)
    limit = torch.tensor(limits, device=source_ids.device)  # (batch,)
    for step in range(1, target.shape[1]):
        hidden = model.decode(target[:, step - 1 : step], encoded, cache).hidden[:, -1]  # (batch, d_model)
        logits = model.logits(hidden).float()  # (batch, vocabulary)
        logits[:, config.pad] = -torch.inf  # padding is not a word
        probabilities = sampling_probabilities(logits, temperature, top_k, top_p)
        drawn = draw(probabilities, generator)  # (batch,)
        target[:, step] = drawn.masked_fill(ended, config.pad)
        ended |= (drawn == config.eos) | (limit <= step)
        # the only line of the loop that waits for a GPU
        is_over, has_nan = torch.stack([ended.all(), probabilities.sum().isnan()]).tolist()
        if has_nan:
            raise ValueError("logits: expected numbers to draw from, got NaN")
        if is_over:
            return target[:, : step + 1]
    return target
