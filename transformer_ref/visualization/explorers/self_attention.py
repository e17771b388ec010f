"""Chapter 05: who looks at whom in a sentence, by the learner's `attention_weights` with a trained head's vectors."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import IntSlider, Text, VBox

from transformer_ref import live_model
from transformer_ref.model.multi_head_attention import split_heads
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, panel, shares_from
from transformer_ref.visualization.heat_map import heat_map

MOST_TOKENS = 9  # and <eos>


def explorer(attention_weights: Callable[..., Any]) -> VBox:
    """Return the panel: a sentence, and the head of the live translator whose queries and keys are used."""
    model, tokenizer = live_model.unpack(live_model.read_weights())
    layer = model.encoder.layers[0]
    sentence = Text(value="I bought new windows for my computer.", description="a sentence", style=WIDE)
    heads = layer.self_attention.heads
    head = IntSlider(value=1, min=1, max=heads, description="head", style=WIDE)

    def view(sentence: str, head: int) -> Drawing:
        ids = [*tokenizer.encode(sentence)[:MOST_TOKENS], model.config.eos]
        if len(ids) == 1:
            raise NotYet("Type a sentence above.")
        tokens = [tokenizer.vocabulary.tokens[id].replace("￭", "") for id in ids]
        with torch.no_grad():
            words = model.positions(model.source_embedding(torch.tensor([ids])))  # (1, T, d_model)
            words = layer.self_attention_residual.read(words)
            query, key = (
                split_heads(project(words), heads)[:, head - 1]  # (1, T, d_head)
                for project in (layer.self_attention.q_proj, layer.self_attention.k_proj)
            )
        weights = shares_from(attention_weights, query, key, shape=(1, len(ids), len(ids)))[0]  # (query, key)
        looks = "; ".join(
            f"{token} looks most at {tokens[row.argmax()]} ({row.max():.2f})"
            for token, row in zip(tokens, weights, strict=True)
        )
        unknown = " A word that it does not know is <unk> to it." if "<unk>" in tokens else ""
        return heat_map(weights, tokens, tokens, f"Your attention_weights: {looks}.{unknown}", digits=2)

    return panel("Explorer: your attention_weights, with queries and keys of a trained head", [sentence, head], view)
