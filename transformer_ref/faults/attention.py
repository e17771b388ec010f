"""Attention with separate, replaceable steps, and the wrong steps that people write."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_ref.faults.experiment import Experiment
from transformer_ref.model.attention import AttentionResult
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention, merge_heads, split_heads
from transformer_ref.model.transformer import Transformer

HIDDEN = -1e9  # what a hidden score is set to


def softmax_over(axis: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function of scores and mask that makes weights along an axis; -1, the keys, is correct."""
    return lambda scores, mask: torch.softmax(scores.masked_fill(~mask, HIDDEN), dim=axis)


over_keys = softmax_over(-1)


@dataclass
class Steps:
    """The steps of attention, one function each."""

    split: Callable[[Tensor, int], Tensor] = split_heads
    scale: Callable[[int], float] = lambda d_head: d_head**0.5
    mask: Callable[[Tensor], Tensor] = lambda mask: mask
    shares: Callable[[Tensor, Tensor], Tensor] = over_keys
    merge: Callable[[Tensor], Tensor] = merge_heads
    keys_from: Callable[[Tensor, Tensor], Tensor] = lambda asking, answering: answering


class OpenAttention(nn.Module):
    """A `MultiHeadAttention` with the same weights, computed by replaceable `Steps`."""

    def __init__(self, sound: MultiHeadAttention, steps: Steps) -> None:
        super().__init__()
        self.heads, self.steps = sound.heads, steps
        self.q_proj, self.k_proj = sound.q_proj, sound.k_proj
        self.v_proj, self.out_proj = sound.v_proj, sound.out_proj

    def forward(
        self,
        query_input: Tensor,
        key_value_input: Tensor | None = None,
        mask: Tensor | None = None,
        cache: None = None,
        need_weights: bool = False,
    ) -> AttentionResult:
        """Return what `MultiHeadAttention` returns, without a cache and always with the weights."""
        steps = self.steps
        asked = query_input if key_value_input is None else steps.keys_from(query_input, key_value_input)
        if mask is None or mask.shape[-1] != asked.shape[1]:
            mask = causal_mask(asked.shape[1])[-query_input.shape[1] :]
        query = steps.split(self.q_proj(query_input), self.heads)  # (batch, heads, query, d_head)
        key, value = (steps.split(project(asked), self.heads) for project in (self.k_proj, self.v_proj))
        scores = query @ key.transpose(-2, -1) / steps.scale(query.shape[-1])  # (batch, heads, query, key)
        weights = steps.shares(scores, steps.mask(mask))  # (batch, heads, query, key)
        return AttentionResult(self.out_proj(steps.merge(weights @ value)), weights)


def attentions(model: Transformer, kinds: str = "encoder self cross") -> list[tuple[nn.Module, str]]:
    """Return (layer, name of its attention) for the attentions of these kinds."""
    found = [(layer, "self_attention") for layer in model.encoder.layers if "encoder" in kinds]
    found += [(layer, "self_attention") for layer in model.decoder.layers if "self" in kinds]
    return found + [(layer, "cross_attention") for layer in model.decoder.layers if "cross" in kinds]


def opened(kinds: str = "encoder self cross", **steps: Callable) -> Callable[[Experiment], None]:
    """Return the fault that replaces steps of the attentions of these kinds."""

    def put(experiment: Experiment) -> None:
        for layer, name in attentions(experiment.model, kinds):
            setattr(layer, name, OpenAttention(getattr(layer, name), Steps(**steps)))

    return put


def split_by_view(x: Tensor, heads: int) -> Tensor:
    batch, length, d_model = x.shape
    return x.reshape(batch, heads, length, d_model // heads)


def merge_by_view(x: Tensor) -> Tensor:
    batch, heads, length, d_head = x.shape
    return x.reshape(batch, length, heads * d_head)


def mean_of_heads(x: Tensor) -> Tensor:
    return x.mean(dim=1).repeat(1, 1, x.shape[1])  # (batch, length, d_model)


def mask_after_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) * mask


def scores_times_mask(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores * mask, dim=-1)


def later_only(mask: Tensor) -> Tensor:
    return mask.transpose(-2, -1)


def one_future_open(mask: Tensor) -> Tensor:
    return mask | torch.ones_like(mask).tril(1)


def diagonal_blocked(mask: Tensor) -> Tensor:
    return mask & ~torch.eye(mask.shape[-1], dtype=torch.bool)[-mask.shape[-2] :]


def all_true(mask: Tensor) -> Tensor:
    return torch.ones_like(mask)


def and_causal(mask: Tensor) -> Tensor:
    return mask & causal_mask(mask.shape[-1])
