"""A vector for each position, added to the token at that position (chapter 07)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer_ref.config import Layout
from transformer_ref.shapes import expect_shape

BASE = 10_000  # Vaswani et al. 2017, section 3.5: wavelengths from 2 pi to 10000 * 2 pi


def sinusoidal_table(length: int, d_model: int, layout: Layout = "interleaved") -> Tensor:
    """Return a sine and a cosine of each position for each of d_model / 2 frequencies.

        PE(pos, 2i)   = sin( pos / 10000^(2i / d_model) )
        PE(pos, 2i+1) = cos( pos / 10000^(2i / d_model) )

    layout: "interleaved" as in the formula (section 3.5), or "concatenated", all sines before all cosines,
        as some pretrained models have it: the same numbers in another order.
    An odd d_model has one sine more than cosines. Returns (length, d_model) in the default dtype; the
    angles are computed in float64, where large positions keep their fraction of a turn.
    """
    position = torch.arange(length, dtype=torch.float64)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position[:, None] / BASE ** (two_i / d_model)  # (length, sines)
    sine, cosine = angle.sin(), angle[:, : d_model // 2].cos()
    table = torch.cat([sine, cosine], dim=-1)  # (length, d_model)
    if layout == "interleaved":
        table = torch.empty_like(table)
        table[:, 0::2], table[:, 1::2] = sine, cosine
    elif layout != "concatenated":
        raise ValueError(f'layout: expected "interleaved" or "concatenated", got "{layout}"')
    return table.to(torch.get_default_dtype())


class SinusoidalPositions(nn.Module):
    """Adds the sinusoidal table, which is not learned and not saved."""

    def __init__(self, max_length: int, d_model: int, layout: Layout = "interleaved") -> None:
        super().__init__()
        self.layout = layout
        self.register_buffer("table", sinusoidal_table(max_length, d_model, layout), persistent=False)

    def _apply(self, *arguments, **named) -> nn.Module:
        """Move or convert the module, or allocate it from the meta device, then compute the table again."""
        super()._apply(*arguments, **named)
        if not self.table.is_meta:
            self.table.copy_(sinusoidal_table(*self.table.shape, self.layout))
        return self

    def forward(self, x: Tensor, positions: Sequence[int] | int = 0) -> Tensor:
        """Return x, (batch, length, d_model), plus the table's rows. positions: one per token, or the first."""
        return x + _rows(self.table, x, positions)


class LearnedPositions(nn.Module):
    """Adds one learned vector per position; that of a position never seen in training is not trained."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Tensor, positions: Sequence[int] | int = 0) -> Tensor:
        """Return x, (batch, length, d_model), plus the table's rows. positions: one per token, or the first."""
        return x + _rows(self.table, x, positions)


def _rows(table: Tensor, x: Tensor, positions: Sequence[int] | int) -> Tensor:
    expect_shape("x", x, "batch", "length", table.shape[1])
    if isinstance(positions, int):
        first, end = positions, positions + x.shape[1]
    else:
        first, end = min(positions, default=0), max(positions, default=0) + 1
        if len(positions) != x.shape[1]:
            raise ValueError(f"positions: expected one for each of {x.shape[1]} tokens, got {len(positions)}")
    if first < 0:
        raise ValueError(f"positions: expected none below 0, got {first}")
    if end > table.shape[0]:
        raise ValueError(f"length: expected at most {table.shape[0]} positions, got {end}")
    if isinstance(positions, int):
        return table[positions:end]  # (length, d_model)
    # not table[positions]: on a GPU an index by a list is a copy that waits for all kernels before it
    return torch.stack([table[position] for position in positions]) if positions else table[:0]  # (length, d_model)
