"""A translator in one HTML file: weights, vocabulary and engine, which translates offline in any browser."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ref import live_model
from transformer_ref.atomic_write import atomic_write
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import unwrapped
from transformer_ref.text.tokenizer import Tokenizer

PARTS = Path(__file__).with_name("translator_page")
LANGUAGES = {"de": "German", "en": "English", "fr": "French", "it": "Italian", "cs": "Czech", "es": "Spanish"}
EXAMPLES = {  # sentences of a corpus's world
    "grammar": (
        "I closed the windows.",
        "I bought new windows for my computer.",
        "She visited the bank near the river.",
        "We cleaned the old keys of the house.",
    )
}
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"  # nothing is fetched, ever

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{story}</p>
<noscript><p>The model runs in this page, so it needs JavaScript. Nothing is sent anywhere.</p></noscript>
</main>
<script>window.liveModelWeights = {weights}; window.aboutTranslator = {about};</script>
<script>
{engine}</script>
<script>
{script}</script>
</body>
</html>
"""


def save_page(
    model: Transformer,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    path: str | Path,
    notes: Mapping[str, Any],
    facts: Sequence[tuple[str, str]] = (),
) -> int:
    """Write the page and return its size in bytes.

    notes: those of the checkpoint; facts: (name, text) pairs shown about the model.
    Raises ValueError for two different tokenizers or one that the engine does not support, and for a model in training
    mode.
    """
    model = unwrapped(model)
    if model.training:
        raise ValueError("model: expected evaluation mode (model.eval()), got training mode")
    if source_tokenizer.to_json() != target_tokenizer.to_json():
        raise ValueError("tokenizer: expected one for both languages, as `train` makes it, got two; a page holds one")
    source, target = (str(notes.get(side, side)) for side in ("source", "target"))
    names = [LANGUAGES.get(language, language) for language in (source, target)]
    weights = sum(parameter.numel() for parameter in model.parameters())
    about = {
        "source": source,
        "target": target,
        "sourceName": names[0],
        "examples": EXAMPLES.get(str(notes.get("corpus")), ()),
        "facts": [*facts, *_facts(model, source_tokenizer, notes)],
    }
    text = TEMPLATE.format(
        policy=POLICY,
        title=html.escape(f"A translator: {names[0]} to {names[1]}"),
        story=f"A Transformer of {weights:,} learned numbers, whole in this file. It works without a network, "
        "and what you write stays on your machine.",
        style=(PARTS / "page.css").read_text(encoding="utf-8"),
        weights=_in_script(live_model.pack(model, source_tokenizer)),
        about=_in_script(about),
        engine=live_model.ENGINE.read_text(encoding="utf-8"),
        script=(PARTS / "page.js").read_text(encoding="utf-8"),
    )
    atomic_write(Path(path), text)
    return Path(path).stat().st_size


def _facts(model: Transformer, tokenizer: Tokenizer, notes: Mapping[str, Any]) -> list[tuple[str, str]]:
    config = model.config
    return [
        ("corpus", str(notes.get("corpus", "unknown"))),
        ("layers", f"{config.encoder_layers} that read, {config.decoder_layers} that write, {config.heads} heads each"),
        ("sizes", f"d_model {config.d_model}, d_ff {config.d_ff}, {tokenizer.size:,} tokens"),
        ("norm", "before each sub-layer" if config.norm_first else "after each sub-layer, as in the paper"),
        ("tables", "one for source, target and output" if config.tie_embeddings else "three: source, target, output"),
        ("rounding", "each row of a matrix in whole numbers from -127 to 127"),
        ("words", "the likeliest at each step (greedy)"),
    ]


def _in_script(value: Any) -> str:
    """Return JSON in ASCII that cannot end the script element it is written into."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
