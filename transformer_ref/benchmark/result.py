"""The result file of the benchmark, and the recorded one, which has the same format.

    {"machines": [{"machine": {...}, "rows": [{...}, ...]}, ...]}

There is one entry for each machine and instruction set. `machine` holds

    device           the processor's or the GPU's name
    instruction_set  such as "AVX2" or "AVX512-bf16", see `instruction_sets`
    limited          whether the processor has more, and was limited to it
    threads          of torch and of CTranslate2
    torch, python, system
    peers            {package: version} of the installed peers
    code             a digest of this package's sources: rows of other sources are another version's

and each row the fields of `contest.Row`: work, config, name, precision, speed, share_of_peak.
"""

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from transformer_ref.atomic_write import atomic_write
from transformer_ref.benchmark.contest import Row
from transformer_ref.benchmark.instruction_sets import AVX2
from transformer_ref.device import device_name

WORKS = ("training", "recipe", "greedy", "beam")
CONFIGS = ("d256", "d128", "grammar", "multi30k")  # sizes of models, and corpora of recipes
RESULT_FILE = "benchmark.json"
PEERS = ("transformers", "x-transformers", "ctranslate2")
Entry = dict[str, Any]  # {"machine": ..., "rows": [...]}


def machine(device: torch.device, instruction_set: str) -> dict[str, Any]:
    """Return the conditions of a measurement: device, instruction set, threads, versions."""
    return {
        "device": device_name(device),
        "instruction_set": instruction_set,
        "limited": any(name in os.environ for name in AVX2.environment),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "peers": {name: found for name in PEERS if (found := _version(name))},
        "code": code_digest(),
    }


def code_digest() -> str:
    """Return a digest of this package's sources; it does not depend on where the package is installed."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def read(path: Path) -> list[Entry]:
    """Return the entries of a result file, none where there is no file.

    Raises ValueError for a file that is not in this format.
    """
    if not path.is_file():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["machines"]
        if not all({"machine", "rows"} == set(entry) and "instruction_set" in entry["machine"] for entry in entries):
            raise KeyError("machine")
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected a result of this version of the benchmark, got something else; remove the file"
        ) from error
    return entries


def rows_here(entries: Sequence[Entry], described: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that were measured on this machine, with this code."""
    return [row for entry in entries if entry["machine"] == described for row in entry["rows"]]


def add(path: Path, described: dict[str, Any], rows: Sequence[Row]) -> None:
    """Add rows to the result file.

    They replace rows of the same work and model; an entry of the same device and instruction set under other
    conditions (code, versions, threads) is dropped.
    """
    entries, place = read(path), (described["device"], described["instruction_set"])
    new = {(row.work, row.config) for row in rows}
    kept = [row for row in rows_here(entries, described) if (row["work"], row["config"]) not in new]
    entry = {"machine": described, "rows": sorted([*kept, *map(_rounded, rows)], key=_order)}
    others = [each for each in entries if place_of(each) != place]
    write(path, [*others, entry])


def write(path: Path, entries: Sequence[Entry]) -> None:
    """Write a result file, its entries in the order of their instruction sets."""
    text = json.dumps({"machines": sorted(entries, key=lambda entry: place_of(entry)[::-1])}, indent=1)
    atomic_write(path, text + "\n")


def place_of(entry: Entry) -> tuple[str, str]:
    """Return the device and the instruction set of an entry."""
    return entry["machine"]["device"], entry["machine"]["instruction_set"]


def _order(row: dict[str, Any]) -> tuple[int, int]:
    return WORKS.index(row["work"]), CONFIGS.index(row["config"])


def _rounded(row: Row) -> dict[str, Any]:
    share = None if row.share_of_peak is None else round(row.share_of_peak, 3)
    return {**row._asdict(), "speed": round(row.speed, 1), "share_of_peak": share}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
