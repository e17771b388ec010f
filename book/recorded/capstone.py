"""Calibrate the capstone's scale: capstone.json, by which 12.3 is graded and which chapter 12 shows.

    python -m book.recorded.capstone

The reference and a recurrent translator are trained from three seeds each. Each model reads the same pairs of the
built-in corpus as the notebook's, for as many steps. All are asked what 12.3 asks: lines of combinations that training
never shows, drawn anew again and again. About ten minutes on one core; what is recorded already is kept.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from autograder.catalogue.ch12_capstone.sentences import ITALIAN, LINES, unseen
from book.recorded import recurrent
from transformer_ref import capstone
from transformer_ref.capstone import Experiment
from transformer_ref.data.batching import pad_sequences
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.evaluation import bleu
from transformer_ref.model.transformer import Transformer
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import EOS

SEEDS, DRAWS, MOST = (1, 2, 3), 20, 60  # seeds of a training, draws of lines, tokens of a translation
WIDTH, RATE, SENTENCES = 128, 4e-3, 64  # of the recurrent translator and its batches
RECORD = FOLDER / "capstone.json"
Decode = Callable[[Tensor], Tensor]


def reference(experiment: Experiment, seed: int) -> Decode:
    """Train the notebook's model and return its decoding function, (batch, source) -> (batch, target) with bos."""
    model = Transformer(experiment.config, torch.Generator().manual_seed(seed))
    capstone.train(model, experiment, seed=seed)
    return lambda source: greedy_decode(model, source, MOST)


def baseline(experiment: Experiment, seed: int) -> Decode:
    """Train a recurrent translator without attention, on as many pairs, and return its decoding function."""
    torch.manual_seed(seed)
    model = recurrent.RecurrentTranslator(experiment.tokenizer.size, experiment.tokenizer.size, WIDTH, look_back=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    generator = torch.Generator().manual_seed(seed)
    by_length: dict[int, list[int]] = {}
    for item, source in enumerate(experiment.train.sources):
        by_length.setdefault(len(source), []).append(item)
    lengths, pairs = list(by_length), torch.tensor([float(len(items)) for items in by_length.values()])
    # as many pairs as the reference reads
    steps = capstone.STEPS * capstone.TRAINING.tokens_per_batch // (SENTENCES * 13)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 100, 1 - step / steps))
    for step in range(steps):
        items = by_length[lengths[int(torch.multinomial(pairs, 1, generator=generator))]]
        chosen = [items[place] for place in torch.randint(len(items), (SENTENCES,), generator=generator).tolist()]
        source = torch.tensor([[*experiment.train.sources[item], EOS] for item in chosen])
        labels = pad_sequences([[*experiment.train.targets[item], EOS] for item in chosen], experiment.config.pad)
        loss = recurrent.train_step(model, optimizer, source, labels)
        schedule.step()
        if step % (steps // 20) == 0:
            print(f"recurrent, seed {seed}: step {step} of {steps}, loss {loss:.3f}", flush=True)
    model.eval()

    def decode(source: Tensor) -> Tensor:
        rows = [row[row != experiment.config.pad] for row in source]
        return pad_sequences([[0, *model.translate(row[None], MOST)[0][0].tolist()] for row in rows], 0)

    return decode


def translations(experiment: Experiment, decode: Decode, lines: Sequence[str]) -> list[str]:
    """Return a model's translations of lines, in one batch."""
    source = pad_sequences([[*experiment.tokenizer.encode(line), EOS] for line in lines], experiment.config.pad)
    return [experiment.tokenizer.decode(row[1:]) for row in decode(source).tolist()]


def scores(experiment: Experiment, decode: Decode, draws: int = DRAWS) -> list[float]:
    """Return the BLEU of each draw of lines."""
    found = []
    for draw in range(draws):
        lines = unseen(torch.Generator().manual_seed(1_000 + draw), LINES)
        found.append(bleu(translations(experiment, decode, lines), [ITALIAN[line] for line in lines]).score)
    return [round(score, 3) for score in found]


def scale(record: dict) -> dict[str, float]:
    """Return the scores at which 12.3's points begin and are full.

    none: the mean of the recurrent translator. full: the mean of the reference minus one point and three standard
    deviations, over seeds and draws.
    """
    reached = [score for each in record["reference"].values() for score in each["scores"]]
    below = [score for each in record["recurrent"].values() for score in each["scores"]]
    full = statistics.fmean(reached) - 1 - 3 * statistics.stdev(reached)
    return {"none": round(statistics.fmean(below), 2), "full": round(full, 2)}


def about() -> dict:
    """The record's description of its making."""
    return {
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "pairs": capstone.PAIRS, "steps": capstone.STEPS, "lines": LINES, "draws": DRAWS, "seeds": list(SEEDS),
        "command": "python -m book.recorded.capstone",
    }  # fmt: skip


def measured(train: Callable[[Experiment, int], Decode], experiment: Experiment, seed: int) -> dict:
    """Train with one seed and return the record; seconds are of one processor."""
    began = time.process_time()
    decode = train(experiment, seed)
    seconds = time.process_time() - began
    examples = unseen(torch.Generator().manual_seed(7), 5)
    said = dict(zip(examples, translations(experiment, decode, examples), strict=True))
    return {"scores": scores(experiment, decode), "seconds": round(seconds, 1), "translations": said}


def main() -> None:
    """Train what is missing in the record, writing after each training."""
    torch.set_num_threads(1)
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if record.get("about") != about():
        record = {"about": about(), "reference": {}, "recurrent": {}}
    experiments = {seed: capstone.prepare(seed=seed) for seed in SEEDS[:1]}
    for kind, train in (("reference", reference), ("recurrent", baseline)):
        for seed in SEEDS:
            if str(seed) not in record[kind]:
                experiment = experiments.get(seed) or experiments.setdefault(seed, capstone.prepare(seed=seed))
                record[kind][str(seed)] = seen = measured(train, experiment, seed)
                mean = statistics.fmean(seen["scores"])
                print(f"{kind}, seed {seed}: {mean:.2f} BLEU, {seen['seconds']} s", flush=True)
                write(record)
    record["scale"] = scale(record)
    write(record)
    print(f"0 points at {record['scale']['none']} BLEU, all of them at {record['scale']['full']}")


def write(record: dict) -> None:
    """Write the record atomically."""
    part = RECORD.with_suffix(".part")
    part.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(RECORD)


if __name__ == "__main__":
    main()
