"""Train the solutions' own Transformer as the package's is trained, and ask both alike: own_translator.json.

    python -m book.recorded.own_translator [my_transformer.py]

Without a file, `assemble` gathers one from the solutions. Its model learns the built-in corpus by the recipe of
`python -m transformer_ref train`, and is asked for the sentences that the package's translator was asked for (see
`live_model`). The record is written after every seed, and a seed that is in it is not trained again. Five minutes
of one core a seed.
"""

import json
import platform
import sys
import tempfile
import time
from pathlib import Path

import torch

from autograder.__main__ import main as autograder
from book.recorded.heads import judged
from transformer_ref.config import TrainingConfig
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_training import OwnParts, own_settings
from transformer_ref.recording import FOLDER, recording
from transformer_ref.training.recipes import RECIPES, load_split
from transformer_ref.training.run import changed, prepare
from transformer_ref.training.trainer import Progress, fit
from transformer_ref.translate import Translator

SEEDS = (1,)
SPLITS = ("test", "held_out")
RECORD = FOLDER / "own_translator.json"


def assembled() -> OwnCode:
    """Return the file that `assemble` makes of the solutions."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "my_transformer.py"
        if autograder(["assemble", "--from", "solutions", "--output", str(file)]):
            raise SystemExit("nothing could be assembled")
        return OwnCode.read(file)


def trained(code: OwnCode, config: TrainingConfig) -> Translator:
    """Return a translator of this code, trained on the built-in corpus."""
    recipe = RECIPES["grammar"]
    splits = [load_split("grammar", split, *recipe.languages) for split in ("train", "validation")]
    run = prepare("grammar", *splits, recipe.languages, config, torch.device("cpu"), recipe, parts=OwnParts(code))

    def say(progress: Progress) -> None:
        if progress.step % 50 == 0:
            print(f"step {progress.step:,} of {config.steps:,}, loss {run.training.losses[-1]:.3f}", flush=True)

    fit(run.training, say)
    model = run.training.average.of(run.training.model) if run.training.average else run.training.model
    return Translator(model.eval(), run.source_tokenizer, run.target_tokenizer)


def main() -> None:
    """Train the seeds that are missing in the record, writing after each."""
    torch.set_num_threads(1)
    code = OwnCode.read(sys.argv[1]) if sys.argv[1:] else assembled()
    settings = own_settings(RECIPES["grammar"].training, code)
    reference = recording("live_model")["scores"]
    about = {
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "steps": settings.steps, "sentences": reference["test"]["sentences"], "parts": code.whose(),
        "command": "python -m book.recorded.own_translator",
    }  # fmt: skip
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if record.get("about") != about:
        record = {"about": about, "seeds": {}}
    corpus = build_corpus()
    for seed in SEEDS:
        if str(seed) in record["seeds"]:
            continue
        began = time.process_time()
        translator = trained(code, changed(settings, seed=seed))
        seconds = round(time.process_time() - began)
        scores = {split: judged(translator, getattr(corpus, split)[: about["sentences"]]) for split in SPLITS}
        record["seeds"][str(seed)] = {"seconds": seconds, **scores}
        print(seed, seconds, "s", scores, "the package's:", {split: reference[split] for split in SPLITS}, flush=True)
        RECORD.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
