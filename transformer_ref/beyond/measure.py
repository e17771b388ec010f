"""Measure what four ways of attention cost on this machine (chapter 16), and draw it.

    python -m transformer_ref.beyond.measure --longest 4096 --output build/efficient.json

writes the numbers to FILE and the figures of the chapter, drawn from them, next to it (`.html`). Eight heads of 64, as
in the base model of Vaswani et al. 2017; one sentence; only the forward pass. Every way is measured in every round,
and the least of its times counts: whatever else a machine does can only add to them.
"""

import argparse
import contextlib
import json
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from transformer_ref.atomic_write import atomic_write
from transformer_ref.beyond.efficient import (
    attention_memory,
    cache_bytes,
    empty_state,
    grouped_query,
    linear_attention,
    linear_step,
    tiled_attention,
)
from transformer_ref.device import choose_device, device_name
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.masks import causal_mask
from transformer_ref.training.run import expect_writable
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.growth import growth, said

HEADS, D_HEAD = 8, 64  # the paper's base model
SHORTEST = 64  # tokens
SAMPLE = 0.01  # seconds that one sample takes at least, since clocks are coarse
ROOM = 4.0  # GiB that the table may take together with its exponentials and weights
TABLES = 3  # that the formula holds at once: scores, exponentials, shares
WAYS = ("table", "tiles", "fused", "linear")
GROUPS = (8, 2, 1)
READS = {"all": "every token sees all", "earlier": "every token sees the earlier ones", "step": "one more token"}

Call = Callable[[], Any]
Clock = Callable[[], float]


def whole(way: str, causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return one of the WAYS as a function of query, key and value, (1, heads, length, d_head) each."""
    if way == "table":
        return lambda q, k, v: (
            explicit_attention(q, k, v, causal_mask(q.shape[-2], device=q.device) if causal else None).output
        )
    if way == "fused":
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    attend = {"tiles": tiled_attention, "linear": linear_attention}[way]
    return lambda q, k, v: attend(q, k, v, causal)


def calls_of(length: int, causal: bool, device: torch.device, room: float = ROOM) -> dict[str, Call]:
    """Return each way as a call on its own tensors; the table is left out where it needs more than `room` GiB."""
    g = torch.Generator().manual_seed(length)
    q, k, v = torch.randn(3, 1, HEADS, length, D_HEAD, generator=g).to(device)  # (1, heads, length, d_head)
    table = TABLES * attention_memory(length, HEADS * D_HEAD, HEADS)
    ways = {way: whole(way, causal) for way in WAYS if way != "table" or table <= room * 2**30}
    return {way: lambda run=run: run(q, k, v) for way, run in ways.items()}


def steps_of(length: int, device: torch.device) -> dict[str, tuple[Call, int]]:
    """Return, by the kind of memory, a call for one more token after `length` of them, and the bytes kept for it."""
    g, found = torch.Generator().manual_seed(length), {}
    query, key, value = torch.randn(3, 1, HEADS, 1, D_HEAD, generator=g).to(device)  # (1, heads, 1, d_head)
    for groups in GROUPS:
        keys, values = torch.randn(2, 1, groups, length, D_HEAD, generator=g).to(device)
        name = f"{groups} group{'s' * (groups > 1)}"
        found[name] = (
            lambda groups=groups, keys=keys, values=values: grouped_query(query, keys, values, groups),
            cache_bytes(1, groups, D_HEAD, length),
        )
    state = empty_state(key, value)
    kept = sum(each.numel() * each.element_size() for each in state)
    found["linear"] = (lambda: linear_step(state, query[:, :, 0], key[:, :, 0], value[:, :, 0]), kept)
    return found


# ---- clock and scale ----------------------------------------------------------------------------------------


def least_seconds(
    calls: dict[str, Call], repeats: int, device: torch.device, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """Return the least time of each call, one sample a round, so that a busy moment affects all of them."""
    for call in calls.values():
        _timed(call, 1, device, clock)  # the first call finds memory and kernels
    counts = {name: max(1, round(SAMPLE / _timed(call, 1, device, clock))) for name, call in calls.items()}
    samples = [
        {name: _timed(call, counts[name], device, clock) for name, call in calls.items()} for _ in range(repeats)
    ]
    return {name: min(sample[name] for sample in samples) for name in calls}


def _timed(call: Call, times: int, device: torch.device, clock: Clock) -> float:
    _wait(device)
    began = clock()
    for _ in range(times):
        call()
    _wait(device)
    return max(clock() - began, 1e-9) / times


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_bytes(call: Call, device: torch.device | None = None) -> int:
    """Return the peak of bytes that torch allocated during a call, result included, beyond those before."""
    if device is not None and device.type == "cuda":
        _wait(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        result = call()
        _wait(device)
        most = torch.cuda.max_memory_allocated(device) - before
        del result
        return most
    with tempfile.TemporaryDirectory() as folder, _quiet():
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            call()
        trace = Path(folder, "trace.json")
        seen.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    changes = [(event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"]
    held = most = 0
    for _, change in sorted(changes, key=lambda each: each[0]):
        held += change
        most = max(most, held)
    return most


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch's profiler, some builds of which write to file descriptor 2 at every start."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


# ---- the record ---------------------------------------------------------------------------------------------


@torch.inference_mode()
def measure(
    longest: int,
    device: torch.device,
    repeats: int = 5,
    room: float = ROOM,
    clock: Clock = time.perf_counter,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Return times and bytes of every way at 64, 128, ... up to `longest` tokens.

    longest: at least 64. repeats: rounds, of which the least time counts. room: GiB that the table may take; beyond it
    its numbers are None. clock: `time.process_time` counts only this process, but adds up its threads. tell: called
    with a line after each length. Raises ValueError for a shorter `longest`.
    """
    if longest < SHORTEST:
        raise ValueError(f"longest: expected at least {SHORTEST} tokens, got {longest}")
    lengths = [SHORTEST]
    while lengths[-1] * 2 <= longest:
        lengths.append(lengths[-1] * 2)
    kinds = {"step": [*(f"{g} group{'s' * (g > 1)}" for g in GROUPS), "linear"], "all": WAYS, "earlier": WAYS}
    record = {read: {name: {"seconds": [], "bytes": []} for name in kinds[read]} for read in ("all", "earlier", "step")}
    for length in lengths:
        began = time.perf_counter()
        for read in ("all", "earlier"):
            calls = calls_of(length, read == "earlier", device, room)
            seconds = least_seconds(calls, repeats, device, clock)
            for way, found in record[read].items():
                found["seconds"].append(_short(seconds.get(way)))
                found["bytes"].append(peak_bytes(calls[way], device) if way in calls else None)
        steps = steps_of(length, device)
        seconds = least_seconds({name: call for name, (call, _) in steps.items()}, repeats, device, clock)
        for name, (_, kept) in steps.items():
            record["step"][name]["seconds"].append(_short(seconds[name]))
            record["step"][name]["bytes"].append(kept)
        tell(f"{length:7,} tokens measured in {time.perf_counter() - began:.1f} s")
    about = {"machine": machine(device), "heads": HEADS, "d_head": D_HEAD, "repeats": repeats, "lengths": lengths}
    return about | record


def machine(device: torch.device) -> dict[str, Any]:
    """Return what the measurements depend on: the processor's name, threads, and the versions of Python and torch."""
    name, threads = device_name(device), torch.get_num_threads()
    return {"name": name, "threads": threads, "python": platform.python_version(), "torch": torch.__version__}


def _short(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds:.3g}")


def fastest(record: dict[str, Any], read: str) -> list[str]:
    """Return the way that took the least time at each length. read: "all", "earlier" or "step"."""
    found = []
    for place in range(len(record["lengths"])):
        times = {name: each["seconds"][place] for name, each in record[read].items()}
        known = {name: seconds for name, seconds in times.items() if seconds is not None}
        found.append(min(known, key=known.get))
    return found


def ahead_from(record: dict[str, Any], read: str, one: str, other: str) -> int | None:
    """Return the first length from which on one way takes less time than the other at every length, or None.

    A length at which either was not measured is left out.
    """
    pairs = zip(record["lengths"], record[read][one]["seconds"], record[read][other]["seconds"], strict=True)
    first = None
    for length, mine, theirs in pairs:
        if mine is None or theirs is None:
            continue
        first = (first or length) if mine < theirs else None
    return first


def figures(record: dict[str, Any], read: str) -> list[Drawing]:
    """Return two drawings of a record, time and memory over the number of tokens. read: "all", "earlier" or "step"."""
    if read not in READS:
        raise ValueError(f"read: expected one of {', '.join(READS)}, got {read!r}")
    kinds = {"seconds": "time", "bytes": "bytes kept" if read == "step" else "most bytes at once"}
    return [
        growth(
            record["lengths"],
            {name: each[what] for name, each in record[read].items()},
            what,
            f"{title}, {READS[read]}",
            "tokens",
        )
        for what, title in kinds.items()
    ]


def page(record: dict[str, Any]) -> str:
    """Return all figures of a record as one HTML page that needs no other file."""
    name = escape("{name}, {threads} threads, torch {torch}".format(**record["machine"]))
    drawn = "".join(
        f"<section>{''.join(figure.to_svg() for figure in figures(record, read))}</section>" for read in READS
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>What attention costs here</title><style>body{font-family:sans-serif;max-width:60rem;margin:1rem auto}"
        f"section{{display:flex;flex-wrap:wrap}}</style></head><body><h1>What attention costs here</h1><p>{name}</p>"
        f"{drawn}</body></html>\n"
    )


def lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield the times as text, a table for each way of reading, and who is fastest."""
    for read, title in READS.items():
        yield title
        yield f"{'tokens':>8}" + "".join(f"{name:>10}" for name in record[read]) + "  fastest"
        for place, (length, best) in enumerate(zip(record["lengths"], fastest(record, read), strict=True)):
            times = (each["seconds"][place] for each in record[read].values())
            cells = "".join(f"{'-' if seconds is None else said(seconds, 'seconds'):>10}" for seconds in times)
            yield f"{length:8,}{cells}  {best}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the numbers and the figures, and print a summary. Returns the exit code."""
    program = "python -m transformer_ref.beyond.measure"
    parser = argparse.ArgumentParser(prog=program, description="Measure four ways of attention on this machine.")
    parser.add_argument("--longest", type=int, default=4096, metavar="N", help="tokens, at most (default 4096)")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="numbers, as JSON; figures are written next to it"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    parser.add_argument("--repeats", type=int, default=5, metavar="R", help="rounds; the least time counts (default 5)")
    parser.add_argument("--room", type=float, default=ROOM, metavar="GIB", help=f"for the table (default {ROOM:g} GiB)")
    parser.add_argument("--threads", type=int, metavar="T", help="of the processor (default: torch's own number)")
    parser.add_argument(
        "--processor-time", action="store_true", help="count what the processor works, for one thread on a busy machine"
    )
    options = parser.parse_args(argv)
    if options.repeats < 1 or (options.threads is not None and options.threads < 1):
        parser.error("--repeats, --threads: expected at least 1")
    if options.output.suffix.lower() == ".html" or not options.output.name:
        parser.error(f"--output: expected a file for numbers, such as efficient.json, got {str(options.output)!r}")
    if not options.room >= 0:
        parser.error(f"--room: expected at least 0 GiB, got {options.room}")
    clock = time.process_time if options.processor_time else time.perf_counter
    try:
        _expect_file(options.output)
        device = choose_device(options.device)
        if options.processor_time and (device.type != "cpu" or options.threads != 1):
            raise ValueError("--processor-time: expected --device cpu --threads 1 with it")
        before = torch.get_num_threads()
        torch.set_num_threads(options.threads or before)
        try:
            record = measure(options.longest, device, options.repeats, options.room, clock, print)
        finally:
            torch.set_num_threads(before)
    except ValueError as error:
        parser.error(str(error))
    given = shlex.join(sys.argv[1:] if argv is None else [str(word) for word in argv])
    save({"command": f"{program} {given}"} | record, options.output)
    print("\n".join(lines(record)))
    print(f"numbers: {options.output}, figures: {options.output.with_suffix('.html')}")
    return 0


def _expect_file(path: Path) -> None:
    """Raise ValueError if the file cannot be written, before minutes of measuring."""
    if path.is_dir():
        raise ValueError(f"--output: expected a file, got the folder {path}")
    expect_writable(path.absolute().parent)


def save(record: dict[str, Any], path: Path, drawn: bool = True) -> None:
    """Write a record as JSON, a line for each way, and its figures next to it unless they are switched off."""
    text = json.dumps(record, ensure_ascii=False).replace("}, ", "},\n ").replace('"all":', '\n "all":')
    figures = page(record) if drawn else ""  # before the first file, so that they are never of different records
    atomic_write(path, text + "\n")
    if drawn:
        atomic_write(path.with_suffix(".html"), figures)


if __name__ == "__main__":
    raise SystemExit(main())
