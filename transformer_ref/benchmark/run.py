"""What `python -m transformer_ref benchmark` does."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from transformer_ref.benchmark.contest import Row, contest, rows_of
from transformer_ref.benchmark.decoding import BEAM, decoding_contenders, sources, talker
from transformer_ref.benchmark.record import RESULT_FILE, WORKS, machine, write
from transformer_ref.benchmark.training import TOKENS_PER_BATCH, invented_batches, training_contenders
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.device import choose_precision
from transformer_ref.training.cost import operations_per_pair, product_rate

VOCABULARY = 8_000
SIZES = {
    "d256": dict(d_model=256, heads=4, encoder_layers=3, decoder_layers=3, d_ff=1_024),
    "d128": dict(d_model=128, heads=4, encoder_layers=4, decoder_layers=4, d_ff=512),
}
MEASURED_BATCHES = 20  # to know the mean number of operations a token


def model_config(size: str) -> ModelConfig:
    """Return the model of a size, in the variant that all peers have: post-norm, tied, ReLU."""
    return ModelConfig(
        VOCABULARY, VOCABULARY, tie_embeddings=True, layout="concatenated", max_length=256, **SIZES[size]
    )


def benchmark(
    output: Path,
    device: torch.device,
    works: Sequence[str] = WORKS,
    sizes: Sequence[str] = tuple(SIZES),
    repeats: int = 3,
    say: Callable[[str], None] = print,
) -> list[Row]:
    """Measure, write output/benchmark.json and return its new rows.

    works: which of training, greedy and beam; sizes: of the models trained, the first also decodes.
    bf16 is left out where it is not fast.
    """
    if repeats < 1:
        raise ValueError(f"repeats: expected at least 1, got {repeats}")
    fast = choose_precision("auto", device) == torch.bfloat16
    precisions = ["fp32", "bf16"] if fast else ["fp32"]
    say(f"importing transformer_ref.translate takes {import_milliseconds():.0f} ms after torch")
    rows: list[Row] = []
    for size in sizes if "training" in works else ():
        say(f"training {size}, batches of {TOKENS_PER_BATCH:,} tokens")
        rows += _training_rows(size, device, precisions, repeats, say)
        write(output / RESULT_FILE, machine(device), rows)
    for work, beam in (("greedy", 1), ("beam", BEAM)):
        if work in works:
            config = model_config(sizes[0])
            model, sentences = talker(config, output, device, say), sources(config)
            say(f"{work} {sizes[0]}, {len(sentences):,} sentences")
            contenders = decoding_contenders(model, sentences, beam, output, precisions)
            speeds = contest(contenders, repeats, say)
            rows += rows_of(work, sizes[0], contenders, speeds, lambda precision, speed: None)
            write(output / RESULT_FILE, machine(device), rows)
    return rows


def import_milliseconds() -> float:
    """Return what importing all that a translation needs takes after torch, in a fresh process."""
    code = (
        "import time, torch; start = time.perf_counter(); import transformer_ref.translate; "
        "print(1000 * (time.perf_counter() - start))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _training_rows(
    size: str, device: torch.device, precisions: list[str], repeats: int, say: Callable[[str], None]
) -> list[Row]:
    config = model_config(size)
    contenders = training_contenders(config, device, precisions)
    before = _peaks(device, precisions)
    speeds = contest(contenders, repeats, say)
    peaks = {precision: max(rate, before[precision]) for precision, rate in _peaks(device, precisions).items()}
    per_token = operations_per_token(config)
    return rows_of("training", size, contenders, speeds, lambda precision, speed: speed * per_token / peaks[precision])


def operations_per_token(config: ModelConfig) -> float:
    """Return the operations in matrix products that a real target token of the invented batches costs to train on."""
    operations, tokens = 0.0, 0
    batches = invented_batches(config.target_vocabulary)
    for _ in range(MEASURED_BATCHES):
        batch = next(batches)
        real = batch.target_labels != config.pad
        for source, target in zip((batch.source != config.pad).sum(1).tolist(), real.sum(1).tolist(), strict=True):
            operations += operations_per_pair(config, source, target)
        tokens += int(real.sum())
    return operations / tokens


def _peaks(device: torch.device, precisions: list[str]) -> dict[str, float]:
    return {precision: product_rate(TrainingConfig(precision=precision), device) for precision in precisions}
