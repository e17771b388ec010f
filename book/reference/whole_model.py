"""The whole Transformer in one file: model, loss, greedy decoding. It needs only torch.

B sentences, S source tokens, T target tokens, d = d_model. A mask is True where a
query may attend to a key. Parameters have the names and shapes of the package's.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, BOS, EOS = 0, 1, 2


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """softmax( q k^T / sqrt(d_head) ) v: (..., queries, d_head), (..., keys, d_head)."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., queries, keys)
    scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)  # each query shares out 1 over its keys
    return weights @ v


class MultiHeadAttention(nn.Module):
    """Attention in several heads, each over its own d / heads features."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.v_proj, self.out_proj = nn.Linear(d, d), nn.Linear(d, d)

    def split(self, x: Tensor) -> Tensor:
        pieces = x.unflatten(-1, (self.heads, -1))  # (B, length, heads, d / heads)
        return pieces.transpose(1, 2)  # (B, heads, length, d / heads)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """x gives the queries, memory the keys and values; both may be the same."""
        q, k, v = (
            self.q_proj(x),
            self.k_proj(memory),
            self.v_proj(memory),
        )
        # (B, heads, queries, d / heads)
        mixed = attention(self.split(q), self.split(k), self.split(v), mask)
        return self.out_proj(mixed.transpose(1, 2).flatten(-2))  # (B, queries, d)


class FeedForward(nn.Module):
    """Two linear maps with a ReLU in between, the same at every position."""

    def __init__(self, d: int, d_ff: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d, d_ff), nn.Linear(d_ff, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.fc1(x).relu())


class Residual(nn.Module):
    """x + sublayer(x), normalized after the sum (the paper) or before the sub-layer."""

    def __init__(self, d: int, dropout: float, norm_first: bool) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(d), nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    def __init__(
        self, d: int, heads: int, d_ff: int, dropout: float, norm_first: bool
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d, heads)
        self.feed_forward = FeedForward(d, d_ff)
        self.self_attention_residual = Residual(d, dropout, norm_first)
        self.feed_forward_residual = Residual(d, dropout, norm_first)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.self_attention_residual(x, lambda x: self.self_attention(x, x, mask))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(EncoderLayer):
    """An encoder layer with cross-attention in the middle."""

    def __init__(
        self, d: int, heads: int, d_ff: int, dropout: float, norm_first: bool
    ) -> None:
        super().__init__(d, heads, d_ff, dropout, norm_first)
        self.cross_attention = MultiHeadAttention(d, heads)
        self.cross_attention_residual = Residual(d, dropout, norm_first)

    def forward(
        self, x: Tensor, mask: Tensor, memory: Tensor, source_mask: Tensor
    ) -> Tensor:
        x = self.self_attention_residual(x, lambda x: self.self_attention(x, x, mask))
        look = lambda x: self.cross_attention(x, memory, source_mask)  # noqa: E731
        x = self.cross_attention_residual(x, look)
        return self.feed_forward_residual(x, self.feed_forward)


class Stack(nn.Module):
    """Layers and, with `norm_first`, a last norm."""

    def __init__(
        self,
        kind: type,
        layers: int,
        d: int,
        heads: int,
        d_ff: int,
        dropout: float,
        norm_first: bool,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            kind(d, heads, d_ff, dropout, norm_first) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d) if norm_first else nn.Identity()

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, *others)
        return self.norm(x)


class Embedding(nn.Module):
    """A vector for each id, times sqrt(d), plus the sinusoids of its position."""

    def __init__(self, vocabulary: int, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocabulary, d) / math.sqrt(d))

    def forward(self, ids: Tensor) -> Tensor:
        length, d = ids.shape[1], self.weight.shape[1]
        wavelength = 10_000 ** (torch.arange(0, d, 2).double() / d)  # (d / 2,)
        angle = torch.arange(length)[:, None] / wavelength  # (length, d / 2)
        positions = torch.stack(
            [angle.sin(), angle.cos()], dim=-1
        )  # (length, d / 2, 2)
        positions = positions.flatten(1)[:, :d]  # (length, d): sine, cosine, sine, ...
        return self.weight[ids] * math.sqrt(d) + positions.to(self.weight)


class Transformer(nn.Module):
    """Source ids (B, S) and target ids (B, T) become logits (B, T, vocabulary).

    Vaswani et al. 2017, figure 1.
    """

    def __init__(
        self, vocabulary: int, d: int = 512, heads: int = 8, layers: int = 6,
        d_ff: int = 2048, dropout: float = 0.1, norm_first: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.source_embedding = Embedding(vocabulary, d)
        self.target_embedding = Embedding(vocabulary, d)
        self.dropout = nn.Dropout(dropout)
        self.encoder = Stack(EncoderLayer, layers, d, heads, d_ff, dropout, norm_first)
        self.decoder = Stack(DecoderLayer, layers, d, heads, d_ff, dropout, norm_first)
        self.output = nn.Linear(d, vocabulary, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_mask = (source != PAD)[:, None, None]  # (B, 1, 1, S): not to padding
        earlier = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool)
        causal = earlier.tril().to(target.device)  # (T, T): not to later tokens
        x = self.dropout(self.source_embedding(source))  # (B, S, d)
        memory = self.encoder(x, source_mask)  # (B, S, d)
        x = self.dropout(self.target_embedding(target))  # (B, T, d)
        return self.output(self.decoder(x, causal, memory, source_mask))


def loss(model: Transformer, source: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of labels (B, T), each predicted from those before it."""
    begins = labels.new_full((len(labels), 1), BOS)
    shifted = torch.cat([begins, labels[:, :-1]], dim=1)  # teacher forcing
    logits = model(source, shifted).flatten(0, 1)  # (B * T, vocabulary)
    return F.cross_entropy(logits, labels.flatten(), ignore_index=PAD)


@torch.inference_mode()
def greedy(model: Transformer, source: Tensor, max_length: int) -> Tensor:
    """Greedy decoding: ids (B, up to 1 + max_length)."""
    ids = source.new_full((len(source), 1), BOS)
    while ids.shape[1] <= max_length and not (ids == EOS).any(dim=1).all():
        logits = model(source, ids)[:, -1]  # (B, vocabulary), of the last position
        logits[:, PAD] = -torch.inf  # padding is not a word
        best = logits.argmax(dim=-1).masked_fill((ids == EOS).any(dim=1), PAD)
        ids = torch.cat([ids, best[:, None]], dim=1)
    return ids
