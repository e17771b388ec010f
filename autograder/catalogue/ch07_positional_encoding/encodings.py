"""Encodings of positions that 07.3 passes to an answer: some that meet all of its criteria, and some that do not."""

from collections.abc import Callable
from functools import wraps

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.model.positional_encoding import sinusoidal_table

Encoding = Callable[[int, int], Tensor]
MOST, WIDEST = 16_000_000, 10_000  # numbers of a table, and of its rows, that an encoding makes


def sized(fn: Encoding) -> Encoding:
    """The encoding, which refuses to make a table that is too large: the check calls it for a learner's code."""

    @wraps(fn)
    def limited(T: int, d: int) -> Tensor:
        if not (0 <= T and 0 <= d <= WIDEST and T * d <= MOST):
            raise ValueError(
                f"fn(T, d): expected at most {MOST:,} numbers and d up to {WIDEST:,}, got T = {T}, d = {d}"
            )
        return fn(T, d)

    return limited


@sized
def numbered(T: int, d: int) -> Tensor:
    """The position itself, in every column."""
    return torch.arange(T).float()[:, None].expand(T, d).clone()


@sized
def share_of_the_sentence(T: int, d: int) -> Tensor:
    """The position divided by the length: from 0 to 1 in every sentence."""
    return numbered(T, d) / max(T - 1, 1)


@sized
def sinusoid(T: int, d: int) -> Tensor:
    return sinusoidal_table(T, d)


@sized
def weekdays(T: int, d: int) -> Tensor:
    """A clock with one hand and period 7: position 7 equals position 0."""
    angle = (torch.arange(T) % 7).double()[:, None] * 2 * torch.pi / 7
    return torch.where(torch.arange(d) % 2 == 0, angle.sin(), angle.cos()).float()


@sized
def loud_weekdays(T: int, d: int) -> Tensor:
    """Bounded, though far from 1."""
    return 50 * weekdays(T, d)


@sized
def nearly_weekdays(T: int, d: int) -> Tensor:
    """Position 7 equals position 0, except for the last digits."""
    return weekdays(T, d).double() + 1e-8 * torch.arange(T)[:, None]


@sized
def far_and_late(T: int, d: int) -> Tensor:
    """One-hot rows: equal rows are at distance 0, all others at 1.414. The first ten repeat after five positions,
    later ones after six: distances differ from start to start only for gaps of 5 and more, from the fourth start on.
    """
    places = torch.arange(T)
    column = torch.where(places < 10, places % 5, (places - 11) % 6)
    return F.pad(torch.eye(6)[column], (0, d - 6))


@sized
def one_number_grows(T: int, d: int) -> Tensor:
    """Ones, except for the last number of the row in the middle: at T = 10,000 it is 20, at T = 1,000 it is 2."""
    table = torch.ones(T, d)
    table[T // 2, -1] = T / 500
    return table


@sized
def root(T: int, d: int) -> Tensor:
    """Unbounded, though slowly growing; distances shrink."""
    return numbered(T, d).sqrt()


@sized
def downward(T: int, d: int) -> Tensor:
    """The negative position: its largest number is 0, and it is unbounded."""
    return -numbered(T, d)


@sized
def one_row_grows(T: int, d: int) -> Tensor:
    """Ones, except for the last row: its size is a tenth of the length."""
    return torch.cat([torch.ones(T - 1, d), torch.full((1, d), T / 10)])


@sized
def share_beyond_ten(T: int, d: int) -> Tensor:
    """The share of the sentence, where it has more than ten words; a ninth of the position in a shorter one."""
    return numbered(T, d) / max(T - 1, 9)


@sized
def laps(T: int, d: int) -> Tensor:
    """A clock with one hand and period 49: among the first 50 rows, the last equals the first."""
    angle = (torch.arange(T) % 49).double()[:, None] * 2 * torch.pi / 49
    return torch.where(torch.arange(d) % 2 == 0, angle.sin(), angle.cos())


@sized
def small_step(T: int, d: int) -> Tensor:
    """Rows that differ by 0.000007 and more, and distances that differ by 0.0013 or not at all: their standard
    deviation is below 0.001 for each gap. The distances are the same for every d."""
    places = numbered(T, d).double()
    return (6e-5 * places + 1.3e-3 * (places >= 2)) / d**0.5


@sized
def logarithm(T: int, d: int) -> Tensor:
    """At T = 10,000 it is 3.8 times as large as at T = 10. Every row has the sum 0."""
    return numbered(T, d).log1p() * torch.where(torch.arange(d) % 2 == 0, 1, -1)


@sized
def levels_off(T: int, d: int) -> Tensor:
    """At T = 10,000 it is 2.7 times as large as at T = 10, far from 1 and below 0."""
    return -50 * numbered(T, d) / (numbered(T, d) + 15)


@sized
def constant(T: int, d: int) -> Tensor:
    return torch.ones(T, d)


def random_table(seed: int) -> Encoding:
    """A different table at each call, except for its first row, without equal numbers in a column."""
    generator = torch.Generator().manual_seed(seed)

    @sized
    def fn(T: int, d: int) -> Tensor:
        places = torch.stack([torch.randperm(T, generator=generator) for _ in range(d)], dim=1)
        table = (places + 0.5 * torch.rand(T, d, generator=generator)) / T
        table[0] = -0.1
        return table

    return fn
