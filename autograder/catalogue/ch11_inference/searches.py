"""Beam search as sound programs differ in it, and what it searches: where they agree is what 11.3 grades.

They differ in whether a finished hypothesis frees its place in the beam, in when they stop, and in whether hypotheses
without an end come back together with finished ones.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

SLACK = 2  # tokens beyond max_length that an answer may pass before it is stopped with an error
Found = list[tuple[list[int], float]]


class Language:
    """Log-probabilities of the next token after a prefix: from a table, else drawn for each prefix. after: a prefix
    without bos -> probabilities; sharp: the spread of drawn logits; likely_end: added to the logit of eos. After eos,
    eos is most probable. It accepts at most max_length tokens.
    """

    def __init__(
        self, vocabulary: int, bos: int, eos: int, max_length: int, seed: int = 0,
        after: dict[tuple[int, ...], list[float]] | None = None, sharp: float = 1.0, likely_end: float = 0.0,
    ) -> None:  # fmt: skip
        self.vocabulary, self.bos, self.eos, self.max_length = vocabulary, bos, eos, max_length
        self._seed, self._after, self._sharp, self._likely_end = seed, after or {}, sharp, likely_end
        self._known: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, prefixes: Tensor) -> Tensor:
        """Prefixes (n, t), bos first -> log-probabilities (n, vocabulary)."""
        if not isinstance(prefixes, Tensor) or prefixes.ndim != 2 or prefixes.is_floating_point():
            form = f"shape {tuple(prefixes.shape)}" if isinstance(prefixes, Tensor) else type(prefixes).__name__
            raise ValueError(f"prefixes: expected a tensor of ids (n, t), got {form}")
        n, t = prefixes.shape
        if t > self.max_length + SLACK:
            raise ValueError(f"prefixes: {t} tokens, though max_len is {self.max_length}: it does not stop")
        if n == 0 or t == 0:
            raise ValueError(f"prefixes: expected at least one, which begins with bos, got shape {(n, t)}")
        return torch.stack([self._next(tuple(row)) for row in prefixes.tolist()])

    def _next(self, prefix: tuple[int, ...]) -> Tensor:
        if prefix not in self._known:
            self._known[prefix] = self._log_probabilities(prefix)
        return self._known[prefix]

    def _log_probabilities(self, prefix: tuple[int, ...]) -> Tensor:
        if prefix[0] == self.bos and prefix[1:] in self._after:
            return torch.tensor(self._after[prefix[1:]]).log()
        g = torch.Generator().manual_seed(hash((self._seed, *prefix)) % (1 << 40))  # of integers: the same everywhere
        logits = torch.randn(self.vocabulary, generator=g) * self._sharp
        logits[self.eos] += 9.0 if self.eos in prefix[1:] else self._likely_end
        logits[self.bos] -= 20.0
        return logits.log_softmax(dim=-1)


def search(
    step: Callable[[Tensor], Tensor], k: int, max_length: int, alpha: float, bos: int, eos: int,
    refill: bool = False, enough: float = math.inf, open_too: bool = False, frozen: bool = False,
) -> Found:  # fmt: skip
    """The finished hypotheses, the best first; those cut at max_length where none is finished.

    refill: a finished hypothesis frees its place in the beam. enough: stop when this many are finished. open_too: those
    without an end come back too, behind the others. frozen: a finished one keeps its place only while it is among the k
    most probable.
    """
    live: list[tuple[list[int], float]] = [([bos], 0.0)]
    done: list[tuple[list[int], float]] = []
    for _ in range(max_length):
        table = step(torch.tensor([ids for ids, _ in live])).double().tolist()
        options = [
            ([*ids, token], log_p + more)
            for (ids, log_p), row in zip(live, table, strict=True)
            for token, more in enumerate(row)
            if more > -math.inf
        ]
        if frozen:
            best = sorted([*done, *options], key=lambda one: -one[1])[:k]
            done, live = [one for one in best if one[0][-1] == eos], [one for one in best if one[0][-1] != eos]
        else:
            best = sorted(options, key=lambda one: -one[1])[:k]
            done += [one for one in best if one[0][-1] == eos]
            if refill:
                best = sorted((one for one in options if one[0][-1] != eos), key=lambda one: -one[1])[:k]
            live = [one for one in best if one[0][-1] != eos]
        if not live or len(done) >= enough:
            break
    scored = _scored(done, alpha)
    return [*scored, *(_scored(live, alpha) if open_too or not scored else [])][:k]


def without_competition(
    step: Callable[[Tensor], Tensor], k: int, max_length: int, alpha: float, bos: int, eos: int
) -> Found:
    """A wrong search, in which the best k continuations of each hypothesis stay, so that the beam grows."""
    live: Found = [([bos], 0.0)]
    done: Found = []
    for _ in range(max_length):
        table = step(torch.tensor([ids for ids, _ in live])).double().tolist()
        best = [
            ([*ids, token], log_p + row[token])
            for (ids, log_p), row in zip(live, table, strict=True)
            for token in sorted(range(len(row)), key=lambda token: -row[token])[:k]
        ]
        done += [one for one in best if one[0][-1] == eos]
        live = [one for one in best if one[0][-1] != eos]
        if not live:
            break
    return _scored(done or live, alpha)[:k]


def taken_apart(
    step: Callable[[Tensor], Tensor], k: int, max_length: int, alpha: float, bos: int, eos: int,
    parts: Callable[[int, int, int], tuple[int, int]],
) -> Found:  # fmt: skip
    """A search over the flattened table (n, V). parts: (index, n, V) -> the hypothesis and the word."""
    live: Found = [([bos], 0.0)]
    done: Found = []
    for _ in range(max_length):
        table = step(torch.tensor([ids for ids, _ in live])).double()
        sums = (torch.tensor([log_p for _, log_p in live], dtype=torch.float64)[:, None] + table).flatten()
        best = sums.topk(min(k, len(sums)))
        chosen = [parts(index, *table.shape) for index in best.indices.tolist()]
        sums_kept = best.values.tolist()
        grown = [([*live[row][0], word], log_p) for (row, word), log_p in zip(chosen, sums_kept, strict=True)]
        done += [one for one in grown if one[0][-1] == eos]
        live = [one for one in grown if one[0][-1] != eos]
        if not live:
            break
    return _scored(done or live, alpha)[:k]


def _scored(hypotheses: Found, alpha: float) -> Found:
    """The best first, by log p over a power of the number of generated tokens, eos among them."""
    scored = [(ids, log_p / (len(ids) - 1) ** alpha) for ids, log_p in hypotheses]
    return sorted(scored, key=lambda one: -one[1])


def agreed(step: Callable[[Tensor], Tensor], k: int, max_length: int, alpha: float, bos: int, eos: int) -> int:
    """The number of best hypotheses on which all correct searches agree."""
    arguments = step, k, max_length, alpha, bos, eos
    first, *others = (
        search(*arguments),
        search(*arguments, enough=k),
        search(*arguments, refill=True, enough=k),
        search(*arguments, refill=True, open_too=True),
        search(*arguments, open_too=True),
        search(*arguments, frozen=True),
    )
    common = 0
    for place, (ids, _) in enumerate(first):
        if any(len(other) <= place or other[place][0] != ids for other in others):
            break
        common += 1
    return common


def clear(found: Found, count: int) -> bool:
    """Whether the scores of the first `count` and the next one differ by more than rounding."""
    scores = [score for _, score in found[: count + 1]]
    return all(one - other > 1e-3 for one, other in pairwise(scores))
