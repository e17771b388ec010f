"""Record what the heads of a small translator look at, and what becomes of it without them: heads.json, for chapter 06.

    python -m book.recorded.heads

Three kinds of translator learn the built-in English and Italian, each from three seeds: four heads; one head of the
same width; four heads without the output projection W_O, in every attention of the model. The first of the four-headed
ones is then opened: what each head of its encoder attends to, and what is lost when a head is silenced. Twelve minutes
of one core. Interrupted, the same command goes on where it stopped.
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from book.recorded.kept import Kept
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.data.grammar.meaning import english_plural
from transformer_ref.data.grammar.pairs import Pair
from transformer_ref.evaluation import exact_match, sense_accuracy
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.recording import FOLDER
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.recipes import RECIPES, load_split, varied
from transformer_ref.training.run import changed, prepare
from transformer_ref.training.trainer import fit
from transformer_ref.translate import Translator

KINDS = {"four heads": (4, True), "one head": (1, True), "four heads, no W_O": (4, False)}  # heads, with W_O
SEEDS = (1, 2, 3)
SIZES = dict(d_model=64, d_ff=128)
SETTINGS = dict(steps=800, precision="fp32")
JUDGED = 500  # sentences of each split
SHOWN = (
    "I closed the windows.",
    "I bought new windows for my computer.",
    "She visited the bank near the river.",
    "Near the river, we saw the old bank.",
)
PAIR = ("I bought new windows for my computer.", "Ho comprato una nuova versione di Windows per il mio computer.")
RECORD = FOLDER / "heads.json"


def trained(heads: int, with_output: bool, seed: int) -> Translator:
    """Return a translator that has learned the built-in corpus."""
    recipe = varied(RECIPES["grammar"], model=dict(SIZES, heads=heads))
    config = changed(recipe.training, seed=seed, **SETTINGS)
    splits = [load_split("grammar", split, *recipe.languages) for split in ("train", "validation")]
    run = prepare("grammar", *splits, recipe.languages, config, torch.device("cpu"), recipe)
    training = run.training
    if not with_output:
        for attention in attentions(training.model):
            attention.out_proj = nn.Identity()
        training = dataclasses.replace(training, optimizer=build_optimizer(training.model, config))
    fit(training, lambda progress: False)
    return Translator(training.model.eval(), run.source_tokenizer, run.target_tokenizer)


def attentions(model: nn.Module) -> list[MultiHeadAttention]:
    """Return every attention of the model."""
    return [module for module in model.modules() if isinstance(module, MultiHeadAttention)]


def judged(translator: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the shares of exactly translated sentences, and of ambiguous words in the correct sense."""
    translations = translator.translate([pair.english for pair in pairs], beam_size=1)
    exact = exact_match(translations, [pair.italian for pair in pairs])
    return {"exact": round(exact, 3), "sense": round(sense_accuracy(translations, pairs), 3)}


@contextmanager
def silenced(attention: MultiHeadAttention, heads: Sequence[int]) -> Iterator[None]:
    """Inside the `with` the outputs of these heads are zero."""
    d_head = attention.out_proj.in_features // attention.heads

    def cut(module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        pieces = inputs[0].unflatten(-1, (attention.heads, d_head)).clone()  # (batch, length, heads, d_head)
        pieces[..., list(heads), :] = 0.0
        return (pieces.flatten(-2),)  # (batch, length, d_model)

    hook = attention.out_proj.register_forward_pre_hook(cut)
    try:
        yield
    finally:
        hook.remove()


@torch.inference_mode()
def looked_at(translator: Translator, text: str) -> tuple[list[str], Tensor]:
    """Return a sentence's tokens and its encoder's weights, (heads, query, key)."""
    ids = [*translator.source_tokenizer.encode(text), translator.model.config.eos]
    tokens = [translator.source_tokenizer.vocabulary.tokens[id] for id in ids]
    encoded = translator.model.encode(torch.tensor([ids]), need_weights=True)
    return tokens, encoded.weights[-1][0]


def statistics(translator: Translator, pairs: Sequence[Pair]) -> list[dict[str, float]]:
    """Return for each head: entropy in nats, distance in words, weight on the diagonal, and weight on the cue.

    cue: the weight that an ambiguous word gives to its cue noun; last: the weight that any word gives to the end.
    """
    found: dict[str, list[Tensor]] = {name: [] for name in ("entropy", "distance", "diagonal", "last", "cue", "even")}
    for pair in pairs:
        tokens, weights = looked_at(translator, pair.english)
        place = torch.arange(len(tokens), dtype=torch.float32)
        apart = (place[:, None] - place).abs()  # (query, key)
        found["entropy"].append(torch.special.entr(weights).sum(-1).mean(-1))
        found["distance"].append((weights * apart).sum(-1).mean(-1))
        found["diagonal"].append(weights.diagonal(dim1=-2, dim2=-1).mean(-1))
        found["last"].append(weights[:, :, -1].mean(-1))
        places = cue_places(pair, tokens)
        if places is not None:
            found["cue"].append(weights[:, places[0], places[1]])
            found["even"].append(torch.full((weights.shape[0],), 1 / len(tokens)))
    means = {name: torch.stack(values).mean(0) for name, values in found.items()}
    heads = range(len(means["entropy"]))
    return [{name: round(values[head].item(), 3) for name, values in means.items()} for head in heads]


def cue_places(pair: Pair, tokens: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the ambiguous word and its cue; None if either is missing or occurs twice."""
    if pair.sense is None or pair.sense.cue is None:
        return None
    places = []
    for word in (pair.sense.word, pair.sense.cue):
        found = [i for i, token in enumerate(tokens) if token.lower() in (word, english_plural(word))]
        if len(found) != 1:
            return None
        places += found
    return places[0], places[1]


@torch.inference_mode()
def crossed(translator: Translator, english: str, italian: str) -> dict[str, Any]:
    """Return the decoder's cross-attention for a pair, a row for each Italian token."""
    source = [*translator.source_tokenizer.encode(english), translator.model.config.eos]
    target = [translator.model.config.bos, *translator.target_tokenizer.encode(italian), translator.model.config.eos]
    decoded = translator.model.decode(
        torch.tensor([target[:-1]]), translator.model.encode(torch.tensor([source])), need_weights=True
    )
    shares = decoded.cross_weights[-1][0]  # (heads, target, source)
    names = translator.source_tokenizer.vocabulary.tokens
    return {
        "source": [names[id] for id in source],
        "target": [names[id] for id in target[1:]],
        "weights": rounded(shares),
    }


def rounded(weights: Tensor) -> Any:
    """Return the numbers with three digits, as nested lists."""
    return [[[round(share, 3) for share in row] for row in head] for head in weights.tolist()]


def opened(translator: Translator) -> dict[str, Any]:
    """Return the attention weights of a translator's heads, and its scores without each of them."""
    corpus = build_corpus()
    pairs = corpus.test[:JUDGED]
    attention = translator.model.encoder.layers[-1].self_attention
    every = range(attention.heads)
    without, alone = [], []
    for head in every:
        with silenced(attention, [head]):
            without.append(judged(translator, pairs))
        with silenced(attention, [other for other in every if other != head]):
            alone.append(judged(translator, pairs))
    with silenced(attention, list(every)):
        none = judged(translator, pairs)
    shown = []
    for text in SHOWN:
        tokens, weights = looked_at(translator, text)
        (translation,) = translator.translate([text], beam_size=1)
        shown.append({"text": text, "translation": translation, "tokens": tokens, "weights": rounded(weights)})
    english, _ = PAIR
    (italian,) = translator.translate([english], beam_size=1)
    return {
        "heads": statistics(translator, pairs),
        "whole": judged(translator, pairs),
        "without": without,
        "alone": alone,
        "none": none,
        "sentences": shown,
        "pair": {"english": english, "italian": italian, **crossed(translator, english, italian)},
    }


def told(heads: int, with_output: bool, seed: int, open_it: bool) -> dict[str, Any]:
    """Train one translator; return its row of the record and, on request, the data about its heads."""
    corpus = build_corpus()
    translator = trained(heads, with_output, seed)
    row: dict[str, Any] = {"weights": sum(parameter.numel() for parameter in translator.model.parameters())}
    for split in ("test", "held_out"):
        row[split] = judged(translator, getattr(corpus, split)[:JUDGED])
    return {"row": row, "opened": opened(translator) if open_it else None}


def main() -> None:
    """Train the nine translators, open one, and write the record."""
    torch.set_num_threads(1)
    record: dict[str, Any] = {"sizes": SIZES, "steps": SETTINGS["steps"], "judged": JUDGED, "seeds": SEEDS, "kinds": {}}
    kept = Kept("heads", [record, KINDS, SETTINGS, SHOWN, PAIR, torch.__version__])
    for name, (heads, with_output) in KINDS.items():
        rows = []
        for seed in SEEDS:
            first = name == "four heads" and seed == SEEDS[0]
            found = kept.made(f"{name}, seed {seed}", partial(told, heads, with_output, seed, first))
            rows.append(found["row"])
            print(name, seed, found["row"], flush=True)
            if first:
                record["opened"] = found["opened"]
        record["kinds"][name] = rows
    text = json.dumps(record, ensure_ascii=False)
    RECORD.write_text(re.sub(r"(\}\]?, )", r"\1\n", text) + "\n", encoding="utf-8")
    kept.forget()


if __name__ == "__main__":
    main()
