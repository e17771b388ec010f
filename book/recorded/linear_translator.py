"""Record how a translator does whose attention is linear: linear_translator.json, for chapter 16.

    python -m book.recorded.linear_translator

The four-headed translator of `book.recorded.heads`, from the same seeds, with features instead of the softmax in every
attention. Its twins with softmax are in heads.json. Six minutes of one quiet core.
"""

import dataclasses
import json
import time
from typing import Any

import torch

from book.recorded.heads import JUDGED, KINDS, SEEDS, SETTINGS, SIZES, attentions, judged
from transformer_ref.beyond.efficient import FeatureAttention
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.recording import FOLDER
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.recipes import RECIPES, load_split, varied
from transformer_ref.training.run import changed, prepare
from transformer_ref.training.trainer import fit
from transformer_ref.translate import Translator

RECORD = FOLDER / "linear_translator.json"


def trained(seed: int) -> Translator:
    """Return a translator with linear attention that has learned the built-in corpus."""
    heads, _ = KINDS["four heads"]
    recipe = varied(RECIPES["grammar"], model=dict(SIZES, heads=heads))
    config = changed(recipe.training, seed=seed, **SETTINGS)
    splits = [load_split("grammar", split, *recipe.languages) for split in ("train", "validation")]
    run = prepare("grammar", *splits, recipe.languages, config, torch.device("cpu"), recipe)
    for attention in attentions(run.training.model):
        attention.__class__ = FeatureAttention
    loss = MeanLoss(run.training.loss.pad, run.training.loss.smoothing)  # the quick one has its own attention
    fit(dataclasses.replace(run.training, loss=loss), lambda progress: False)
    return Translator(run.training.model.eval(), run.source_tokenizer, run.target_tokenizer)


def main() -> None:
    """Train the three translators, and write what they can do."""
    torch.set_num_threads(1)
    corpus, rows = build_corpus(), []
    about = {"command": "python -m book.recorded.linear_translator", "torch": torch.__version__}
    for seed in SEEDS:
        began = time.process_time()
        translator = trained(seed)
        row: dict[str, Any] = {
            split: judged(translator, getattr(corpus, split)[:JUDGED]) for split in ("test", "held_out")
        }
        rows.append(row)
        print(seed, f"{time.process_time() - began:.0f} s", row, flush=True)
        record = about | {"sizes": SIZES, "steps": SETTINGS["steps"], "judged": JUDGED, "seeds": SEEDS, "linear": rows}
        RECORD.write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
