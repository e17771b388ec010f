"""Who does the same work faster: everyone in turn, several times, and the median counts.

On a machine that is busy with other things for a while, all contenders suffer alike; a ratio of two medians says more
than either speed. Between two turns nobody works: a library's threads go on spinning for a while when it is done.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch


class Contender(NamedTuple):
    """Somebody who does a piece of work.

    name: OURS, or a peer's; precision: "fp32", "bf16", "int8", or how else it computes.
    work: does the piece and returns how much that was, in tokens or sentences.
    around: what a turn stands in; first: what precedes the measured piece in it, so that steady work is measured.
    """

    name: str
    precision: str
    work: Callable[[], int]
    around: Callable[[], AbstractContextManager] = nullcontext
    first: Callable[[], object] = lambda: None


class Row(NamedTuple):
    """One line of the result. Speeds are target tokens or sentences a second."""

    work: str  # training, greedy or beam
    config: str  # d256 or d128
    precision: str  # ours: fp32 or bf16
    peer: str
    ours: float
    theirs: float
    ratio: float
    share_of_peak: float | None  # of the machine's rate of a large matrix product in that precision; training only


OURS = "transformer_ref"
PAUSE = 0.5  # seconds


def contest(contenders: Sequence[Contender], repeats: int, say: Callable[[str], None]) -> list[float]:
    """Return each contender's speed: the median of `repeats` rounds, after one that does not count."""
    speeds: list[list[float]] = [[] for _ in contenders]
    for turn in range(repeats + 1):
        say(f"  round {turn} of {repeats}" + (" (a warm-up)" if turn == 0 else ""))
        for contender, measured in zip(contenders, speeds, strict=True):
            time.sleep(PAUSE)
            with contender.around():
                contender.first()
                _settle()
                start = time.perf_counter()
                done = contender.work()
                _settle()
                seconds = time.perf_counter() - start
            if turn:
                measured.append(done / seconds)
    return [statistics.median(each) for each in speeds]


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rows_of(
    work: str,
    config: str,
    contenders: Sequence[Contender],
    speeds: Sequence[float],
    share_of_peak: Callable[[str, float], float | None],
) -> list[Row]:
    """Return one row for each of our precisions and each peer.

    Beside our fp32 stand peers in fp32 (and in int8, which only some have), beside our bf16 all of them.
    share_of_peak: of a precision and a speed.
    """
    measured = list(zip(contenders, speeds, strict=True))
    return [
        Row(work, config, mine.precision, peer.name, ours, theirs, ours / theirs, share_of_peak(mine.precision, ours))
        for mine, ours in measured
        if mine.name == OURS
        for peer, theirs in measured
        if peer.name != OURS and (mine.precision == "bf16" or peer.precision != "bf16")
    ]
