"""Chapter 06: every head of a sentence, by the learner's `MultiHeadAttention` with the weights of a trained one."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import IntSlider, Text, VBox

from transformer_ref import live_model
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel
from transformer_ref.visualization.heat_map import heat_map

MOST_TOKENS = 9  # and <eos>


def explorer(MultiHeadAttention: Callable[..., Any], head_stats: Callable[..., Any]) -> VBox:
    """Return the panel: a sentence, and the head of the live translator's encoder that is drawn."""
    model, tokenizer = live_model.unpack(live_model.read_weights())
    layer = model.encoder.layers[0]
    heads = layer.self_attention.heads
    sentence = Text(value="I bought new windows for my computer.", description="a sentence", style=WIDE)
    head = IntSlider(value=1, min=1, max=heads, description="head", style=WIDE)

    def view(sentence: str, head: int) -> Drawing:
        ids = [*tokenizer.encode(sentence)[:MOST_TOKENS], model.config.eos]
        if len(ids) == 1:
            raise NotYet("Type a sentence above.")
        tokens = [tokenizer.vocabulary.tokens[id].replace("￭", "") for id in ids]
        with torch.no_grad():
            words = model.positions(model.source_embedding(torch.tensor([ids])))  # (1, T, d_model)
            words = layer.self_attention_residual.read(words)
            weights = _weights(MultiHeadAttention, layer.self_attention, words)  # (1, heads, T, T)
        stats = ask(head_stats, weights.clone())
        told = ", ".join(f"{name.replace('_', ' ')} {stats[name][0, head - 1]:.2f}" for name in stats)
        looks = "; ".join(
            f"{token} looks most at {tokens[row.argmax()]} ({row.max():.2f})"
            for token, row in zip(tokens, weights[0, head - 1], strict=True)
        )
        alt = f"Head {head} of {heads}. Your head_stats: {told}. Your weights: {looks}."
        return heat_map(weights[0, head - 1], tokens, tokens, alt, digits=2)

    return panel("Explorer: your heads, with the weights of a trained translator", [sentence, head], view)


def _weights(class_: Callable[..., Any], trained: torch.nn.Module, words: torch.Tensor) -> torch.Tensor:
    """Return the weights that the learner's module keeps, with the trained projections loaded into its first four
    matrices."""
    mine = ask(class_, words.shape[-1], trained.heads)
    if not isinstance(mine, torch.nn.Module):
        raise NotYet("Your MultiHeadAttention is not an nn.Module.")
    layers = [part for part in mine.modules() if isinstance(part, torch.nn.Linear)]
    projections = (trained.q_proj, trained.k_proj, trained.v_proj, trained.out_proj)
    if [tuple(part.weight.shape) for part in layers] != [tuple(part.weight.shape) for part in projections]:
        raise NotYet(
            "This explorer fills four nn.Linear, in the order queries, keys, values, output; yours has others."
        )
    for own, projection in zip(layers, projections, strict=True):
        own.load_state_dict(projection.state_dict(), strict=own.bias is not None)
    mine.eval()
    ask(mine, words)
    weights = getattr(mine, "last_weights", None)
    shape = (1, trained.heads, words.shape[1], words.shape[1])
    if not isinstance(weights, torch.Tensor) or tuple(weights.shape) != shape:
        raise NotYet(f"After a call, .last_weights should hold a tensor of shape {shape}.")
    return weights.detach()
