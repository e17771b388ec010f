"""Record what each part of a translator is worth: ablations.json, for chapter 12.

    python -m book.recorded.ablations

A small translator learns the built-in English and Italian, whole and with one thing changed, each from three seeds.
The record is written after every training, and a training run that is in it is not done again, so that the command can
be interrupted. Forty minutes of one core.
"""

import json
import re
import time
from typing import Any

import torch
from torch import nn

from book.recorded.heads import judged
from book.recorded.positions import NoPositions
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.model.positional_encoding import LearnedPositions
from transformer_ref.recording import FOLDER
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.recipes import RECIPES, load_split, varied
from transformer_ref.training.run import changed, prepare
from transformer_ref.training.trainer import fit
from transformer_ref.translate import Translator

SIZES = dict(d_model=64, d_ff=128, heads=4)
SETTINGS = dict(steps=800, precision="fp32")
SEEDS = (1, 2, 3)
JUDGED = 500  # sentences of each split
ABLATIONS: dict[str, dict[str, Any]] = {  # fields of the configurations, or what gives the positions
    "nothing changed": {},
    "one head": {"heads": 1},
    "two heads": {"heads": 2},
    "eight heads": {"heads": 8},
    "no positions": {"positions": NoPositions},
    "learned positions": {"positions": LearnedPositions},
    "no label smoothing": {"label_smoothing": 0.0},
    "no warm-up": {"warmup_steps": 0},
    "post-norm": {"norm_first": False},
    "post-norm, no warm-up": {"norm_first": False, "warmup_steps": 0},
}
OF_TRAINING = ("label_smoothing", "warmup_steps")
RECORD = FOLDER / "ablations.json"


def with_positions(model: nn.Module, kind: type) -> None:
    """Replace the sinusoids of the model by another positional encoding."""
    config = model.config
    model.positions = kind() if kind is NoPositions else kind(config.max_length, config.d_model)


def trained(seed: int, positions: type | None = None, **changes: Any) -> Translator:
    """Return a translator that was trained on the built-in corpus with these changes."""
    of_training = {name: changes.pop(name) for name in OF_TRAINING if name in changes}
    recipe = varied(RECIPES["grammar"], model={**SIZES, **changes})
    config = changed(recipe.training, seed=seed, **SETTINGS, **of_training)
    splits = [load_split("grammar", split, *recipe.languages) for split in ("train", "validation")]
    run = prepare("grammar", *splits, recipe.languages, config, torch.device("cpu"), recipe)
    training = run.training
    torch.manual_seed(seed)  # learned positions draw from the global generator
    if positions:
        with_positions(training.model, positions)
        training.optimizer = build_optimizer(training.model, config)  # it knows the new table, if there is one
    fit(training)
    return Translator(training.model.eval(), run.source_tokenizer, run.target_tokenizer)


def main() -> None:
    """Train what is missing in the record, and write it."""
    torch.set_num_threads(1)
    corpus = build_corpus()
    about = {"sizes": SIZES, "steps": SETTINGS["steps"], "judged": JUDGED, "torch": torch.__version__}
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record = {**about, "ablations": record.get("ablations", {}) if record.items() >= about.items() else {}}
    for name, changes in ABLATIONS.items():
        rows = record["ablations"].setdefault(name, [])
        for seed in SEEDS[len(rows) :]:
            began = time.process_time()
            translator = trained(seed, **changes)
            row: dict[str, Any] = {"weights": sum(each.numel() for each in translator.model.parameters())}
            for split in ("test", "held_out"):
                row[split] = judged(translator, getattr(corpus, split)[:JUDGED])
            rows.append(row)
            print(name, seed, f"{time.process_time() - began:.0f} s", row, flush=True)
            text = re.sub(r"(\}\]?, )", r"\1\n", json.dumps(record))
            RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
