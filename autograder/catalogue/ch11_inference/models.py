"""Models that chapter 11's exercises hand over: one that knows its answers by heart, and a small decoder.

Neither was trained. The decoder's classes are in the notebook word for word.
"""

# A notebook's class names its parameters in a loop, and so without types.
# pyright: reportOperatorIssue=false

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SLACK = 2  # tokens beyond max_length that an answer may pass before it is stopped with an error


class Script(nn.Module):
    """A model with a fixed translation for each source. answers: a source without its pads -> the tokens after bos,
    including eos if it ends. For a prefix that is not the beginning of an answer, it predicts other words, never eos.
    In training mode it drops some words, as with dropout. It accepts at most max_length tokens.
    """

    def __init__(self, answers: dict[tuple[int, ...], list[int]], vocabulary: int, bos: int, eos: int, pad: int,
                 max_length: int, training: bool = False) -> None:  # fmt: skip
        super().__init__()
        self.answers, self.vocabulary, self.max_length = answers, vocabulary, max_length
        self.bos, self.eos, self.pad = bos, eos, pad
        self.words = [token for token in range(vocabulary) if token not in (bos, eos, pad)]
        self.train(training)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits (B, T, vocabulary) of the token after each of the T inputs."""
        for name, ids in (("src", src), ("tgt_in", tgt_in)):
            if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.is_floating_point():
                raise ValueError(f"{name}: expected ids (B, T), got {_form(ids)}")
        if len(src) != len(tgt_in):
            raise ValueError(f"tgt_in: expected {len(src)} rows, one for each source, got {len(tgt_in)}")
        if tgt_in.shape[1] > self.max_length + SLACK:
            raise ValueError(f"tgt_in: {tgt_in.shape[1]} tokens, though max_len is {self.max_length}: it does not stop")
        rows = [self._row(source, target) for source, target in zip(src.tolist(), tgt_in.tolist(), strict=True)]
        return torch.stack(rows)  # (B, T, vocabulary)

    def _row(self, source: list[int], target: list[int]) -> Tensor:
        source = [token for token in source if token != self.pad]
        script = [self.bos, *self.answers.get(tuple(source), ())]
        rows = []
        for place in range(1, len(target) + 1):
            seed = sum((i + 2) * (token + 1) for i, token in enumerate([*source, *target[:place]]))
            logits = torch.cos(torch.arange(self.vocabulary) * 1.7 + seed)
            best = self.words[seed % len(self.words)]
            if target[:place] == script[:place] and place < len(script):
                forgotten = self.training and place % 2 == 0
                best = self.words[(script[place] + 1) % len(self.words)] if forgotten else script[place]
            logits[[self.eos, self.pad]] -= 4.0
            logits[best] = 6.0 - place / 7 + math.sin(seed) / 2
            rows.append(logits)
        return torch.stack(rows)


def _form(ids: object) -> str:
    if not isinstance(ids, Tensor):
        return type(ids).__name__
    return f"{str(ids.dtype)[6:] if ids.is_floating_point() else 'ids'} of shape {tuple(ids.shape)}"


class SmallLayer(nn.Module):
    """A layer of a decoder, with one head. Self-attention is not in it: SmallDecoder.forward computes it."""

    allowed_parts = ("query", "key", "value", "rest")  # for the check: the parts that decode_step may use

    def __init__(self, D, g):
        super().__init__()
        for name in ("W_q", "W_k", "W_v", "W_o", "S_q", "S_k", "S_v", "S_o", "F_1", "F_2"):
            setattr(self, name, nn.Parameter(torch.randn(D, D, generator=g) / D**0.5))

    def query(self, x):  # x: (B, c, D), like all that follows
        return x @ self.W_q

    def key(self, x):
        return x @ self.W_k

    def value(self, x):
        return x @ self.W_v

    def source(self, memory):
        """Keys and values of the source (B, S, D): they never change, so they are computed once."""
        return memory @ self.S_k, memory @ self.S_v

    def rest(self, x, mixed, cross):
        """The part of the layer after self-attention: all (B, c, D); cross: source(memory)."""
        x = F.layer_norm(x + mixed @ self.W_o, x.shape[-1:])
        K, V = cross
        weights = torch.softmax(x @ self.S_q @ K.transpose(-2, -1) / x.shape[-1] ** 0.5, dim=-1)  # (B, c, S)
        x = F.layer_norm(x + weights @ V @ self.S_o, x.shape[-1:])
        return F.layer_norm(x + torch.relu(x @ self.F_1) @ self.F_2, x.shape[-1:])


class SmallDecoder(nn.Module):
    """A decoder of two layers with random weights and the complete computation."""

    allowed_parts = ("embed", "layers", "head")  # for the check: the parts that decode_step may use

    def __init__(self, vocabulary, D, g):
        super().__init__()
        self.token_embedding = nn.Parameter(torch.randn(vocabulary, D, generator=g))
        self.position_embedding = nn.Parameter(torch.randn(64, D, generator=g))
        self.layers = nn.ModuleList(SmallLayer(D, g) for _ in range(2))
        self.output = nn.Parameter(torch.randn(D, vocabulary, generator=g))

    def embed(self, ids, positions):
        """Words and their positions: ids (B, c) and positions (c,), counted from 0 -> (B, c, D)."""
        return self.token_embedding[ids] + self.position_embedding[positions]

    def head(self, x):
        """Logits: (B, c, D) -> (B, c, V)."""
        return x @ self.output

    def new_cache(self, memory):
        """The cache before the first word. memory: the encoder's output, (B, S, D)."""
        none = memory[:, :0]  # (B, 0, D)
        return [(none, none, layer.source(memory)) for layer in self.layers]

    def forward(self, ids, memory):
        """The forward pass without a cache: ids (B, T) -> logits (B, T, V)."""
        T = ids.shape[1]
        x = self.embed(ids, torch.arange(T))
        later = torch.ones(T, T, dtype=torch.bool).triu(1)
        for layer in self.layers:
            scores = layer.query(x) @ layer.key(x).transpose(-2, -1) / x.shape[-1] ** 0.5  # (B, T, T)
            weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
            x = layer.rest(x, weights @ layer.value(x), layer.source(memory))
        return self.head(x)
