"""Chapter 11: what the trained translator writes when the learner's functions choose its words."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from ipywidgets import FloatSlider, IntSlider, Text, ToggleButtons, VBox
from torch import Tensor

from transformer_ref import live_model
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import JOINER, WordTokenizer
from transformer_ref.visualization.bars import share_bars
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel

MOST_TOKENS = 14  # of a sentence that is read, its end not counted
LIMIT = 20  # tokens written
DRAWN = 5  # translations that are drawn
LONGEST = 44  # characters of a translation that is shown next to its bar


class Asked(NamedTuple):
    """A source sentence of the model."""

    model: Transformer
    tokenizer: WordTokenizer
    source: Tensor  # (1, source)

    def written(self, ids: Sequence[int]) -> list[int]:
        """Return the ids after bos, up to and with eos."""
        ids, eos = list(ids), self.model.config.eos
        return ids[1 : ids.index(eos) + 1] if eos in ids else ids[1:]

    def log_probabilities(self, prefixes: Tensor) -> Tensor:
        """Return the log-probabilities of the next token for each prefix, (n, t) -> (n, vocabulary)."""
        return self.model(self.source.expand(len(prefixes), -1), prefixes)[:, -1].log_softmax(-1)


def explorer(greedy_decode: Callable[..., Any], beam_search: Callable[..., Any], sample: Callable[..., Any]) -> VBox:
    """Return the panel: a sentence, the function that decodes it, and its settings."""
    model, tokenizer = live_model.unpack(live_model.read_weights())
    ways = {"greedy_decode": greedy_decode, "beam_search": beam_search, "sample": sample}
    controls = [
        Text(value="I bought windows.", description="a sentence", style=WIDE),
        ToggleButtons(options=list(ways), description="yours", style=WIDE),
        IntSlider(value=3, min=1, max=5, description="k of beam_search", style=WIDE),
        FloatSlider(value=0.0, min=0.0, max=1.5, step=0.1, description="alpha", style=WIDE),
        FloatSlider(value=1.0, min=0.0, max=2.0, step=0.1, description="tau of sample", style=WIDE),
        IntSlider(value=0, min=0, max=20, description="top_k (0: off)", style=WIDE),
        FloatSlider(value=1.0, min=0.05, max=1.0, step=0.05, description="top_p (1: off)", style=WIDE),
    ]

    def view(sentence: str, way: str, k: int, alpha: float, tau: float, top_k: int, top_p: float) -> Drawing:
        read = tokenizer.encode(sentence)[:MOST_TOKENS]
        if not read:
            raise NotYet("Type a sentence above.")
        asked = Asked(model, tokenizer, torch.tensor([[*read, model.config.eos]]))
        with torch.no_grad():
            if way == "greedy_decode":
                return _greedy(greedy_decode, asked)
            if way == "beam_search":
                return _beam(beam_search, asked, k, alpha)
            return _drawn(sample, asked, tau, top_k or None, top_p if top_p < 1 else None)

    return panel("Explorer: your functions choose the words of a trained translator", controls, view)


def _greedy(function: Callable[..., Any], asked: Asked) -> Drawing:
    config = asked.model.config
    answer = ask(function, asked.model, asked.source, LIMIT, config.bos, config.eos, config.pad)
    if not isinstance(answer, Tensor) or answer.dim() != 2 or len(answer) != 1 or answer.shape[1] < 2:
        raise NotYet("Your greedy_decode should return a tensor of ids, a row for the one sentence, bos in front.")
    ids = _known(answer[0].tolist(), asked, "greedy_decode")
    written = asked.written(ids)
    shares = asked.model(asked.source, torch.tensor([[config.bos, *written[:-1]]]))[0].softmax(-1)  # (step, vocabulary)
    own = [shares[step, id].item() for step, id in enumerate(written)]
    names = ["end" if id == config.eos else asked.tokenizer.vocabulary.tokens[id].replace(JOINER, "") for id in written]
    alt = (
        f"Your greedy_decode wrote: {asked.tokenizer.decode(written)} Each bar is the probability that the model gave "
        "to the token: "
        + ", ".join(f"{name} {share:.2f}" for name, share in zip(names, own, strict=True))
        + f". ln p = {sum(math.log(max(share, 1e-30)) for share in own):.2f}."
    )
    return share_bars(names, own, alt, digits=2)


def _beam(function: Callable[..., Any], asked: Asked, k: int, alpha: float) -> Drawing:
    config = asked.model.config
    answer = ask(function, asked.log_probabilities, k, LIMIT, alpha, config.bos, config.eos)
    if not isinstance(answer, list | tuple) or not answer:
        raise NotYet("Your beam_search should return a list of (ids, score), the best first.")
    found = []
    for one in answer[:k]:
        if not isinstance(one, list | tuple) or len(one) != 2:
            raise NotYet("Each hypothesis of your beam_search should be a pair (ids, score).")
        ids = one[0].tolist() if isinstance(one[0], Tensor) else list(one[0])
        found.append((_known(ids, asked, "beam_search"), float(one[1])))
    return _translations([(ids, f", your score {score:.2f}") for ids, score in found], asked, "Your beam_search found")


def _drawn(function: Callable[..., Any], asked: Asked, tau: float, top_k: int | None, top_p: float | None) -> Drawing:
    config, g = asked.model.config, torch.Generator().manual_seed(11)
    ids = asked.source.new_full((DRAWN, 1), config.bos)  # (drawn, step)
    for _ in range(LIMIT):
        logits = asked.model(asked.source.expand(DRAWN, -1), ids)[:, -1]  # (drawn, vocabulary)
        answer = ask(function, logits, tau, top_k, top_p, g)
        if not isinstance(answer, Tensor) or tuple(answer.shape) != (DRAWN,) or answer.is_floating_point():
            raise NotYet(f"Your sample should return a tensor of {DRAWN} ids, one for each row of logits.")
        _known(answer.tolist(), asked, "sample")
        ids = torch.cat([ids, answer[:, None].long()], dim=1)
        if bool((ids == config.eos).any(dim=1).all()):
            break
    return _translations([(row, "") for row in ids.tolist()], asked, f"Your sample drew {DRAWN} times")


def _known(ids: list[Any], asked: Asked, name: str) -> list[int]:
    """Return the ids as integers. Raises NotYet unless all of them are tokens of the model."""
    size = asked.model.config.target_vocabulary
    strange = [id for id in ids if not isinstance(id, int) or not 0 <= id < size]
    if strange:
        raise NotYet(f"Your {name} returned {strange[0]!r}, which is not an id from 0 to {size - 1}.")
    return ids


def _translations(found: Sequence[tuple[list[int], str]], asked: Asked, opening: str) -> Drawing:
    """Return the model's own translations, with the mean probability of their tokens."""
    config, labels, means, told = asked.model.config, [], [], []
    for ids, more in found:
        written = asked.written(ids)
        if not written:
            raise NotYet("A hypothesis of yours holds bos and nothing else.")
        logs = asked.model(asked.source, torch.tensor([[config.bos, *written[:-1]]]))[0].log_softmax(-1)
        log_p = sum(logs[step, id].item() for step, id in enumerate(written))
        text = asked.tokenizer.decode(written) or "(nothing)"
        labels.append(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
        means.append(min(1.0, math.exp(log_p / len(written))))
        told.append(f"{text} ({len(written)} tokens, ln p {log_p:.2f}{more})")
    alt = f"{opening}: {'; '.join(told)}. Each bar is the geometric mean of the probabilities of its tokens."
    return share_bars(labels, means, alt, digits=2)
