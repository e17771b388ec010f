"""The foreign file of 15.4: how it is drawn, and what is looked at in a model that it was loaded into."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.ch15_pretrained.shared import listed
from autograder.catalogue.exercise import Case, Evidence, Remark
from autograder.catalogue.normal_forms import InWords

SIZES = (11, 4, 6, 2, 5)  # vocabulary, d_model, d_ff, layers, longest
REFUSED, LOADED = "a file that does not fit is refused", Remark("a file that does not fit was loaded without an error")


def foreign(g: torch.Generator, sizes: tuple[int, ...], dtype: torch.dtype, at: float = 0.0,
            whole: bool = True) -> dict[str, Tensor]:
    """Weights as the file has them, drawn; the norms' scales near 1. whole: with what the table leaves out."""
    V, D, F, layers, longest = sizes
    shapes: dict[str, tuple[int, ...]] = {"encoder.embed.weight": (V, D), "encoder.positions.weight": (longest, D)}
    for n in range(layers):
        block = f"encoder.block.{n}"
        shapes |= {f"{block}.ln_1.scale": (D,), f"{block}.ln_1.shift": (D,)}
        shapes |= {f"{block}.attn.kqv.weight": (D, 3 * D), f"{block}.attn.kqv.bias": (3 * D,)}
        shapes |= {f"{block}.attn.out.weight": (D, D), f"{block}.attn.out.bias": (D,),
                   f"{block}.attn.mask": (longest, longest)}
        shapes |= {f"{block}.ln_2.scale": (D,), f"{block}.ln_2.shift": (D,)}
        shapes |= {f"{block}.mlp.up.weight": (D, F), f"{block}.mlp.up.bias": (F,)}
        shapes |= {f"{block}.mlp.down.weight": (F, D), f"{block}.mlp.down.bias": (D,)}
    shapes |= {"encoder.ln_last.scale": (D,), "encoder.ln_last.shift": (D,), "head.weight": (D, V), "head.bias": (V,)}
    made = {}
    for name, shape in shapes.items():
        if name.endswith("mask"):
            made[name] = torch.ones(shape, dtype=torch.bool).tril()
            continue
        value = torch.randn(*shape, generator=g, dtype=torch.float64) / 2 + name.endswith("scale") + at
        made[name] = value.to(dtype)
    return {name: value for name,
            value in made.items() if whole or (not name.endswith("mask") and not name.startswith("head."))}


def weights(
    g: torch.Generator, sizes: tuple[int, ...] = SIZES, stored: torch.dtype = torch.float16, dtype: str = "float32",
    at: float = 0.0, order: str = "", whole: bool = True,
) -> Case:  # fmt: skip
    """The file's entries and what the stage makes the model of. order: "backwards" or "by name" where not as in the
    table."""
    sd = foreign(g, sizes, stored, at, whole)
    if order == "backwards":
        sd = dict(reversed(sd.items()))
    if order == "by name":
        sd = dict(sorted(sd.items()))
    return Case((sd, {"sizes": list(sizes), "dtype": dtype, "start": 0.125}))


def damaged(g: torch.Generator, without: tuple[str, ...] = (), put: tuple[tuple[str, tuple[int, ...]], ...] = (),
            sizes: tuple[int, ...] = SIZES) -> Case:
    """A sound file first, then one with entries left out, or put in with another shape or under another name."""
    case = weights(g, sizes)
    entries = {name: torch.randn(*shape, generator=g).half() for name, shape in put}
    sd, given = case.arguments
    # the damage first and what is put in before that, so that a report that cuts the text shows the entry's name
    return Case((sd, {"damage": {"put": entries, "without": list(without)}, **given}))


def the_same(*arguments: Any, **options: Any) -> Case:
    """The same file for everybody."""
    return weights(torch.Generator().manual_seed(15), *arguments, **options)


def what_is_held(case: Case, result: Any) -> Any:
    """The model's weights, and what else became of its parameters, in words that a report can show."""
    if isinstance(result, dict) and "refused" in result:
        return {REFUSED: True if result["refused"] else LOADED}
    if not isinstance(result, dict) or "weights" not in result:
        return result
    said = {"replaced": "a parameter of the model is a new object now", "shared": "a parameter uses sd's own memory",
            "frozen": "a parameter's requires_grad is False now"}
    found = {what: list(result.get(what) or ()) for what in said}
    first = [InWords(f"{said[what]}: {listed(names)}") for what, names in found.items() if names]
    return {"weights": result["weights"], "in words": [*first, "as expected"][0], **found}


def other_weights(evidence: Evidence) -> str:
    """Which weights are not as they should be, and a number of the first."""
    if not isinstance(evidence.got, dict) or "weights" not in evidence.got:
        return ""
    got, wanted = evidence.got["weights"], evidence.expected["weights"]
    start = evidence.arguments[1]["start"]
    off = [name for name, value in wanted.items() if not _close(got.get(name), value)]
    if not off:
        return ""
    untouched = [name for name in off if isinstance(got.get(name), Tensor) and bool((got[name] == start).all())]
    also = (
        f" Of these, {listed(untouched)} {'was' if len(untouched) == 1 else 'were'} not written at all." if untouched
        else ""
    )
    return (
        f"{len(off)} of the model's {len(wanted)} parameters {'is' if len(off) == 1 else 'are'} wrong: "
        f"{listed(off)}.{also}"
    )


def what_got_through(evidence: Evidence) -> str:
    """The first entry that makes the file unfit, by its whole name, and why it does."""
    sd, given = evidence.arguments
    for name, value in given["damage"]["put"].items():
        if name in sd:
            return f"The check's file has an entry of a different shape, {name} {tuple(value.shape)}."
        return f"The check's file has an entry that is in no line of the table, {name}."
    return f"The check's file lacks an entry, {given['damage']['without'][0]}."


def files_dtype(evidence: Evidence) -> bool | None:
    """Whether parameters have the file's dtype where the model had a different one; None where the two agree, or where
    a file should be refused."""
    if "weights" not in evidence.expected:
        return None
    stored = {value.dtype for value in evidence.arguments[0].values() if value.is_floating_point()}
    own = {value.dtype for value in evidence.expected["weights"].values()}
    now = {value.dtype for value in evidence.got["weights"].values()}
    return None if stored == own else bool(now & stored)


def _close(got: Any, wanted: Tensor) -> bool:
    alike = isinstance(got, Tensor) and (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    return alike and torch.allclose(got.double(), wanted.double(), atol=1e-5)


def wrong_parts(evidence: Evidence) -> set[str]:
    """The last two words of the names of the parameters that are wrong, such as "key.bias"."""
    got, wanted = evidence.got["weights"], evidence.expected["weights"]
    return {".".join(name.split(".")[-2:]) for name, value in wanted.items() if not _close(got.get(name), value)}


FUSED_BIASES = {"key.bias", "query.bias", "value.bias"}
FUSED_PARTS = FUSED_BIASES | {"key.weight", "query.weight", "value.weight"}
NORMS = {f"{norm}.{kind}" for norm in ("norm", "norm1", "norm2") for kind in ("weight", "bias")}


def among(parts: set[str]) -> Callable[[Evidence], bool]:
    """Whether nothing but some of these parts is wrong."""
    return lambda evidence: bool(wrong_parts(evidence)) and wrong_parts(evidence) <= parts


def as_it_was(evidence: Evidence) -> bool:
    """Whether nothing at all was written."""
    start = evidence.arguments[1]["start"]
    return all(bool((value == start).all()) for value in evidence.got["weights"].values())
