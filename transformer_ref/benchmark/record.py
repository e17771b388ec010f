"""The result as JSON, and the table that README shows of a recorded one."""

import json
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from transformer_ref.benchmark.contest import Row

WORKS = ("training", "greedy", "beam")
RESULT_FILE = "benchmark.json"
RECORDED = Path(__file__).parent / "recorded.json"
BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"


def machine(device: torch.device) -> dict[str, Any]:
    """Return what was measured on: device, threads, versions."""
    return {"device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
            "threads": torch.get_num_threads(), "torch": torch.__version__, "python": platform.python_version(),
            "system": platform.system()}


def write(path: Path, described: dict[str, Any], rows: Sequence[Row]) -> None:
    """Write {machine, rows}; rows of other works that the file has from the same machine stay."""
    kept = []
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["machine"] == described:
            new = {(row.work, row.config) for row in rows}
            kept = [row for row in before["rows"] if (row["work"], row["config"]) not in new]
    content = {"machine": described, "rows": [*kept, *(_rounded(row) for row in rows)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def recorded_table() -> str:
    """Return the table of the recorded result, or a sentence where none is recorded."""
    if not RECORDED.is_file():
        return "No result is recorded yet: `make bench` measures this machine."
    return table(json.loads(RECORDED.read_text(encoding="utf-8")))


def table(content: dict[str, Any]) -> str:
    """Return a recorded result as a Markdown table, with the sentence that says where it was measured."""
    measured = content["machine"]
    lines = [f"Measured on {measured['device']}, {measured['threads']} threads, torch {measured['torch']}; training in "
             "target tokens a second, decoding in sentences a second.", "",
             "| work | model | ours in | beside | ours | theirs | ratio | of the peak |",
             "|---|---|---|---|---:|---:|---:|---:|"]
    for row in content["rows"]:
        share = f"{row['share_of_peak']:.0%}" if row["share_of_peak"] is not None else ""
        lines.append(f"| {row['work']} | {row['config']} | {row['precision']} | {row['peer']} | {row['ours']:,.0f} | "
                     f"{row['theirs']:,.0f} | {row['ratio']:.2f} | {share} |")
    return "\n".join(lines)


def record(result: Path, readme: Path) -> None:
    """Keep a result as the recorded one and write its table into README, between the two marks.

    Raises FileNotFoundError when there is no result, ValueError when README lacks the marks.
    """
    if not result.is_file():
        raise FileNotFoundError(f"benchmark: expected the file {result}, got nothing; run the benchmark first")
    text = result.read_text(encoding="utf-8")
    page = readme.read_text(encoding="utf-8")
    if BEGIN not in page or END not in page:
        raise ValueError(f"readme: expected the marks {BEGIN} and {END} in {readme}, got neither or one")
    RECORDED.write_text(text, encoding="utf-8")
    readme.write_text(with_table(page), encoding="utf-8")


def with_table(page: str) -> str:
    """Return the page with the recorded table between its marks."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{recorded_table()}\n{END}", page, flags=re.DOTALL)


def _rounded(row: Row) -> dict[str, Any]:
    share = None if row.share_of_peak is None else round(row.share_of_peak, 3)
    return {**row._asdict(), "ours": round(row.ours, 1), "theirs": round(row.theirs, 1), "ratio": round(row.ratio, 3),
            "share_of_peak": share}


def _processor() -> str:
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    flags = " with AVX512-bf16" if "avx512_bf16" in described else ""
    return (found.group(1) if found else platform.machine()) + flags
