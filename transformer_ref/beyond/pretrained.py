"""Pretraining and what is made of it: hidden words, one vector a sentence, frozen parts, foreign weights (chapter 15).

Devlin et al. 2019, "BERT", sections 3.1 and A.1, for the hidden words; names and formats of weights are nobody's theory.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from transformer_ref.shapes import expect_ids, expect_shape

IGNORED = -100  # a label that no loss counts, as torch's cross-entropy has it
HIDDEN, ANOTHER = 0.8, 0.1  # of the chosen tokens; the rest stay as they are (Devlin et al. 2019, section 3.1)
How = Literal["mean", "cls", "max"]


class Masked(NamedTuple):
    """A batch whose chosen tokens are to be guessed."""

    inputs: Tensor  # (batch, length), what the model reads
    labels: Tensor  # (batch, length), the token where it was chosen, else IGNORED


def mlm_mask(
    ids: Tensor, p: float, g: torch.Generator, mask_id: int, V: int, specials: Sequence[int]
) -> Masked:
    """Return what a masked language model reads, and what it has to say (Devlin et al. 2019, section 3.1).

    ids: (batch, length); p: each token's own chance to be chosen, from 0 to 1; g: draws.
    mask_id: stands in place of 80 % of the chosen tokens; 10 % become any id of the V, 10 % stay.
    specials: ids that are never chosen, such as padding.
    Raises ValueError when p is no probability, TypeError when ids are no integers.
    """
    expect_ids("ids", ids, "batch", "length")
    if not 0 <= p <= 1:
        raise ValueError(f"p: expected a probability from 0 to 1, got {p}")
    ordinary = ~torch.isin(ids, torch.tensor(list(specials), dtype=ids.dtype, device=ids.device))
    chosen = (torch.rand(ids.shape, generator=g, device=ids.device) < p) & ordinary  # (batch, length)
    labels = ids.masked_fill(~chosen, IGNORED)
    fate = torch.rand(ids.shape, generator=g, device=ids.device)  # (batch, length)
    others = torch.randint(V, ids.shape, generator=g, device=ids.device, dtype=ids.dtype)
    inputs = ids.masked_fill(chosen & (fate < HIDDEN), mask_id)
    replaced = chosen & (fate >= HIDDEN) & (fate < HIDDEN + ANOTHER)
    return Masked(torch.where(replaced, others, inputs), labels)


def pool(h: Tensor, mask: Tensor, how: How) -> Tensor:
    """Return one vector for each sentence.

    h: (batch, length, d_model); mask: boolean (batch, length), True at real tokens, at least one a row.
    how: "mean" of the real tokens, their "max" feature by feature, or "cls", the first token's vector.
    Returns (batch, d_model). Raises ValueError for another word, or a shape that does not fit.
    """
    expect_shape("h", h, "batch", "length", "d_model")
    expect_shape("mask", mask, *h.shape[:2])
    if how not in get_args(How):
        raise ValueError(f"how: expected one of {', '.join(get_args(How))}, got {how!r}")
    if how == "cls":
        return h[:, 0]  # (batch, d_model)
    real = mask[..., None]  # (batch, length, 1)
    if how == "max":
        return h.masked_fill(~real, -torch.inf).amax(dim=1)  # (batch, d_model)
    return h.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1)  # (batch, d_model)


def freeze_except(model: nn.Module, names: Iterable[str]) -> list[str]:
    """Let only the named parameters learn, and return their full names in the model's order.

    names: "head" means a parameter of that name and those that begin with "head.", such as "head.weight".
    Everything else gets requires_grad False and loses the gradient that it may hold.
    Raises ValueError naming a name that the model does not have.
    """
    names = list(names)

    def means(name: str, full: str) -> bool:
        return full == name or full.startswith(f"{name}.")

    parameters = dict(model.named_parameters())
    for name in names:
        if not any(means(name, full) for full in parameters):
            raise ValueError(f"names: expected parameters of the model, got {name!r}, which it does not have")
    for full, parameter in parameters.items():
        learns = any(means(name, full) for name in names)
        parameter.requires_grad_(learns)
        if not learns:
            parameter.grad = None
    return [full for full, parameter in parameters.items() if parameter.requires_grad]
