"""Two measurements that chapter 10 shows: what a warm-up is worth, and how training's own accuracy flatters.

    python -m book.recorded.training                everything, on all cores; what is recorded already is kept

The sentences, the batches and the number of steps are those of chapter 10's laboratory. Under 10 minutes on two cores.
"""

import argparse
import json
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

import torch

from book.recorded import laboratory
from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import Batch, BatchStream, pad_sequences, shift_right
from transformer_ref.model.transformer import Transformer
from transformer_ref.processors import usable_processors
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import BOS, EOS, PAD
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.schedule import inverse_sqrt_factor
from transformer_ref.training.trainer import train_step, validation_loss

RECORD = FOLDER / "training.json"
SEEDS, STEPS, WARM_UP = laboratory.SEEDS, laboratory.STEPS, laboratory.WARM_UP
LAYERS = 3  # on each side; where the norm is matters more, the deeper the model is
NORMS = {"post-norm": False, "pre-norm": True}
TRIED = tuple((norm, rate) for norm in NORMS for rate in (2e-3, 4e-3))  # what is added is recorded by the next call
STARTS = {"warm-up": True, "none": False}
LOOKS = (50, 100, 150, 200, 300, 400, 500, 600)  # steps after which accuracies are taken


def factor(step: int, warm: bool) -> float:
    """Return the share of the peak rate at a step, counted from 1; without a warm-up it is 1 in the first steps."""
    return inverse_sqrt_factor(max(step, 1 if warm else WARM_UP), WARM_UP)


def deep(norm_first: bool, seed: int) -> Transformer:
    """Return the laboratory's model with three layers on each side."""
    words = laboratory.corpus()
    config = ModelConfig(
        len(words.source), len(words.target), d_model=64, heads=4, encoder_layers=LAYERS, decoder_layers=LAYERS,
        d_ff=128, dropout=0.1, norm_first=norm_first, tie_embeddings=False, max_length=64,
    )  # fmt: skip
    return Transformer(config, torch.Generator().manual_seed(seed))


def batches(seed: int) -> Iterator[Batch]:
    """Return the laboratory's batches, one for each step."""
    torch.manual_seed(seed)  # of dropout
    sides = map(list, zip(*laboratory.corpus().train, strict=True))
    stream = BatchStream(*sides, laboratory.TOKENS, PAD, BOS, EOS, seed)
    return (batch for _, batch in zip(range(STEPS), stream, strict=False))


def unseen() -> Batch:
    """Return the evaluation sentences as one batch."""
    test = laboratory.corpus().test
    source, labels = (pad_sequences([[*pair[side], EOS] for pair in test], PAD) for side in (0, 1))
    return Batch(source, shift_right(labels, BOS), labels)


def warm_up(norm: str, rate: float, start: str, seed: int) -> dict:
    """Train once with Adam at that peak rate, and return the curve and the loss of the last steps."""
    torch.set_num_threads(1)
    model = deep(NORMS[norm], seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step, batch in enumerate(batches(seed), start=1):
        optimizer.param_groups[0]["lr"] = rate * factor(step, STARTS[start])
        losses.append(train_step(model, batch, optimizer, MeanLoss(PAD), max_grad_norm=1.0).loss)
    size = STEPS // laboratory.POINTS
    return {
        "curve": [round(sum(losses[first : first + size]) / size, 4) for first in range(0, STEPS, size)],
        "loss": round(sum(losses[-laboratory.LAST :]) / laboratory.LAST, 4),
        "unseen": round(validation_loss(model, [unseen()], PAD), 4),
    }


def accuracies(model: Transformer) -> dict:
    """Return the token accuracies on unseen sentences, with the correct prefix and with the model's own."""
    batch, model = unseen(), model.eval()
    real = batch.target_labels != PAD  # (sentence, target)
    with torch.inference_mode():
        forced = model(batch.source, batch.target_input).argmax(dim=-1)
    found = laboratory.translations(
        laboratory.Experiment(model, MeanLoss(PAD)), [source for source, _ in laboratory.corpus().test]
    )
    own = torch.nn.functional.pad(pad_sequences([[*ids, EOS] for ids in found], PAD), (0, real.shape[1]), value=PAD)[
        :, : real.shape[1]
    ]  # (sentence, target)
    tokens = int(real.sum())
    return {
        "loss": round(validation_loss(model, [batch], PAD), 4),
        "forced": round(int(((forced == batch.target_labels) & real).sum()) / tokens, 4),
        "own": round(int(((own == batch.target_labels) & real).sum()) / tokens, 4),
        "sentences": round(sum(ids == pair[1] for ids, pair in zip(found, laboratory.corpus().test, strict=True))
                           / len(found), 4),
    }  # fmt: skip


def course(seed: int) -> list[dict]:
    """Train the laboratory's correct model, and return the accuracies after each of LOOKS."""
    torch.set_num_threads(1)
    experiment = laboratory.sound(seed)
    optimizer = torch.optim.Adam(experiment.model.parameters(), lr=laboratory.RATE, betas=(0.9, 0.98))
    seen = []
    for step, batch in enumerate(batches(seed), start=1):
        optimizer.param_groups[0]["lr"] = laboratory.RATE * min(step / WARM_UP, (STEPS - step + 1) / (STEPS - WARM_UP))
        train_step(experiment.model, batch, optimizer, experiment.loss, max_grad_norm=1.0)
        if step in LOOKS:
            with torch.random.fork_rng():
                seen.append({"step": step, **accuracies(experiment.model)})
    return seen


def about() -> dict:
    """The record's description of its making."""
    words = laboratory.corpus()
    return {
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "pairs": len(words.train), "unseen": len(words.test), "steps": STEPS, "warm_up": WARM_UP, "layers": LAYERS,
        "seeds": list(SEEDS), "looks": list(LOOKS),
        "weights": sum(parameter.numel() for parameter in deep(True, 1).parameters()),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing in the record, writing after each training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=usable_processors(), help="trainings at a time")
    chosen = parser.parse_args(arguments)
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if record.get("about") != about():
        record = {"about": about(), "warm_up": {}, "course": {}}
    for norm, rate in TRIED:
        for start in STARTS:
            record["warm_up"].setdefault(f"{norm}, {rate:g}, {start}", {})
    with ProcessPoolExecutor(chosen.processes) as pool:
        waiting = {
            pool.submit(course, seed): ("course", str(seed)) for seed in SEEDS if str(seed) not in record["course"]
        }
        for name, seeds in record["warm_up"].items():
            norm, rate, start = name.split(", ")
            for seed in SEEDS:
                if str(seed) not in seeds:
                    waiting[pool.submit(warm_up, norm, float(rate), start, seed)] = (name, str(seed))
        for done in as_completed(waiting):
            name, seed = waiting[done]
            (record["course"] if name == "course" else record["warm_up"][name])[seed] = done.result()
            print(f"{name}, seed {seed}", flush=True)
            write(record)
    write(record)


def write(record: dict) -> None:
    """Write the record atomically."""
    for found in (record["course"], *record["warm_up"].values()):
        ordered = dict(sorted(found.items()))
        found.clear()
        found.update(ordered)
    part = RECORD.with_suffix(".part")
    part.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(RECORD)


if __name__ == "__main__":
    main()
