"""Chapter 15: words hidden by the learner's `mlm_mask`, a review judged by their `pool`, what learns and arrives."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import Dropdown, FloatSlider, IntSlider, Text, ToggleButtons, VBox

from transformer_ref.beyond.masked_language import CLS, MASK, PAD, ReviewJudge, WordList, split, unpack
from transformer_ref.beyond.pretrained import IGNORED, as_foreign
from transformer_ref.beyond.small_encoder import SmallEncoder
from transformer_ref.recording import recording
from transformer_ref.visualization.bars import share_bars
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel, tensor_from

MOST_WORDS = 12
HIDE, JUDGE, FREEZE, LOAD = "hide words", "judge it", "freeze", "load a file"
NAMES = ("head", "head, body.encoder.norm", "head, body.encoder.layers.1", "body", "")
HOWS = ("mean", "cls", "max")


def explorer(
    mlm_mask: Callable[..., Any],
    pool: Callable[..., Any],
    freeze_except: Callable[..., Any],
    load_mapped: Callable[..., Any],
) -> VBox:
    """Return the panel: a review, the step, the share of masked words, the pooling, and the parameters that train."""
    judge, words = unpack(recording("review_judge"))
    controls = [
        Text(value="the soup was lovely and the staff was rude .", description="a review", style=WIDE),
        ToggleButtons(options=[HIDE, JUDGE, FREEZE, LOAD], description="do", style=WIDE),
        FloatSlider(value=0.3, min=0.0, max=1.0, step=0.05, description="p of mlm_mask", style=WIDE),
        IntSlider(value=1, min=1, max=20, description="seed", style=WIDE),
        ToggleButtons(options=list(HOWS), description="how of pool", style=WIDE),
        Dropdown(options=NAMES, description="names that learn", style=WIDE),
        IntSlider(value=2, min=0, max=8, description="pads behind it", style=WIDE),
    ]

    def view(text: str, what: str, p: float, seed: int, how: str, names: str, pads: int) -> Drawing:
        if what == FREEZE:
            return _frozen(freeze_except, copy.deepcopy(judge), [name for name in names.split(", ") if name])
        if what == LOAD:
            return _loaded(load_mapped)
        ids = torch.tensor([words.encode(text)[: 1 + MOST_WORDS]])  # (1, length)
        if ids.shape[1] < 2:
            raise NotYet("Type a review above, such as: the soup was lovely .")
        unknown = [word for word in split(text) if word not in words.ids]
        said = f" The model does not know: {', '.join(dict.fromkeys(unknown))}." if unknown else ""
        with torch.no_grad():
            if what == HIDE:
                return _hidden(mlm_mask, judge, words, ids, p, seed, said)
            return _judged(pool, judge, ids, how, pads, said)

    return panel("Explorer: your functions on a small encoder that was really trained", controls, view)


def _hidden(
    mlm_mask: Callable[..., Any], judge: ReviewJudge, words: WordList, ids: torch.Tensor, p: float, seed: int, said: str
) -> Drawing:
    g = torch.Generator().manual_seed(seed)
    answer = ask(mlm_mask, ids.clone(), p, g, MASK, len(words.tokens), (PAD, CLS))
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise NotYet("Your mlm_mask should return a pair: what the model reads, and the labels.")
    inputs, labels = answer
    for name, each in (("first", inputs), ("second", labels)):
        if not isinstance(each, torch.Tensor) or each.shape != ids.shape or each.is_floating_point():
            raise NotYet(f"The {name} that your mlm_mask returns should be ids of the shape {tuple(ids.shape)}.")
    if not bool(((inputs >= 0) & (inputs < len(words.tokens))).all()):
        raise NotYet(f"The model's input has a number that is not an id from 0 to {len(words.tokens) - 1}.")
    asked = (labels[0] != IGNORED).nonzero().flatten().tolist()
    if not asked:
        raise NotYet("No word was chosen this time: no label differs from -100. Move p or the seed.")
    shares = judge.body(inputs)[0].softmax(-1)  # (length, vocabulary)
    names, bars, told = [], [], []
    for place in asked:
        wanted = int(labels[0, place])
        if not 0 <= wanted < len(words.tokens):
            raise NotYet(f"A label of yours is {wanted}: neither -100 nor an id from 0 to {len(words.tokens) - 1}.")
        best, share = int(shares[place].argmax()), shares[place, wanted].item()
        names.append(f"{place}: {words.tokens[wanted]}")
        bars.append(share)
        told.append(
            f"at {place} it reads {words.tokens[int(inputs[0, place])]}, gives {words.tokens[wanted]} {share:.2f} "
            f"and would say {words.tokens[best]}"
        )
    reads = " ".join(words.tokens[id] for id in inputs[0].tolist())
    alt = f"It reads: {reads}. {len(asked)} words are predicted: {'; '.join(told)}.{said}"
    return share_bars(names, bars, alt, digits=2)


def _judged(pool: Callable[..., Any], judge: ReviewJudge, ids: torch.Tensor, how: str, pads: int, said: str) -> Drawing:
    ids = torch.nn.functional.pad(ids, (0, pads), value=PAD)  # (1, length + pads)
    h, mask = judge.body.encode(ids).memory, ids != PAD  # (1, length, d_model)
    pooled = tensor_from(pool, h, mask, how, shape=(1, h.shape[-1]))
    blame, praise = judge.head(pooled.float()).softmax(-1)[0].tolist()
    alt = (
        f"Your pool makes one vector of {int(mask.sum())} tokens and {pads} pads by {how}; the head, which was trained "
        f"on the mean, says praise {praise:.3f}, blame {blame:.3f}. Move the pads: nothing may change.{said}"
    )
    return share_bars(["praise", "blame"], [praise, blame], alt, digits=3)


def _frozen(freeze_except: Callable[..., Any], judge: ReviewJudge, names: list[str]) -> Drawing:
    ask(freeze_except, judge, names)
    parts: dict[str, list[int]] = {}
    for name, parameter in judge.named_parameters():
        part = ".".join(name.split(".")[:4]) if ".layers." in name else name.rsplit(".", 1)[0]
        learning, all_of_it = parts.setdefault(part, [0, 0])
        parts[part] = [learning + parameter.requires_grad * parameter.numel(), all_of_it + parameter.numel()]
    learning, whole = (sum(counts) for counts in zip(*parts.values(), strict=True))
    alt = f"After your freeze_except with {names}, {learning:,} of {whole:,} numbers learn: " + (
        ", ".join(f"{part} {one:,} of {all_of_it:,}" for part, (one, all_of_it) in parts.items() if one) or "none"
    )
    return share_bars(list(parts), [one / all_of_it for one, all_of_it in parts.values()], f"{alt}.", digits=2)


def _loaded(load_mapped: Callable[..., Any]) -> Drawing:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(15)
        theirs, ours = (SmallEncoder(20, 6, 10, 2, 9) for _ in range(2))
        ids = torch.randint(20, (2, 7))
        before = _agreeing(ours(ids), theirs(ids))
        ask(load_mapped, as_foreign(theirs), ours)
        after = _agreeing(ours(ids), theirs(ids))
        gap = (ours(ids) - theirs(ids)).abs().max().item()
    alt = (
        f"Of the outputs for 14 ids, {before:.0%} agree to 0.01 with those of the file's own model before your "
        f"load_mapped, and {after:.0%} after it. The largest gap is {gap:.4f}; half precision leaves some thousandths."
    )
    return share_bars(["before", "after"], [before, after], alt, digits=2)


def _agreeing(one: torch.Tensor, other: torch.Tensor) -> float:
    return ((one - other).abs() < 0.01).float().mean().item()
