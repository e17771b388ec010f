"""Pretraining and its uses: masked words, one vector for a sentence, frozen parameters, foreign weights (chapter 15).

Devlin et al. 2019, "BERT", sections 3.1 and A.1, for the hidden words. The foreign format is the course's own; its
traps are those of real ones: other names, transposed matrices, three projections in one, half precision, a head too
many.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from transformer_ref.shapes import expect_ids, expect_mask, expect_shape

IGNORED = -100  # a label that no loss counts, as torch's cross-entropy has it
HIDDEN, ANOTHER = 0.8, 0.1  # of the chosen tokens; the rest stay as they are (Devlin et al. 2019, section 3.1)
How = Literal["mean", "cls", "max"]


AROUND = {
    "encoder.embed.weight": "words.weight",
    "encoder.positions.weight": "places.weight",
    "encoder.ln_last.scale": "norm.weight",
    "encoder.ln_last.shift": "norm.bias",
}
IN_A_LAYER = {
    "ln_1.scale": "norm1.weight",
    "ln_1.shift": "norm1.bias",
    "ln_2.scale": "norm2.weight",
    "ln_2.shift": "norm2.bias",
    "attn.out.weight": "output.weight",
    "attn.out.bias": "output.bias",
    "mlp.up.weight": "wide.weight",
    "mlp.up.bias": "wide.bias",
    "mlp.down.weight": "narrow.weight",
    "mlp.down.bias": "narrow.bias",
}
FUSED = ("key", "query", "value")  # the order in which the format has them side by side


class Masked(NamedTuple):
    """A batch with masked tokens, and the labels to predict."""

    inputs: Tensor  # (batch, length), what the model reads
    labels: Tensor  # (batch, length), the token where it was chosen, else IGNORED


def mlm_mask(ids: Tensor, p: float, g: torch.Generator, mask_id: int, V: int, specials: Sequence[int]) -> Masked:
    """Return the input and the labels of a masked language model (Devlin et al. 2019, section 3.1).

    ids: (batch, length); p: probability that a token is chosen, independently, from 0 to 1; g: draws.
    mask_id: replaces 80 % of the chosen tokens; 10 % become any id of the V, 10 % stay.
    specials: ids that are never chosen, such as padding.
    Raises ValueError when p is not a probability, TypeError when ids are not integers.
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

    h: (batch, length, d_model); mask: boolean (batch, length), True at real tokens. A row without any gives zeros. how:
    "mean" of the real tokens, their "max" for each feature, or "cls", the first token's vector. Returns (batch,
    d_model). Raises ValueError for another word, or a shape that does not fit, TypeError for a mask of numbers.
    """
    expect_shape("h", h, "batch", "length", "d_model")
    expect_shape("mask", mask, *h.shape[:2])
    expect_mask("mask", mask, *h.shape[:2])
    if how not in get_args(How):
        raise ValueError(f"how: expected one of {', '.join(get_args(How))}, got {how!r}")
    if how == "cls":
        return h[:, 0]  # (batch, d_model)
    real = mask[..., None]  # (batch, length, 1)
    if how == "max":
        largest = h.masked_fill(~real, torch.finfo(h.dtype).min).amax(dim=1)  # (batch, d_model)
        return largest.masked_fill(~mask.any(dim=1, keepdim=True), 0.0)
    return h.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)  # (batch, d_model)


def freeze_except(model: nn.Module, names: Iterable[str]) -> list[str]:
    """Freeze all but the named parameters, and return their full names in the model's order.

    names: "head" means a parameter of that name and those that begin with "head.", such as "head.weight". Everything
    else gets requires_grad False, and its gradient is removed.
    Raises ValueError naming a name that the model does not have, TypeError for one string instead of names, whose
    letters may name other parts.
    """
    if isinstance(names, str):
        raise TypeError(f"names: expected a list of names, got the string {names!r}")
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


def load_mapped(sd: Mapping[str, Tensor], model: nn.Module) -> list[str]:
    """Load the weights of another library's file into a `SmallEncoder`; return the names that are left out.

    sd: what the file holds, by the names of its format (chapter 15 has the table). A matrix is (inputs, outputs) there;
        keys, queries and values lie side by side in one, in this order. It is left as it is.
    The parameters stay the same objects and keep their dtype.
    Raises ValueError naming an entry that is missing, has no place, or does not fit.
    """
    wanted = {name: parameter.shape for name, parameter in model.named_parameters()}
    found: dict[str, Tensor] = {}
    left_out = [
        name for name in sd if name.startswith("head.") or re.fullmatch(r"encoder\.block\.\d+\.attn\.mask", name)
    ]
    for name in (name for name in sd if name not in left_out):
        found |= _renamed(name, sd[name])
    for name, shape in wanted.items():
        if name not in found:
            raise ValueError(f"sd: expected what becomes {name}, got nothing")
        if found[name].shape != shape:
            raise ValueError(f"sd: expected {name} of shape {tuple(shape)}, got {tuple(found[name].shape)}")
    if strange := sorted(set(found) - set(wanted)):
        raise ValueError(f"sd: expected nothing that the model has no place for, got {strange[0]}")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(found[name])
    return left_out


def _renamed(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """Return the model's parameters that one entry holds, by name; a matrix in the layout of `nn.Linear`."""
    if name in AROUND:
        return {AROUND[name]: tensor}
    layer = re.fullmatch(r"encoder\.block\.(\d+)\.(.+)", name)
    if layer is None:
        raise ValueError(f"sd: expected only names of the format, got {name!r}")
    upright = tensor.T if tensor.dim() == 2 else tensor  # (outputs, inputs), or (outputs,)
    at = f"layers.{layer[1]}"
    if layer[2] in IN_A_LAYER:
        return {f"{at}.{IN_A_LAYER[layer[2]]}": upright}
    if layer[2] not in ("attn.kqv.weight", "attn.kqv.bias") or upright.shape[0] % len(FUSED):
        raise ValueError(f"sd: expected only names and sizes of the format, got {name!r} of {tuple(tensor.shape)}")
    part = layer[2].removeprefix("attn.kqv.")
    return {f"{at}.{role}.{part}": piece for role, piece in zip(FUSED, upright.chunk(len(FUSED)), strict=True)}


def as_foreign(model: nn.Module) -> dict[str, Tensor]:
    """Return a `SmallEncoder`'s weights in the format that `load_mapped` reads.

    In half precision, with a mask in every layer and one entry of a head, which are not weights of the model.
    """
    state = model.state_dict()
    sd = {theirs: state[ours] for theirs, ours in AROUND.items()}
    for n in range(len({name.split(".")[1] for name in state if name.startswith("layers.")})):
        block, layer = f"encoder.block.{n}", f"layers.{n}"
        for part in ("weight", "bias"):
            fused = torch.cat([state[f"{layer}.{role}.{part}"] for role in FUSED])
            sd[f"{block}.attn.kqv.{part}"] = fused.T if fused.dim() == 2 else fused
        for theirs, ours in IN_A_LAYER.items():
            tensor = state[f"{layer}.{ours}"]
            sd[f"{block}.{theirs}"] = tensor.T if tensor.dim() == 2 else tensor
    vocabulary, d_model = state["words.weight"].shape
    longest = len(state["places.weight"])
    sd["head.weight"] = torch.zeros(vocabulary, d_model)
    masks = {
        name.replace("kqv.bias", "mask"): torch.ones(longest, longest).tril().bool()
        for name in sd
        if "kqv.bias" in name
    }
    return {name: tensor.detach().clone().contiguous().half() for name, tensor in sd.items()} | masks
