"""Train the same small translator with one classic mistake at a time: laboratory.json, which chapters 08 and 10 show.

    python -m book.recorded.laboratory              everything anew, on all cores
    python -m book.recorded.laboratory --only NAME  one fault anew

Each training is the sound one but for the fault, over three seeds, on short sentences of the built-in English-Italian
corpus. Under 30 minutes on two cores. Interrupted, the same command goes on where it stopped.
"""

import argparse
import inspect
import json
import platform
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from typing import NamedTuple

import torch

from book.recorded import laboratory_tests
from book.recorded.alignment import words_of
from book.recorded.kept import Kept
from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import BatchStream, pad_sequences
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.faults.experiment import Experiment
from transformer_ref.faults.known import FAULTS
from transformer_ref.model.transformer import Transformer
from transformer_ref.processors import usable_processors
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import BOS, EOS, PAD
from transformer_ref.text.vocabulary import Vocabulary
from transformer_ref.training.loss import MeanLoss

COMMON_WORDS, SHORTEST, LONGEST = 200, 3, 7
STEPS, WARM_UP, TOKENS, RATE = 600, 60, 512, 4e-3
SEEDS = (1, 2, 3)
POINTS = 40  # of a curve; each is the mean of the steps since the last
LAST = 50  # steps whose mean loss stands for the end of a training
SOUND = "none"
SHOWN = (
    "I closed the windows.",
    "Tomorrow she will install Windows.",
    "They will not open the old lock.",
    "Yesterday she broke the bat.",
)
RECORD = FOLDER / "laboratory.json"


class Corpus(NamedTuple):
    """Short sentences of common words: ids for training, ids for evaluation, and the vocabulary."""

    train: list[tuple[list[int], list[int]]]
    test: list[tuple[list[int], list[int]]]
    source: Vocabulary
    target: Vocabulary


@cache
def corpus() -> Corpus:
    """Return the corpus of all training runs."""
    whole = build_corpus(train=60_000, validation=0, test=2_000, held_out=0)
    train, test = (
        [
            (words_of(pair.english), words_of(pair.italian))
            for pair in split
            if SHORTEST <= len(pair.english.split()) <= LONGEST
        ]
        for split in (whole.train, whole.test)
    )
    common = {word for word, _ in Counter(word for english, _ in train for word in english).most_common(COMMON_WORDS)}
    shown = {words_of(text) for text in SHOWN}
    train = [pair for pair in train if common.issuperset(pair[0]) and pair[0] not in shown]
    source, target = (Vocabulary.build(side) for side in zip(*train, strict=True))
    test = [pair for pair in test if pair not in set(train) and common.issuperset(pair[0])]
    test = [pair for pair in test if all(word in target for word in pair[1])]
    train, test = ([(source.encode(a), target.encode(b)) for a, b in split] for split in (train, test))
    return Corpus(train, test, source, target)


def sound(seed: int) -> Experiment:
    """Return a training run without a fault, before its first step."""
    words = corpus()
    config = ModelConfig(
        len(words.source), len(words.target), d_model=64, heads=4, encoder_layers=1, decoder_layers=1, d_ff=128,
        dropout=0.1, norm_first=True, tie_embeddings=False, max_length=64,
    )  # fmt: skip
    return Experiment(Transformer(config, torch.Generator().manual_seed(seed)), MeanLoss(PAD))


def broken(name: str, seed: int) -> Experiment:
    """Return a training run with the fault of that name, or without any for `SOUND`, before its first step."""
    experiment = sound(seed)
    for fault in FAULTS:
        if fault.name == name:
            fault.put(experiment)
    return experiment


def train(experiment: Experiment, seed: int, steps: int = STEPS) -> list[float]:
    """Train and return the loss of each step."""
    words = corpus()
    torch.manual_seed(seed)  # of dropout
    stream = BatchStream(*map(list, zip(*words.train, strict=True)), TOKENS, PAD, BOS, EOS, seed)
    optimizer = torch.optim.Adam(experiment.weights(experiment.model), lr=RATE * experiment.rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM_UP, (steps - step) / (steps - WARM_UP))
    )
    losses = []
    for _, batch in zip(range(steps), stream, strict=False):
        losses.append(experiment.step(experiment, experiment.batch(batch), optimizer))
        schedule.step()
    return losses


def translations(experiment: Experiment, sources: Sequence[list[int]], extra_pads: int = 0) -> list[list[int]]:
    """Return the greedy translation of each source, in one batch, as ids before <eos>."""
    ids = pad_sequences([[*source, EOS] for source in sources], PAD)
    ids = torch.nn.functional.pad(ids, (0, extra_pads), value=PAD)
    found = []
    for row in experiment.translate(experiment, ids, 2 * LONGEST).tolist():
        row = row[1:]
        found.append([token for token in (row[: row.index(EOS)] if EOS in row else row) if token != PAD])
    return found


def measure(name: str, seed: int) -> dict:
    """Train with one fault and one seed, and return the record."""
    torch.set_num_threads(1)
    words = corpus()
    experiment = broken(name, seed)
    losses = train(experiment, seed)
    sources, targets = zip(*words.test, strict=True)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found = translations(experiment, sources)
        padded = translations(experiment, sources, extra_pads=4)
        shown = translations(experiment, [words.source.encode(words_of(text)) for text in SHOWN])
    size = STEPS // POINTS
    return {
        "curve": [round(sum(losses[first : first + size]) / size, 4) for first in range(0, STEPS, size)],
        "loss": round(sum(losses[-LAST:]) / LAST, 4),
        "right": round(sum(map(list.__eq__, found, targets)) / len(targets), 4),
        "moved_by_padding": round(sum(a != b for a, b in zip(found, padded, strict=True)) / len(found), 4),
        "translations": [" ".join(words.target.decode(ids)) for ids in shown],
    }


def about() -> dict:
    """The record's description of its making."""
    words = corpus()
    return {
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "pairs": len(words.train), "unseen": len(words.test), "steps": STEPS, "tokens_per_batch": TOKENS,
        "seeds": list(SEEDS), "weights": sum(p.numel() for p in sound(1).model.parameters()),
        "sentences": list(SHOWN),
    }  # fmt: skip


def described(name: str) -> dict:
    """Return what a reader sees of a fault besides its numbers: the line, and the test that finds it."""
    for fault in FAULTS:
        if fault.name == name:
            test = inspect.getsource(getattr(laboratory_tests, fault.test))
            return {"code": fault.code, "sound": fault.sound, "test": test}
    return {}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the requested faults, storing each run, then write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the name of one fault, trained anew")
    parser.add_argument("--processes", type=int, default=usable_processors(), help="trainings at a time")
    chosen = parser.parse_args(arguments)
    names = [SOUND, *(fault.name for fault in FAULTS)]
    if chosen.only and chosen.only not in names:
        parser.error(f"--only: expected one of {', '.join(names)}, got {chosen.only}")
    record = json.loads(RECORD.read_text(encoding="utf-8")) if chosen.only else {"about": about(), "faults": {}}
    if record["about"] | {"versions": None} != about() | {"versions": None}:
        parser.error("--only: the record is of other settings; train all of it")
    trained = [chosen.only] if chosen.only else names
    kept = Kept("laboratory " + (chosen.only or "all"), about())
    train_all(trained, kept, chosen.processes)
    found = {name: {str(seed): kept[f"{name}, seed {seed}"] for seed in SEEDS} for name in trained}
    seeds = {name: fault["seeds"] for name, fault in record["faults"].items()} | found
    record["faults"] = {name: {**described(name), "seeds": seeds.get(name, {})} for name in names}
    part = RECORD.with_suffix(".part")
    part.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(RECORD)
    print(f"{RECORD.name} is written; the trainings took {kept.seconds / 60:.1f} minutes of one core")
    kept.forget()


def train_all(names: Sequence[str], kept: Kept, processes: int) -> None:
    """Train each name with each seed, unless it is stored, with progress and the time left."""
    every = [(name, seed) for name in names for seed in SEEDS]
    left = [(name, seed) for name, seed in every if f"{name}, seed {seed}" not in kept]
    began, pool = time.perf_counter(), ProcessPoolExecutor(processes)
    try:
        waiting = {pool.submit(timed, name, seed): f"{name}, seed {seed}" for name, seed in left}
        for count, done in enumerate(as_completed(waiting), 1):
            seen, seconds = done.result()
            kept.keep(waiting[done], seen, seconds)
            minutes = (time.perf_counter() - began) / 60 / count * (len(left) - count)
            print(
                f"{len(every) - len(left) + count} of {len(every)}: {waiting[done]}: loss {seen['loss']:.3f}, right "
                f"{seen['right']:.0%}; {seconds:.0f} s, about {minutes:.0f} minutes left",
                flush=True,
            )
    finally:
        pool.shutdown(cancel_futures=True)  # or Ctrl-C would wait for everything that has not begun


def timed(name: str, seed: int) -> tuple[dict, float]:
    """Return what `measure` returns, and its processor seconds."""
    began = time.process_time()
    return measure(name, seed), time.process_time() - began


if __name__ == "__main__":
    main()
