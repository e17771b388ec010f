"""The run card: what describes a training run and is needed to repeat it, as JSON and as a page to read."""

import hashlib
import itertools
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transformer_ref.atomic_write import atomic_write
from transformer_ref.checkpoint import CARD_FILE, CURVES_FILE, PAGE_FILE
from transformer_ref.device import device_name
from transformer_ref.machine import choices_made
from transformer_ref.training.run import Run

POINTS = 200  # of a curve, at most


def run_card(run: Run, device: torch.device) -> dict[str, Any]:
    """Return the facts about a run, as plain values."""
    training = run.training
    model_config, config = training.model.config.to_dict(), training.config.to_dict()
    described = json.dumps([run.notes, model_config, config], sort_keys=True).encode()
    return {
        **run.notes,
        "config_sha256": hashlib.sha256(described).hexdigest(),
        "data": run.data,
        "model": model_config,
        "weights": sum(parameter.numel() for parameter in training.model.parameters()),
        "training": config,
        "machine": {
            "device": device_name(device),
            "threads": torch.get_num_threads(),
            "processes": training.processes.count,
            "system": platform.platform(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "choices": [str(choice) for choice in choices_made()],
        },
        "steps": training.step,
        "epochs": training.stream.epoch,
        "target_tokens": training.tokens,
        "seconds": round(training.seconds, 3),
        "target_tokens_per_second": round(training.tokens / training.seconds, 1) if training.seconds else 0.0,
        "curves": {"training": thinned(training.losses), "validation": [list(each) for each in training.validations]},
        "scores": [],
    }


def thinned(losses: Sequence[float]) -> list[list[float]]:
    """Return at most 200 points [step, loss]; each loss is the mean since the previous point."""
    width = max(-(-len(losses) // POINTS), 1)
    windows = [losses[start : start + width] for start in range(0, len(losses), width)]
    ends = itertools.accumulate(map(len, windows))
    return [[end, sum(window) / len(window)] for end, window in zip(ends, windows, strict=True)]


def write_run_card(folder: Path, card: Mapping[str, Any], curves: str) -> None:
    """Write the card as run.json and run.md, and the curves, an SVG, next to them."""
    atomic_write(folder / CURVES_FILE, curves)
    _write_card(folder, card)


def add_scores(
    folder: Path, split: str, beam: int, scores: Mapping[str, tuple[float, str]], precision: str = "fp32"
) -> bool:
    """Add a split's scores, each with its signature, to the card in the folder; return whether there is one.

    precision: of the translations. New scores replace those of the same split, beam and precision. Raises ValueError
    for a file of that name that is not a card.
    """
    path = folder / CARD_FILE
    if not path.is_file():
        return False
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        kept = [each for each in card["scores"] if _how(each) != (split, beam, precision)]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"card: expected a run's card to add scores to, got {path} ({error!r})") from error
    named = {name: {"score": round(score, 2), "signature": signature} for name, (score, signature) in scores.items()}
    card["scores"] = [*kept, {"split": split, "beam_size": beam, "precision": precision, **named}]
    _write_card(folder, card)
    return True


def _write_card(folder: Path, card: Mapping[str, Any]) -> None:
    atomic_write(folder / CARD_FILE, json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    atomic_write(folder / PAGE_FILE, page(card))


def _how(entry: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return a score's split, beam and precision."""
    return entry["split"], entry["beam_size"], entry.get("precision", "fp32")


def page(card: Mapping[str, Any]) -> str:
    """Return the card as Markdown."""
    machine = card["machine"]
    epochs = "whole epoch" if card["epochs"] == 1 else "whole epochs"
    lines = [
        f"# {card['corpus']}, {card['source']} to {card['target']}",
        "",
        f"{card['steps']:,} steps, {card['epochs']:,} {epochs} and {card['target_tokens']:,} target tokens in "
        f"{card['seconds']:,.0f} seconds: {card['target_tokens_per_second']:,.0f} tokens a second.",
        "",
        f"{machine['device']}, {machine['processes']} process(es) of {machine['threads']} thread(s); "
        f"torch {machine['torch']}, Python {machine['python']}, {machine['system']}.",
        "",
        *(f"- {choice}" for choice in machine.get("choices", [])),  # cards of earlier versions have none
        "",
        *(f"- **Look out**, found before the first step: {doubt}" for doubt in card.get("doubts", [])),
        *([""] if card.get("doubts") else []),
        f"![the loss while it trained]({CURVES_FILE})",
        "",
    ]
    for step, loss in card["curves"]["validation"][-1:]:
        lines += [f"The last validation loss is {loss:.3f} nats a token, after {step:,} steps.", ""]
    if card["scores"]:
        lines += ["| split | beam | precision | metric | score | signature |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {' | '.join(map(str, _how(entry)))} | {name} | {value['score']} | `{value['signature']}` |"
            for entry in card["scores"]
            for name, value in entry.items()
            if name not in ("split", "beam_size", "precision")
        ]
        lines.append("")
    lines += ["| data | pairs | left out: empty, too long | SHA-256 |", "|---|---|---|---|"]
    lines += [
        f"| {split} | {data['pairs']:,} | {data['empty']:,}, {data['too_long']:,} | `{data['sha256']}` |"
        for split, data in card["data"].items()
    ]
    if card.get("parts"):
        lines += ["", f"The code, SHA-256 `{card['code_sha256']}`:", "", "| part | whose |", "|---|---|"]
        lines += [f"| {name} | {whose} |" for name, whose in card["parts"].items()]
    lines += ["", f"Config, SHA-256 `{card['config_sha256']}`:", "", "| setting | value |", "|---|---|"]
    lines += [f"| {name} | {value} |" for part in ("model", "training") for name, value in card[part].items()]
    return "\n".join(lines) + "\n"
