"""The result as JSON, and the table that the book shows of a recorded one, some of it in README too."""

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
SHORT_BEGIN, SHORT_END = "<!-- benchmark in short: begin -->", "<!-- benchmark in short: end -->"
# (work, model, ours in, beside): what a reader would try first, and where others are faster
IN_SHORT = (
    ("training", "d256", "fp32", "torch.nn.Transformer"),
    ("training", "d256", "bf16", "torch.nn.Transformer, autocast"),
    ("training", "d256", "bf16", "Hugging Face Marian, autocast"),
    ("greedy", "d256", "fp32", "Hugging Face Marian"),
    ("greedy", "d256", "fp32", "CTranslate2"),
    ("beam", "d256", "fp32", "Hugging Face Marian"),
    ("beam", "d256", "fp32", "CTranslate2"),
    ("beam", "d256", "bf16", "CTranslate2 int8"),
)


def machine(device: torch.device) -> dict[str, Any]:
    """Return what was measured on: device, threads, versions."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
    }


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


def recorded_table(in_short: bool = False) -> str:
    """Return the table of the recorded result, or a sentence where none is recorded. In short: the rows of IN_SHORT."""
    if not RECORDED.is_file():
        return "No result is recorded yet: `make bench` measures this machine."
    content = json.loads(RECORDED.read_text(encoding="utf-8"))
    if in_short:
        named = [(row, (row["work"], row["config"], row["precision"], row["peer"])) for row in content["rows"]]
        content = {**content, "rows": [row for row, names in named if names in IN_SHORT]}
    return table(content)


def table(content: dict[str, Any]) -> str:
    """Return a recorded result as a Markdown table, with the sentence that says where it was measured."""
    measured = content["machine"]
    lines = [
        f"Measured on {measured['device']}, {measured['threads']} threads, torch {measured['torch']}; training in "
        "target tokens a second, decoding in sentences a second.",
        "",
        "| work | model | ours in | beside | ours | theirs | ratio | of the peak |",
        "|---|---|---|---|---:|---:|---:|---:|",
    ]
    for row in content["rows"]:
        share = f"{row['share_of_peak']:.0%}" if row["share_of_peak"] is not None else ""
        lines.append(
            f"| {row['work']} | {row['config']} | {row['precision']} | {row['peer']} | {row['ours']:,.0f} | "
            f"{row['theirs']:,.0f} | {row['ratio']:.2f} | {share} |"
        )
    return "\n".join(lines)


def record(result: Path, page: Path, readme: Path) -> None:
    """Keep a result as the recorded one and write its table into the page, and in short into README, between marks.

    Raises FileNotFoundError when there is no result, ValueError when one of the two lacks the marks.
    """
    if not result.is_file():
        raise FileNotFoundError(f"benchmark: expected the file {result}, got nothing; run the benchmark first")
    for name, file, begin, end in (("page", page, BEGIN, END), ("readme", readme, SHORT_BEGIN, SHORT_END)):
        text = file.read_text(encoding="utf-8")
        if begin not in text or end not in text:
            raise ValueError(f"{name}: expected the marks {begin} and {end} in {file}, got neither or one")
    RECORDED.write_text(result.read_text(encoding="utf-8"), encoding="utf-8")
    for file in (page, readme):
        file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")


def with_table(page: str) -> str:
    """Return the page with the recorded table between its marks."""
    for begin, end, in_short in ((BEGIN, END, False), (SHORT_BEGIN, SHORT_END, True)):
        if begin in page:
            written = f"{begin}\n{recorded_table(in_short)}\n{end}"
            page = re.sub(f"{begin}.*{end}", lambda _, text=written: text, page, flags=re.DOTALL)
    return page


def _rounded(row: Row) -> dict[str, Any]:
    share = None if row.share_of_peak is None else round(row.share_of_peak, 3)
    return {
        **row._asdict(),
        "ours": round(row.ours, 1),
        "theirs": round(row.theirs, 1),
        "ratio": round(row.ratio, 3),
        "share_of_peak": share,
    }


def _processor() -> str:
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    flags = " with AVX512-bf16" if "avx512_bf16" in described else ""
    return (found.group(1) if found else platform.machine()) + flags
