"""Pack a trained translator for a reader's browser: what chapter 00 loads on a click.

    python -m transformer_ref train
    python -m book.recorded.live_model --checkpoint build/translator

Run it again after every training that the book should show. It writes transformer_ref/pretrained/live_model_weights.js
(`transformer_ref.live_model` says how), and among the recordings live_model.json: how the packed model does, and what
it says about a few sentences. Half a minute on one core.

The browser's side is transformer_ref/pretrained/live_model.js, and a test holds it equal to this one.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from transformer_ref.atomic_write import atomic_write
from transformer_ref.checkpoint import load_checkpoint
from transformer_ref.config import DecodingConfig
from transformer_ref.data.batching import pad_sequences
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.evaluation import exact_match, sense_accuracy
from transformer_ref.live_model import PREFIX, SUFFIX, WEIGHTS, Packed, pack, unpack
from transformer_ref.model.transformer import Transformer
from transformer_ref.recording import FOLDER
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.translate import Translator

RECORD = FOLDER / "live_model.json"
SHOWN = (
    "I closed the windows.",
    "I bought new windows for my computer.",
    "She visited the bank near the river.",
    "We cleaned the old keys of the house.",
)
LIKELIEST = 3  # of the words that could be written next, how many the page shows


@torch.inference_mode()
def looked_at(packed: Packed, text: str) -> dict[str, Any]:
    """Return a sentence's tokens, its translation, and for each generated token its attention and its alternatives.

    weights: cross-attention of the decoder's last layer, the mean over its heads. likeliest: the three most probable
    tokens at this position and their probabilities.
    """
    model, tokenizer = packed
    source = [*tokenizer.encode(text), model.config.eos]
    source_ids = torch.tensor([source])  # (1, source)
    target_ids = greedy_decode(model, source_ids, len(source) + DecodingConfig.extra_length)  # (1, target)
    decoded = model.decode(target_ids[:, :-1], model.encode(source_ids), need_weights=True)
    weights = decoded.cross_weights[-1][0].mean(dim=0)  # (target, source)
    shares, ids = model.logits(decoded.hidden)[0].softmax(-1).topk(LIKELIEST)  # (target, LIKELIEST), twice
    names = tokenizer.vocabulary.tokens
    return {
        "text": text,
        "translation": tokenizer.decode(target_ids[0].tolist()),
        "source": [names[id] for id in source],
        "target": [names[id] for id in target_ids[0, 1:].tolist()],
        "weights": [[round(share, 3) for share in row] for row in weights.tolist()],
        "likeliest": [
            [[names[id], round(share, 4)] for id, share in zip(*step, strict=True)]
            for step in zip(ids.tolist(), shares.tolist(), strict=True)
        ],
    }


@torch.inference_mode()
def sureness(packed: Packed, texts: list[str]) -> list[float]:
    """Return for each text the mean log-probability of the tokens of its greedy translation."""
    model, tokenizer = packed
    means = []
    for start in range(0, len(texts), 100):
        ids = [[*tokenizer.encode(text), model.config.eos] for text in texts[start : start + 100]]
        source_ids = pad_sequences(ids, model.config.pad)  # (batch, source)
        target_ids = greedy_decode(model, source_ids, source_ids.shape[1] + DecodingConfig.extra_length)
        logs = model(source_ids, target_ids[:, :-1]).log_softmax(-1)  # (batch, target, vocabulary)
        logs = logs.gather(-1, target_ids[:, 1:, None])[:, :, 0]  # (batch, target)
        written = target_ids[:, 1:] != model.config.pad  # (batch, target)
        means += ((logs * written).sum(1) / written.sum(1)).tolist()
    return means


def calibrated(packed: Packed) -> dict[str, Any]:
    """Return the lowest confidence and the greatest length among the corpus's sentences outside the training set.

    The page calls a translation "outside its world" beyond these; live_model.js has both numbers, rounded.
    """
    corpus = build_corpus(train=0)
    texts = [pair.english for pair in (*corpus.test, *corpus.held_out)]
    return {
        "sentences": len(texts),
        "lowest_mean_log": round(min(sureness(packed, texts)), 3),
        "most_tokens": max(len(packed.tokenizer.encode(text)) for text in texts),
    }


def judged(packed: Packed) -> dict[str, Any]:
    """Return the scores of the packed model on sentences that it was not trained on, decoded greedily."""
    corpus = build_corpus()
    translator = Translator(packed.model, packed.tokenizer, packed.tokenizer)
    scores = {}
    for split in ("test", "held_out"):
        pairs = getattr(corpus, split)
        translations = translator.translate([pair.english for pair in pairs], beam_size=1)
        scores[split] = {
            "sentences": len(pairs),
            "exact": round(exact_match(translations, [pair.italian for pair in pairs]), 4),
            "sense": round(sense_accuracy(translations, pairs), 4),
        }
    return scores


def largest_gap(original: Transformer, packed: Packed) -> float:
    """Return the largest change of a log-probability by rounding, over the shown sentences."""
    ids = [[*packed.tokenizer.encode(text), original.config.eos] for text in SHOWN]
    source_ids = pad_sequences(ids, original.config.pad)  # (batch, source)
    target_ids = greedy_decode(original, source_ids, DecodingConfig.extra_length)  # (batch, target)
    with torch.inference_mode():
        one, other = (model(source_ids, target_ids[:, :-1]).log_softmax(-1) for model in (original, packed.model))
    likely = one.amax(-1, keepdim=True) - one < 5  # what has no chance may move
    written = target_ids[:, 1:, None] != original.config.pad  # (batch, target, 1)
    return (one - other)[likely & written].abs().max().item()


def main() -> None:
    """Pack and evaluate the model, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, default=Path("build/translator"), help="what `train` left")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, source_tokenizer, target_tokenizer, _ = load_checkpoint(options.checkpoint)
    if not isinstance(source_tokenizer, WordTokenizer) or source_tokenizer.to_json() != target_tokenizer.to_json():
        raise SystemExit("checkpoint: expected one word tokenizer for both languages, as the built-in corpus has it")
    described = pack(model, source_tokenizer)
    packed = unpack(described)
    script = PREFIX + json.dumps(described, separators=(",", ":")) + SUFFIX  # ASCII: any page can load it
    record = {
        "bytes": len(script.encode()),
        "weights": sum(parameter.numel() for parameter in model.parameters()),
        "tokens": len(described["tokens"]),
        "moved_by_rounding": round(largest_gap(model, packed), 3),
        "scores": judged(packed),
        "world": calibrated(packed),
        "sentences": [looked_at(packed, text) for text in SHOWN],
    }
    atomic_write(WEIGHTS, script)
    atomic_write(RECORD, json.dumps(record, ensure_ascii=False) + "\n")
    print(
        f"{record['weights']:,} weights in {record['bytes']:,} bytes; rounding moves a log-probability by at most "
        f"{record['moved_by_rounding']}"
    )
    for split, score in record["scores"].items():
        print(
            f"{split}: {score['exact']:.1%} of {score['sentences']:,} sentences exactly right, "
            f"{score['sense']:.1%} in the right sense"
        )
    for sentence in record["sentences"]:
        print(f"  {sentence['text']}  ->  {sentence['translation']}")


if __name__ == "__main__":
    main()
