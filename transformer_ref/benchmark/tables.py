"""Markdown tables of a result, one column for each machine, narrow enough for a phone."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_ref.benchmark.contest import OURS
from transformer_ref.benchmark.result import Entry

NOTHING = "–"
TITLES = {
    "training": "training with AdamW, {}: target tokens a second",
    "recipe": "recipe of {}, with Muon: target tokens a second",
    "greedy": "greedy decoding, {}: sentences a second",
    "beam": "beam search, 5 hypotheses, {}: sentences a second",
}
CORPORA = {"grammar": "the built-in corpus", "multi30k": "Multi30k"}
FASTEST = "fastest"  # of the precisions that a contender has


class Comparison(NamedTuple):
    """A row of README's table. precision: of both, or FASTEST."""

    work: str
    config: str
    precision: str
    peer: str
    words: str


IN_SHORT = (  # what a reader would try first, and where others are faster
    Comparison("training", "d256", "fp32", "torch.nn.Transformer", "training, fp32: torch.nn.Transformer"),
    Comparison("training", "d256", "fp32", "Hugging Face Marian", "training, fp32: Hugging Face Marian"),
    Comparison("training", "d256", FASTEST, "torch.nn.Transformer", "training, fastest: torch.nn.Transformer"),
    Comparison("training", "d256", FASTEST, "Hugging Face Marian", "training, fastest: Hugging Face Marian"),
    Comparison("greedy", "d256", "fp32", "Hugging Face Marian", "greedy, fp32: Hugging Face Marian"),
    Comparison("greedy", "d256", "fp32", "CTranslate2", "greedy, fp32: CTranslate2"),
    Comparison("beam", "d256", "fp32", "CTranslate2", "beam 5, fp32: CTranslate2"),
    Comparison("beam", "d256", FASTEST, "CTranslate2", "beam 5, fastest: CTranslate2"),
)


def short_table(entries: Sequence[Entry]) -> str:
    """Return the ratios of IN_SHORT."""
    lines = [
        "How many times as fast ours is at d_model 256, in target tokens (training) or sentences a second (decoding); "
        f'in the rows "fastest", each library computes in its fastest precision. {_where(entries)}',
        "",
        *_head("ours, next to", entries),
    ]
    for each in IN_SHORT:
        cells = [_number(_ratio(entry["rows"], each), "{:.2f}") for entry in entries]
        lines.append(_line(each.words, cells))
    return "\n".join(lines)


def full_table(entries: Sequence[Entry]) -> str:
    """Return every speed, in a table for each work and model; behind each peer's speed the ratio to ours."""
    blocks = [
        f"{_where(entries)} In parentheses: how many times as fast ours is, in the same precision or, where ours does "
        "not have it, in the fastest of ours. % is the share of the operations a second that one large matrix product "
        "in that precision reaches."
    ]
    for work, config in dict.fromkeys((row["work"], row["config"]) for entry in entries for row in entry["rows"]):
        found = [_of(entry["rows"], work, config) for entry in entries]
        names = dict.fromkeys((row["name"], row["precision"]) for rows in found for row in rows)
        lines = _head(TITLES[work].format(CORPORA.get(config, config)), entries)
        for name, precision in sorted(names, key=lambda each: each[0] != OURS):  # ours first; stable
            lines.append(_line(f"{name}, {precision}", [_cell(rows, name, precision) for rows in found]))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _where(entries: Sequence[Entry]) -> str:
    """Return where the entries were measured; equal conditions are described once."""
    by_conditions: dict[tuple, list[str]] = {}
    for entry in entries:
        measured = entry["machine"]
        key = measured["device"], measured["threads"], measured["torch"]
        limited = " (to which the processor was limited)" if measured.get("limited") else ""
        by_conditions.setdefault(key, []).append(f"{measured['instruction_set']}{limited}")
    described = []
    for (device, threads, torch), sets in by_conditions.items():
        own = " (a machine each)" if len(sets) > 1 and not any("limited" in each for each in sets) else ""
        described.append(f"{' and '.join(sets)} on {device}{own}, {threads} threads, torch {torch}")
    return f"Measured with {'; '.join(described)}."


def _head(first: str, entries: Sequence[Entry]) -> list[str]:
    """Return the head of a table; two devices with one instruction set get their names."""
    sets = [entry["machine"]["instruction_set"] for entry in entries]
    names = [
        name if sets.count(name) == 1 else f"{name}, {entry['machine']['device']}"
        for name, entry in zip(sets, entries, strict=True)
    ]
    return [_line(first, names), "|---|" + "---:|" * len(entries)]


def _line(first: str, cells: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None else form.format(value)


def _of(rows: Sequence[dict[str, Any]], work: str, config: str) -> list[dict[str, Any]]:
    return [row for row in rows if (row["work"], row["config"]) == (work, config)]


def _speed(rows: Sequence[dict[str, Any]], name: str, precision: str) -> float | None:
    return max(
        (row["speed"] for row in rows if row["name"] == name and precision in (FASTEST, row["precision"])), default=None
    )


def _ratio(rows: Sequence[dict[str, Any]], of: Comparison) -> float | None:
    rows = _of(rows, of.work, of.config)
    ours, theirs = (_speed(rows, name, of.precision) for name in (OURS, of.peer))
    return ours / theirs if ours and theirs else None


def _cell(rows: Sequence[dict[str, Any]], name: str, precision: str) -> str:
    found = next((row for row in rows if (row["name"], row["precision"]) == (name, precision)), None)
    if found is None:
        return NOTHING
    if name == OURS:
        share = "" if found["share_of_peak"] is None else f", {found['share_of_peak']:.0%}"
        return f"**{found['speed']:,.0f}**{share}"
    ours = _speed(rows, OURS, precision) or _speed(rows, OURS, FASTEST)
    return f"{found['speed']:,.0f}" + (f" ({ours / found['speed']:.2f})" if ours else "")
