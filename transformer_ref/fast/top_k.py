"""The largest of a long row, found in pieces. `torch.topk` says what is computed."""

import torch
from torch import Tensor

PIECE = 100  # cells of a row in which a maximum is looked for


def quick_top_k(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest of each row, the largest first, and where they stand, as `x.topk(count)` does.

    A long row is cut into pieces. The pieces with the largest maxima hold all that is wanted, and a maximum is found
    in a fraction of the time that a ranking takes.
    """
    if x.shape[-1] < 2 * count * PIECE:
        return x.topk(count, dim=-1)
    pieces = x.unfold(-1, PIECE, PIECE)  # (..., pieces, cells)
    chosen = pieces.amax(dim=-1).topk(count, dim=-1).indices[..., None]  # (..., count, 1)
    places = chosen * PIECE + torch.arange(PIECE, device=x.device)  # (..., count, cells)
    rest = torch.arange(pieces.shape[-2] * PIECE, x.shape[-1], device=x.device)  # shorter than a piece
    places = torch.cat([places.flatten(-2), rest.expand(*x.shape[:-1], -1)], dim=-1)  # (..., candidates)
    values, order = x.gather(-1, places).topk(count, dim=-1)  # (..., count)
    return values, places.gather(-1, order)
