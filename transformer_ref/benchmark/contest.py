"""Measure contenders in turn, several times, and keep the median.

When other programs use the machine for a while, all contenders suffer alike; a ratio of two medians is more reliable
than either speed. Before each turn is a pause: the threads of a library keep spinning for a while after its work.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch


class Contender(NamedTuple):
    """A library, in one precision, that is measured.

    name: OURS, or a peer's; precision: "fp32", "bf16" or "int8".
    work: the measured work; returns how much it did, in tokens or sentences.
    around: a context manager that each turn runs in; first: unmeasured work at the start of a turn, so that steady
    work is measured. It is also the whole of the warm-up round.
    """

    name: str
    precision: str
    work: Callable[[], int]
    around: Callable[[], AbstractContextManager] = nullcontext
    first: Callable[[], object] = lambda: None


class Row(NamedTuple):
    """The measured speed of one contender, in target tokens (training, recipe) or sentences per second."""

    work: str  # training, recipe, greedy or beam
    config: str  # the model's size, d256 or d128; for a recipe the corpus, grammar or multi30k
    name: str  # OURS or a peer's
    precision: str  # fp32, bf16 or int8
    speed: float
    share_of_peak: float | None = None  # of the speed of a large matrix product in that precision; ours only


OURS = "transformer_ref"
PAUSE = 0.5  # seconds


def contest(contenders: Sequence[Contender], repeats: int, say: Callable[[str], None]) -> list[float]:
    """Return each contender's speed: the median of `repeats` rounds, after a warm-up."""
    speeds: list[list[float]] = [[] for _ in contenders]
    say("  warm-up")
    for contender in contenders:
        with contender.around():
            contender.first()
    for turn in range(1, repeats + 1):
        say(f"  round {turn} of {repeats}")
        for contender, measured in zip(contenders, speeds, strict=True):
            time.sleep(PAUSE)
            with contender.around():
                contender.first()
                _settle()
                start = time.perf_counter()
                done = contender.work()
                _settle()
                measured.append(done / (time.perf_counter() - start))
    return [statistics.median(each) for each in speeds]


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rows_of(
    work: str,
    config: str,
    contenders: Sequence[Contender],
    speeds: Sequence[float],
    share_of_peak: Callable[[str, float], float] | None = None,
) -> list[Row]:
    """Return one row for each contender.

    share_of_peak: (precision, speed) -> share of the peak; called only for this package, since a peer may do
    unnecessary work.
    """
    rows = []
    for contender, speed in zip(contenders, speeds, strict=True):
        share = share_of_peak(contender.precision, speed) if share_of_peak and contender.name == OURS else None
        rows.append(Row(work, config, contender.name, contender.precision, speed, share))
    return rows
