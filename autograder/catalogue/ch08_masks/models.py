"""Small models of every kind, sound ones and ones that leak the future: what a leak test is tried on.

Each maps ids (B, T) to logits (B, T, V). Their weights are drawn once; none of them was trained.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

V, WIDTH = 11, 8


def tokens(ids: Tensor, vocabulary: int = V) -> Tensor:
    """The ids. Raises IndexError for one outside of the vocabulary; an index of -1 would take the last row."""
    for id in ids.flatten().tolist():
        if not 0 <= id < vocabulary:
            raise IndexError(f"expected ids from 0 to {vocabulary - 1}, got {id}")
    return ids


class Reader(nn.Module):
    """Embeds the ids, combines positions with `mix`, and scores the vocabulary.

    mix: (B, T, WIDTH) -> the same; bare: without the residual; even: the scores of a position have a constant sum;
    marked: feature 0 is 1 for the highest id and 0 for all others, and decides one score of the vocabulary only.
    """

    def __init__(self, mix: Callable[[Tensor], Tensor], dropout: float = 0.0, training: bool = False,
                 bare: bool = False, even: bool = False, marked: bool = False) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(7)
        self.table = torch.randn(V, WIDTH, generator=g)
        self.places = torch.randn(64, WIDTH, generator=g)
        self.scores = torch.randn(WIDTH, V, generator=g)
        if even:
            self.scores -= self.scores.mean(dim=1, keepdim=True)
        if marked:
            self.table[:, 0], self.scores[0] = 0.0, 0.0
            self.table[-1, 0] = self.scores[0, 0] = 1.0
        self.mix, self.dropout, self.bare, self.noise = mix, dropout, bare, torch.Generator().manual_seed(9)
        self.train(training)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B, T, V)."""
        x = self.table[tokens(ids)] + self.places[: ids.shape[1]]
        x = self.mix(x) if self.bare else self.mix(x) + x
        if self.training and self.dropout:
            x = x * (torch.rand(x.shape, generator=self.noise) >= self.dropout)
        return x @ self.scores


class Count(nn.Module):
    """Every score at position 0 is `sign` if no token of the sentence from `first` on is 0; all others are 0.

    The vocabulary has two tokens, so that one drawn at random is often the one that it replaces. missing: whether
    a sentence that ends before `first` counts as one without a 0 there.
    """

    VOCABULARY = 2

    def __init__(self, sign: int, first: int, missing: bool) -> None:
        super().__init__()
        self.sign, self.first, self.missing = sign, first, missing

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B, T, V)."""
        scores = torch.zeros(*ids.shape, self.VOCABULARY)
        later = tokens(ids, self.VOCABULARY)[:, self.first :] != 0
        changed = later.all(dim=1) if later.shape[1] else torch.full((len(ids),), self.missing)
        scores[:, 0] = self.sign * changed[:, None]
        return scores


def attention(allowed: Callable[[Tensor, Tensor], Tensor], hide: bool = True, axis: int = -1) -> Callable:
    """One head. allowed: (query position, key position) -> whether it may attend; hide: before the softmax, or
    after."""
    g = torch.Generator().manual_seed(8)
    query, key, value = (torch.randn(WIDTH, WIDTH, generator=g) * 0.3 for _ in range(3))

    def mix(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        mask = allowed(places[:, None], places[None, :])
        scores = (x @ query) @ (x @ key).transpose(-2, -1) / WIDTH**0.5
        if hide:
            weights = torch.softmax(scores.masked_fill(~mask, -1e9), dim=axis)
        else:
            weights = torch.softmax(scores, dim=axis) * mask
        return 3 * weights @ (x @ value)

    return mix


def past(query: Tensor, key: Tensor) -> Tensor:
    return key <= query


def running_mean(x: Tensor) -> Tensor:
    return 3 * x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]


def by_fourier(x: Tensor) -> Tensor:
    """A causal convolution by FFT: causal up to rounding."""
    T = x.shape[1]
    kernel = 0.5 ** torch.arange(T)
    spectrum = torch.fft.rfft(x, 2 * T, dim=1) * torch.fft.rfft(kernel, 2 * T)[:, None]
    return torch.fft.irfft(spectrum, 2 * T, dim=1)[:, :T]


def recurrent(x: Tensor) -> Tensor:
    state, states = torch.zeros_like(x[:, 0]), []
    for place in range(x.shape[1]):
        state = torch.tanh(x[:, place] + 0.5 * state.roll(1, dims=-1))
        states.append(state)
    return torch.stack(states, dim=1)


def norm_over_time(x: Tensor) -> Tensor:
    return (x - x.mean(dim=1, keepdim=True)) / (x.std(dim=1, keepdim=True, correction=0) + 1e-5)


def backwards(x: Tensor) -> Tensor:
    return recurrent(x.flip(1)).flip(1)


def before_only(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(x[:, :1]), recurrent(x)[:, :-1]], dim=1)


def after_only(x: Tensor) -> Tensor:
    return torch.cat([backwards(x)[:, 1:], torch.zeros_like(x[:, :1])], dim=1)


def heads_by_view(x: Tensor) -> Tensor:
    """Two heads split by `view`, so that a head is a piece of the sentence, and positions are mixed."""
    B, T, D = x.shape
    heads = attention(past)(x).reshape(B, 2, T, D // 2)
    return heads.transpose(1, 2).reshape(B, T, D)


def faint(x: Tensor) -> Tensor:
    """Causal except for a trace of one feature of the last word, in the last sentence, at the position before it."""
    y = running_mean(x)
    y[-1, -2, 0] += 0.02 * x[-1, -1, 0]
    return y


def two_on(x: Tensor) -> Tensor:
    """Each position reads the one after the next, if there is one."""
    return running_mean(x) + 3 * torch.cat([x[:, 2:], torch.zeros_like(x[:, :2])], dim=1)[:, : x.shape[1]]


def last_place_only(x: Tensor) -> Tensor:
    """Causal except at the position before the last, which sees the last one."""
    y = running_mean(x)
    return torch.cat([y[:, :-2], y[:, -2:-1] + 3 * x[:, -1:], y[:, -1:]], dim=1) if x.shape[1] > 1 else y


def last_sentence_only(x: Tensor) -> Tensor:
    """Causal except that position 0 of the batch's last sentence also reads the last word."""
    y = running_mean(x)
    y[-1, 0] += 3 * x[-1, -1]
    return y


def first_sentence_only(x: Tensor) -> Tensor:
    """The same in the batch's first sentence."""
    return last_sentence_only(x.flip(0)).flip(0)


def reads_the_last(x: Tensor) -> Tensor:
    """Each position also reads the last one."""
    return running_mean(x) + 3 * x[:, -1:]
