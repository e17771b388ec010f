"""The largest of a long row, found in pieces. `torch.topk` says what is computed."""

import torch
from torch import Tensor

from transformer_ref.machine import MARGIN_OF_LENGTHS, Choice, choose, speedup
from transformer_ref.shapes import is_traced

# Cells of a row in which a maximum is looked for. The work is a maximum over each row and a ranking of as many pieces
# and of `count` of them, so it is least near the root of the row's length, 50 to 200 for vocabularies, and flat there.
PIECE = 100
LENGTHS = 2_000, 4_000, 8_000, 16_000, 32_000  # tokens of a row at which the two ways are measured
ROWS, COUNT = 64, 6  # there: the rows of a dozen sentences and what a beam of 5 looks for
NEVER = 10**9  # tokens: more than any row has


def quick_top_k(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest of each row, the largest first, and their indices, as `x.topk(count)` does.

    A long row is cut into pieces. The pieces with the largest maxima hold all of the result, and a maximum takes a
    fraction of the time of a sort.
    """
    if x.shape[-1] < 2 * count * PIECE or not _is_long(x):
        return x.topk(count, dim=-1)
    return in_pieces(x, count)


def _is_long(x: Tensor) -> bool:
    """Return whether pieces are faster for rows of this length. Other devices than CPUs use `torch.topk`."""
    if x.device.type != "cpu" or is_traced():
        return False
    return x.shape[-1] >= int(top_k_length().value)


def top_k_length() -> Choice:
    """Return the row length from which on pieces are faster on this CPU."""
    return choose("top_k", torch.device("cpu"), _measured_length)


def _measured_length() -> tuple[int, str]:
    chosen, ratios = NEVER, []
    for length in LENGTHS:
        ratio = _speedup_at(length)
        ratios.append(f"{ratio:.2g} at {length:,}")
        if ratio >= MARGIN_OF_LENGTHS:
            chosen = length
            break
    return chosen, f"times as fast as torch.topk: {', '.join(ratios)}"


def _speedup_at(length: int) -> float:
    x = torch.randn(ROWS, length, generator=torch.Generator().manual_seed(1))
    return speedup(lambda: x.topk(COUNT, dim=-1).values, lambda: in_pieces(x, COUNT)[0])


def in_pieces(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return what `x.topk(count)` returns, found in pieces; x: (..., at least count * PIECE)."""
    pieces = x.unfold(-1, PIECE, PIECE)  # (..., pieces, cells)
    chosen = pieces.amax(dim=-1).topk(count, dim=-1).indices[..., None]  # (..., count, 1)
    places = chosen * PIECE + torch.arange(PIECE, device=x.device)  # (..., count, cells)
    rest = torch.arange(pieces.shape[-2] * PIECE, x.shape[-1], device=x.device)  # shorter than a piece
    places = torch.cat([places.flatten(-2), rest.expand(*x.shape[:-1], -1)], dim=-1)  # (..., candidates)
    values, order = x.gather(-1, places).topk(count, dim=-1)  # (..., count)
    return values, places.gather(-1, order)
