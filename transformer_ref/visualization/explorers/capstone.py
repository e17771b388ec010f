"""Chapter 12: every head of a trained translator, as the learner's `export_attention` hands its weights over."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import Dropdown, VBox

from transformer_ref import live_model
from transformer_ref.text.tokenizer import JOINER
from transformer_ref.translate import Translator
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel
from transformer_ref.visualization.explorers.self_attention import looks, sentence_and_head
from transformer_ref.visualization.heat_map import heat_map

MOST_WORDS = 9  # of a sentence that is read
KINDS = {"encoder: the source to itself": "encoder", "decoder: the target to itself": "decoder", "cross": "cross"}


def explorer(export_attention: Callable[..., Any]) -> VBox:
    """Return the panel: a sentence, the kind of attention, and the head that is drawn."""
    model, tokenizer = live_model.unpack(live_model.read_weights())
    translator = Translator(model, tokenizer, tokenizer)
    config = model.config
    sentence, head = sentence_and_head(config.heads)
    kind = Dropdown(options=KINDS, value="cross", description="attention", style=WIDE)

    def view(sentence: str, kind: str, head: int) -> Drawing:
        text = " ".join(sentence.split()[:MOST_WORDS])
        if not text:
            raise NotYet("Type a sentence above.")
        seen = translator.attention(text)
        weights = {name: [layer[None] for layer in getattr(seen, name)] for name in ("encoder", "decoder", "cross")}
        # which id a token has does not matter here, only that it is not a pad
        sides = [torch.full((1, len(tokens)), config.eos) for tokens in (seen.source, seen.target)]
        table = _table(ask(export_attention, weights, *sides, config.pad), kind, head, config.heads)
        source, target = ([token.replace(JOINER, "") for token in tokens] for tokens in (seen.source, seen.target))
        asking, asked = (source if kind == "encoder" else target), (target if kind == "decoder" else source)
        if tuple(table.shape) != (len(asking), len(asked)):
            shape = (len(asking), len(asked))
            raise NotYet(f"A head of this kind should have the shape {shape}; yours has {tuple(table.shape)}.")
        alt = f"Head {head} of {config.heads}. By your function: {looks(table, asking, asked)}."
        return heat_map(table, asking, asked, alt, digits=2)

    return panel("Explorer: every head of a trained translator", [sentence, kind, head], view)


def _table(found: Any, kind: str, head: int, heads: int) -> torch.Tensor:
    """Return one head's weights from the result of the learner's function."""
    if not isinstance(found, (list, tuple)) or not found or not isinstance(found[0], dict) or kind not in found[0]:
        raise NotYet(
            f"export_attention should return a list with a dictionary for each sentence, with the key {kind!r}."
        )
    weights = found[0][kind]
    if not isinstance(weights, torch.Tensor) or weights.dim() != 4 or weights.shape[1] != heads:
        raise NotYet(f"{kind!r} should be a tensor (layers, heads, query, key) with {heads} heads.")
    return weights[0, head - 1].detach().float()
