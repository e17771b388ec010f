"""Chapter 06: every head of a sentence, by the learner's `MultiHeadAttention` with the weights of a trained one."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import VBox

from transformer_ref import live_model
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import NotYet, ask, panel
from transformer_ref.visualization.explorers.self_attention import looks, read, sentence_and_head
from transformer_ref.visualization.heat_map import heat_map


def explorer(MultiHeadAttention: Callable[..., Any], head_stats: Callable[..., Any]) -> VBox:
    """Return the panel: a sentence, and the head of the live translator's encoder that is drawn."""
    translator = live_model.unpack(live_model.read_weights())
    attention = translator.model.encoder.layers[0].self_attention
    heads = attention.heads

    def view(sentence: str, head: int) -> Drawing:
        tokens, words = read(translator, sentence)
        with torch.no_grad():
            weights = _weights(MultiHeadAttention, attention, words)  # (1, heads, T, T)
        stats = ask(head_stats, weights.clone())
        told = ", ".join(f"{name.replace('_', ' ')} {stats[name][0, head - 1]:.2f}" for name in stats)
        shown = weights[0, head - 1]  # (query, key)
        alt = f"Head {head} of {heads}. Your head_stats: {told}. Your weights: {looks(shown, tokens, tokens)}."
        return heat_map(shown, tokens, tokens, alt, digits=2)

    return panel("Explorer: your heads, with the weights of a trained translator", sentence_and_head(heads), view)


def _weights(class_: Callable[..., Any], trained: torch.nn.Module, words: torch.Tensor) -> torch.Tensor:
    """Return the weights that the learner's module keeps, with trained projections in its four matrices."""
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
