"""Measure everything that `python -m transformer_ref benchmark` shows, piece after piece.

A piece is one work with one model under one instruction set, some of a minute to three minutes. Each is measured in a
process of its own, whose environment limits the instruction set, and added to the result file when it is done. So a run
can be interrupted at any time and goes on where it was.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from transformer_ref.benchmark.contest import Contender, Row, contest, rows_of
from transformer_ref.benchmark.decoding import BEAM, decoding_contenders, endless_model, sentence_batches
from transformer_ref.benchmark.instruction_sets import InstructionSet, instruction_sets
from transformer_ref.benchmark.operations import operations_per_token
from transformer_ref.benchmark.recipes import measured_recipe
from transformer_ref.benchmark.result import CONFIGS, RESULT_FILE, WORKS, add, machine, read, rows_here
from transformer_ref.benchmark.sentences import invented_stream
from transformer_ref.benchmark.training import tokens_per_batch, training_contenders
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.device import choose_precision
from transformer_ref.training.cost import about, product_rate

VOCABULARY = 8_000
SIZES = {
    "d256": dict(d_model=256, heads=4, encoder_layers=3, decoder_layers=3, d_ff=1_024),
    "d128": dict(d_model=128, heads=4, encoder_layers=4, decoder_layers=4, d_ff=512),
}
SECONDS = {  # of each piece on two cores with AVX2, for the first estimate of the time left
    ("training", "d256"): 150,
    ("training", "d128"): 80,
    ("recipe", "grammar"): 40,
    ("recipe", "multi30k"): 40,
    ("greedy", "d256"): 60,
    ("beam", "d256"): 130,
}


class Piece(NamedTuple):
    """One work with one model under one instruction set."""

    instruction_set: str
    work: str
    config: str

    def __str__(self) -> str:
        return f"{self.instruction_set}, {self.work} {self.config}"

    @property
    def seconds(self) -> float:
        """Estimate the seconds that it takes on two cores with AVX2."""
        return SECONDS[self.work, self.config]


class BenchmarkError(ValueError):
    """A piece could not be measured."""


def model_config(size: str) -> ModelConfig:
    """Return the model of a size, in the variant that all peers have: post-norm, tied, ReLU."""
    return ModelConfig(
        VOCABULARY, VOCABULARY, tie_embeddings=True, layout="concatenated", max_length=256, **SIZES[size]
    )


def planned(works: Sequence[str], sets: Sequence[str], configs: Sequence[str] = CONFIGS) -> list[Piece]:
    """Return the pieces of these works and models under these instruction sets, one set after the other."""
    return [
        Piece(name, work, config) for name in sets for work, config in SECONDS if work in works and config in configs
    ]


def benchmark(
    output: Path,
    device: torch.device,
    works: Sequence[str] = WORKS,
    configs: Sequence[str] = CONFIGS,
    only: Sequence[str] | None = None,
    repeats: int = 3,
    again: bool = False,
    say: Callable[[str], None] = print,
    measure_piece: Callable[[Piece, Mapping[str, str], Path, torch.device, int], int] | None = None,
) -> None:
    """Measure what output/benchmark.json does not hold yet and add it there.

    works: which of WORKS; configs: which of CONFIGS.
    only: names of instruction sets, None for all that this machine has.
    again: also measure what the file holds, from this machine and with this code.
    measure_piece: measures a piece in an environment and returns an exit status; by default a new process.
    Raises ValueError for an instruction set that this machine does not have or where there is nothing to measure,
    BenchmarkError naming the pieces that could not be measured, after all others have been.
    """
    if repeats < 1:
        raise ValueError(f"repeats: expected at least 1, got {repeats}")
    sets = _chosen(instruction_sets(device), only)
    pieces, failed = planned(works, list(sets), configs), []
    if not pieces:
        known = ", ".join(" ".join(each) for each in SECONDS)
        raise ValueError(f"config: expected one of {known}, got {', '.join(works)} with {', '.join(configs)}")
    say(f"importing transformer_ref.translate takes {import_milliseconds():.0f} ms after torch")
    expected, spent = 0.0, 0.0
    open_pieces = [piece for piece in pieces if again or not is_measured(output, device, piece)]
    for number, piece in enumerate(pieces, start=1):
        place = f"[{number}/{len(pieces)}] {piece}"
        if piece not in open_pieces:
            say(f"{place}: measured before; --again measures it anew")
            continue
        left = sum(each.seconds for each in open_pieces[open_pieces.index(piece) :])
        say(f"{place} (about {about(left * (spent / expected if expected else 1.0))} left)")
        start = time.perf_counter()
        if (measure_piece or _in_a_process)(piece, sets[piece.instruction_set].environment, output, device, repeats):
            failed.append(piece)
        spent, expected = spent + time.perf_counter() - start, expected + piece.seconds
    if failed:
        raise BenchmarkError(
            f"benchmark: expected every piece to be measured, got no result of {'; '.join(map(str, failed))}; "
            "the errors are above"
        )


def _chosen(sets: Sequence[InstructionSet], only: Sequence[str] | None) -> dict[str, InstructionSet]:
    by_name = {each.name: each for each in sets}
    for name in only or ():
        if name not in by_name:
            raise ValueError(f"instruction_set: expected one of {', '.join(by_name)}, got {name}")
    return {name: each for name, each in by_name.items() if only is None or name in only}


def is_measured(output: Path, device: torch.device, piece: Piece) -> bool:
    """Return whether the result file has the piece, measured on this machine with this code."""
    rows = rows_here(read(output / RESULT_FILE), machine(device, piece.instruction_set))
    return any((row["work"], row["config"]) == (piece.work, piece.config) for row in rows)


def _in_a_process(
    piece: Piece, environment: Mapping[str, str], output: Path, device: torch.device, repeats: int
) -> int:
    options = ["--piece", *piece, "--output", str(output), "--device", str(device), "--repeats", str(repeats)]
    command = [sys.executable, "-m", "transformer_ref", "benchmark", *options]
    return subprocess.run(command, env={**os.environ, **environment}).returncode


def measure(
    output: Path, device: torch.device, piece: Piece, repeats: int = 3, say: Callable[[str], None] = print
) -> list[Row]:
    """Measure a piece in this process, add its rows to output/benchmark.json and return them.

    bf16 is left out where it is not fast.
    """
    precisions = ["fp32", "bf16"] if choose_precision("auto", device) == torch.bfloat16 else ["fp32"]
    if piece.work == "training":
        rows = _training_rows(piece.config, device, precisions, repeats, say)
    elif piece.work == "recipe":
        rows = _recipe_rows(piece.config, device, repeats, say)
    else:
        config, beam = model_config(piece.config), 1 if piece.work == "greedy" else BEAM
        model, batches = endless_model(config, device), sentence_batches(config)
        contenders = decoding_contenders(model, batches, beam, output, precisions)
        rows = rows_of(piece.work, piece.config, contenders, contest(contenders, repeats, say))
    add(output / RESULT_FILE, machine(device, piece.instruction_set), rows)
    return rows


def _training_rows(
    size: str, device: torch.device, precisions: Sequence[str], repeats: int, say: Callable[[str], None]
) -> list[Row]:
    config = model_config(size)
    contenders = training_contenders(config, device, precisions)
    operations = operations_per_token(config, iter(invented_stream(VOCABULARY, tokens_per_batch(device))))
    return _rows_with_share("training", size, contenders, operations, device, repeats, say)


def _recipe_rows(corpus: str, device: torch.device, repeats: int, say: Callable[[str], None]) -> list[Row]:
    say("  preparing")
    contender, operations = measured_recipe(corpus, device)
    return _rows_with_share("recipe", corpus, [contender], operations, device, repeats, say)


def _rows_with_share(
    work: str,
    config: str,
    contenders: Sequence[Contender],
    operations_per_token: float,
    device: torch.device,
    repeats: int,
    say: Callable[[str], None],
) -> list[Row]:
    precisions = sorted({each.precision for each in contenders})
    before = _peaks(device, precisions)
    speeds = contest(contenders, repeats, say)
    peaks = {precision: max(rate, before[precision]) for precision, rate in _peaks(device, precisions).items()}
    return rows_of(work, config, contenders, speeds, lambda of, speed: speed * operations_per_token / peaks[of])


def _peaks(device: torch.device, precisions: Sequence[str]) -> dict[str, float]:
    return {precision: product_rate(TrainingConfig(precision=precision), device) for precision in precisions}


def import_milliseconds() -> float:
    """Return the milliseconds that a fresh process needs to import what a translation uses, torch not counted."""
    code = (
        "import time, torch; start = time.perf_counter(); import transformer_ref.translate; "
        "print(1000 * (time.perf_counter() - start))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)
