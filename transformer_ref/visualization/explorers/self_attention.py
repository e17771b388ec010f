"""Chapter 05: who looks at whom in a sentence, by the learner's `attention_weights` with a trained head's vectors."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from ipywidgets import IntSlider, Text, VBox
from torch import Tensor

from transformer_ref import live_model
from transformer_ref.model.multi_head_attention import split_heads
from transformer_ref.text.tokenizer import JOINER
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, panel, shares_from
from transformer_ref.visualization.heat_map import heat_map

MOST_TOKENS = 9  # and <eos>


def explorer(attention_weights: Callable[..., Any]) -> VBox:
    """Return the panel: a sentence, and the head of the live translator whose queries and keys are used."""
    translator = live_model.unpack(live_model.read_weights())
    attention = translator.model.encoder.layers[0].self_attention

    def view(sentence: str, head: int) -> Drawing:
        tokens, words = read(translator, sentence)
        with torch.no_grad():
            query, key = (
                split_heads(project(words), attention.heads)[:, head - 1]  # (1, T, d_head)
                for project in (attention.q_proj, attention.k_proj)
            )
        weights = shares_from(attention_weights, query, key, shape=(1, len(tokens), len(tokens)))[0]  # (query, key)
        unknown = " A word that it does not know is <unk> to it." if "<unk>" in tokens else ""
        alt = f"Your attention_weights: {looks(weights, tokens, tokens)}.{unknown}"
        return heat_map(weights, tokens, tokens, alt, digits=2)

    title = "Explorer: your attention_weights, with queries and keys of a trained head"
    return panel(title, sentence_and_head(attention.heads), view)


def sentence_and_head(heads: int) -> list[Text | IntSlider]:
    """Return the controls that choose a sentence and one of `heads` heads, counted from 1."""
    sentence = Text(value="I bought new windows for my computer.", description="a sentence", style=WIDE)
    return [sentence, IntSlider(value=1, min=1, max=heads, description="head", style=WIDE)]


@torch.no_grad()
def read(translator: live_model.Packed, sentence: str) -> tuple[list[str], Tensor]:
    """Return a sentence's tokens, and what the first encoder layer reads, (1, T, d_model). Raises NotYet for none."""
    model, tokenizer = translator
    ids = [*tokenizer.encode(sentence)[:MOST_TOKENS], model.config.eos]
    if len(ids) == 1:
        raise NotYet("Type a sentence above.")
    words = model.positions(model.source_embedding(torch.tensor([ids])))  # (1, T, d_model)
    tokens = [tokenizer.vocabulary.tokens[id].replace(JOINER, "") for id in ids]
    return tokens, model.encoder.layers[0].self_attention_residual.read(words)


def looks(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Return in words which key each query looks at most. weights: (query, key)."""
    rows = zip(queries, weights, strict=True)
    return "; ".join(f"{query} looks most at {keys[row.argmax()]} ({row.max():.2f})" for query, row in rows)
