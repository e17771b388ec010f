"""GPT: a decoder-only model, which predicts the next token of any text (chapter 13).

What is left of chapter 09's Transformer when there is no source: no encoder, no cross-attention, one table for what is
read and what is written. Radford et al. 2018 (GPT) and 2019 (GPT-2, which normalizes before each sub-layer).
"""

import math

import torch
from torch import Tensor, nn

from transformer_ref.decoding.sampling import draw, sampling_probabilities
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.feed_forward import FeedForward
from transformer_ref.model.key_value_cache import KeyValueCache
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.model.positional_encoding import LearnedPositions
from transformer_ref.model.residual import Residual
from transformer_ref.shapes import expect_ids


def lm_batch(ids: Tensor, T: int, g: torch.Generator, B: int) -> tuple[Tensor, Tensor]:
    """Return B windows of a text and the same windows one token later, both (B, T).

    ids: (n,), the whole text; T: tokens in a window; g: draws where windows begin, each place equally often, places may
    repeat; B: how many windows. Raises TypeError or ValueError for ids of another kind, a T below 1, a B below 0, or
    where the text has no T + 1 tokens.
    """
    expect_ids("ids", ids, "n")
    if T < 1 or B < 0:
        raise ValueError(f"T, B: expected T of at least 1 and B of at least 0, got {T} and {B}")
    if len(ids) < T + 1:
        raise ValueError(f"ids: expected at least T + 1 = {T + 1} tokens, got {len(ids)}")
    starts = torch.randint(len(ids) - T, (B,), generator=g, device=ids.device)  # (batch,)
    places = starts[:, None] + torch.arange(T, device=ids.device)  # (batch, target)
    return ids[places], ids[places + 1]


class GPTBlock(nn.Module):
    """Causal self-attention, then the feed-forward network, each with its norm before it (Radford et al. 2019, 2.3).

    d_model: width of the tokens, a multiple of the heads h; d_ff: width inside the feed-forward network.
    """

    def __init__(self, d_model: int, h: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, h)
        self.self_attention_residual = Residual(d_model, dropout, norm_first=True)
        self.feed_forward = FeedForward(d_model, d_ff, "gelu")
        self.feed_forward_residual = Residual(d_model, dropout, norm_first=True)

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Return the tokens, (batch, target, d_model), for x of the same shape.

        cache: keys and values of earlier tokens, to which those of x are added.
        """
        before = 0 if cache is None else cache.length
        mask = causal_mask(x.shape[1], before, device=x.device)  # (target, before + target)
        attended, _ = self.self_attention(self.self_attention_residual.read(x), mask=mask, cache=cache)
        x = self.self_attention_residual.write(x, attended)
        change = self.feed_forward(self.feed_forward_residual.read(x))
        return self.feed_forward_residual.write(x, change)


class GPT(nn.Module):
    """Ids in, a score for every token that could come next at every place out; one table reads and writes.

    vocabulary: number of ids; layers: number of blocks; max_length: number of positions; the rest: see `GPTBlock`.
    """

    def __init__(
        self, vocabulary: int, d_model: int, h: int, layers: int, d_ff: int, max_length: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.max_length = max_length
        self.embedding = Embedding(vocabulary, d_model, scaled=False)
        self.positions = LearnedPositions(max_length, d_model)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(GPTBlock(d_model, h, d_ff, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)

    def embed(self, ids: Tensor, first: int = 0) -> Tensor:
        """Return the input of the first block, (batch, target, d_model).

        ids: (batch, target); first: the position of the first of them. Raises ValueError beyond the table of positions.
        """
        expect_ids("ids", ids, "batch", "target")
        if first + ids.shape[1] > self.max_length:
            raise ValueError(f"ids: expected at most {self.max_length} positions, got {first + ids.shape[1]}")
        return self.dropout(self.positions(self.embedding(ids), first))

    def head(self, x: Tensor) -> Tensor:
        """Return logits, (batch, target, vocabulary): x, (batch, target, d_model), times the table of tokens."""
        return x @ self.embedding.weight.T  # (batch, target, vocabulary)

    def forward(self, ids: Tensor, cache: list[KeyValueCache] | None = None) -> Tensor:
        """Return logits, (batch, target, vocabulary), for ids (batch, target).

        cache: one a block, see `new_cache`; then ids are only the tokens that it does not hold yet.
        Raises ValueError where a token has no position.
        """
        x = self.embed(ids, 0 if not cache else cache[0].length)
        for index, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache[index])
        return self.head(self.norm(x))

    def new_cache(self) -> list[KeyValueCache]:
        """Return an empty cache for each block."""
        return [KeyValueCache() for _ in self.blocks]


def choose(logits: Tensor, tau: float, g: torch.Generator | None) -> Tensor:
    """Return one id per row, (batch,): drawn from softmax(logits / tau), at tau = 0 the likeliest; logits: (batch, V).

    Raises ValueError for a tau that is not a finite number of at least 0.
    """
    if not 0 <= tau < math.inf:
        raise ValueError(f"tau: expected a finite number of at least 0, got {tau}")
    if tau == 0:
        return logits.argmax(-1)
    return draw(sampling_probabilities(logits, tau), g)  # (batch,)


def _expect_prompt(ids: Tensor, n: int) -> None:
    expect_ids("ids", ids, "batch", "target")
    if ids.shape[1] < 1:
        raise ValueError("ids: expected at least one token to go on from, got none")
    if n < 0:
        raise ValueError(f"n: expected at least 0, got {n}")


@torch.inference_mode()
def generate(
    model: nn.Module, ids: Tensor, n: int, context: int, tau: float, g: torch.Generator | None = None
) -> Tensor:
    """Return the prompt followed by n tokens, (batch, T0 + n).

    model: ids (batch, target) -> logits (batch, target, vocabulary); ids: (batch, T0), the prompt; context: the number
    of tokens, the last ones, that the model reads at most; tau: temperature, 0 for the likeliest token; g: draws.
    Raises TypeError or ValueError for a prompt without a token, an n below 0, a context below 1 or a tau below 0.
    """
    _expect_prompt(ids, n)
    if context < 1:
        raise ValueError(f"context: expected at least 1, got {context}")
    for _ in range(n):
        logits = model(ids[:, -context:])[:, -1]  # (batch, vocabulary)
        ids = torch.cat([ids, choose(logits, tau, g)[:, None]], dim=1)  # (batch, target + 1)
    return ids


@torch.inference_mode()
def generate_cached(model: GPT, ids: Tensor, n: int, tau: float, g: torch.Generator | None = None) -> Tensor:
    """Return what `generate` returns, computing each token's keys and values once.

    Prompt and answer must fit into the model's positions: beyond them the window moves, every token gets another
    position, and no cached key is valid. Raises ValueError there, and as `generate` does.
    """
    _expect_prompt(ids, n)
    if ids.shape[1] + n - 1 > model.max_length:
        raise ValueError(f"n: expected at most {model.max_length - ids.shape[1] + 1} tokens in one window, got {n}")
    cache, new = model.new_cache(), ids  # (batch, T0), then (batch, 1)
    for _ in range(n):
        new = choose(model(new, cache)[:, -1], tau, g)[:, None]  # (batch, 1)
        ids = torch.cat([ids, new], dim=1)  # (batch, target + 1)
    return ids


def residual_trace(model: GPT, ids: Tensor) -> list[Tensor]:
    """Return the residual stream, (batch, target, d_model), before the first block and after each: layers + 1 tensors.

    model: has `embed` (ids -> vectors with their positions) and `blocks`. The last norm is not part of the stream.
    """
    trace = [model.embed(ids)]
    for block in model.blocks:
        trace.append(block(trace[-1]))
    return trace


def logit_lens(model: GPT, ids: Tensor) -> Tensor:
    """Return the logits that each depth would give if the model ended there, (layers + 1, batch, target, vocabulary).

    Every entry of `residual_trace` goes through the last norm and the head (nostalgebraist 2020); the last are the
    model's own logits.
    """
    return torch.stack([model.head(model.norm(x)) for x in residual_trace(model, ids)])
