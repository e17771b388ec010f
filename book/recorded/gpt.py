"""Train a GPT of letters on tales told by rule, and record how it learns: gpt.json and the weights, for chapter 13.

    python -m book.recorded.gpt

Four blocks of width 64 read windows of 192 letters. Recorded are the loss, what it writes at some steps, and whether
the tales it draws keep to their own names, things and places, also where it is shown fewer letters. Some four minutes
of one core. The weights are rounded to bytes (`transformer_ref.live_model`); what is said of the finished model is
said of those.
"""

import json
import math
import re
import time
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_ref.beyond.gpt import GPT, generate, lm_batch
from transformer_ref.beyond.live_gpt import GPT_WEIGHTS, PREFIX, SIZES, SUFFIX, pack, trained_gpt
from transformer_ref.beyond.tales import ALPHABET, decode, encode, tales
from transformer_ref.config import TrainingConfig
from transformer_ref.recording import FOLDER
from transformer_ref.training.optimizer import build_optimizer

RECORD = FOLDER / "gpt.json"
LEARNED, SEED = 6_000, 1  # tales
UNSEEN = 200  # tales of another seed
STEPS, BATCH = 900, 16
CONFIG = TrainingConfig(steps=STEPS, learning_rate=4e-3, muon_rate=6e-3, warmup_steps=50)
STAGES = (0, 20, 60, 150, 300, STEPS)  # steps after which it is asked to write
PROMPT, WRITTEN = "Once upon a time", 150
CONTEXTS = (192, 96, 48, 24)
DRAWN, TAU, LONGEST = 40, 0.7, 360  # tales drawn, how daring, letters of one


def loss_of(model: GPT, ids: Tensor) -> float:
    """Return the mean loss over the same 32 windows each time."""
    x, y = lm_batch(ids, model.max_length, torch.Generator().manual_seed(7), 32)
    with torch.no_grad():
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()


def written(model: GPT) -> str:
    """Return the greedy continuation of the prompt."""
    ids = generate(model, torch.tensor([encode(PROMPT)]), WRITTEN, model.max_length, 0.0)
    return decode(ids[0].tolist())


def bigram_loss(learned: Tensor, unseen: Tensor) -> float:
    """Return the loss of a bigram table."""
    pairs = torch.ones(len(ALPHABET), len(ALPHABET))
    pairs.index_put_((learned[:-1], learned[1:]), torch.ones(len(learned) - 1), accumulate=True)
    shares = (pairs / pairs.sum(-1, keepdim=True)).log()
    return -shares[unseen[:-1], unseen[1:]].mean().item()


def kept(text: str) -> dict[str, bool] | None:
    """Return whether a tale is consistent in its name, its thing and its place; None if it is incomplete."""
    named = re.search(r"(?:named|called) (\w+)\.", text)
    had = re.search(r" had an? (\w+) ", text)
    told = re.search(r"\"(?:I saw|Look for)? ?[Yy]our (\w+)(?: lies)? ([a-z ]+),\"", text)
    found = re.search(r"found the (\w+) ([a-z ]+)\.", text)
    last = re.search(r"From then on (\w+) ", text)
    if not (named and had and told and found and last):
        return None
    return {
        "name": named[1] == last[1],
        "thing": had[1] == told[1] == found[1],
        "place": told[2] == found[2],
    }


def remembered(model: GPT) -> dict[str, dict[str, float]]:
    """Return for each context the shares of generated tales that are complete, and of those that are consistent."""
    rows = {}
    for context in CONTEXTS:
        prompt = torch.tensor([encode(PROMPT)]).expand(DRAWN, -1)
        ids = generate(model, prompt, LONGEST, context, TAU, torch.Generator().manual_seed(13))
        judged = [kept(decode(row).split("\n")[0]) for row in ids.tolist()]
        whole = [one for one in judged if one]
        shares = {
            what: round(sum(one[what] for one in whole) / max(1, len(whole)), 3) for what in ("name", "thing", "place")
        }
        rows[str(context)] = {"whole": round(len(whole) / DRAWN, 3), **shares}
        print(context, rows[str(context)], flush=True)
    return rows


def main() -> None:
    """Train, write the weights, record."""
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    began = time.process_time()
    learned, unseen = (
        torch.tensor(encode("".join(tale.text for tale in tales(count, seed))))
        for count, seed in ((LEARNED, SEED), (UNSEEN, SEED + 1))
    )
    model = GPT(len(ALPHABET), **SIZES)
    optimizer, g = build_optimizer(model, CONFIG), torch.Generator().manual_seed(SEED)
    losses: list[tuple[int, float]] = []
    stages: list[dict[str, Any]] = []
    for step in range(STEPS + 1):
        if step in STAGES or step % 50 == 0:
            losses.append((step, round(loss_of(model.eval(), unseen), 4)))
            print(*losses[-1], f"{time.process_time() - began:.0f} s", flush=True)
        if step in STAGES:
            stages.append({"step": step, "loss": losses[-1][1], "text": written(model)})
        x, y = lm_batch(learned, model.max_length, g, BATCH)
        optimizer.scale_rates(min(1, (step + 1) / CONFIG.warmup_steps) * (1 + math.cos(math.pi * step / STEPS)) / 2)
        optimizer.zero_grad()
        F.cross_entropy(model.train()(x).flatten(0, 1), y.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CONFIG.max_grad_norm)
        optimizer.step()
    seconds = round(time.process_time() - began)
    GPT_WEIGHTS.write_text(PREFIX + json.dumps(pack(model)) + SUFFIX, encoding="utf-8")
    model = trained_gpt()
    stages[-1]["text"] = written(model)
    record = {
        "command": "python -m book.recorded.gpt",
        "torch": torch.__version__,
        "sizes": SIZES,
        "parameters": sum(each.numel() for each in model.parameters()),
        "letters": len(learned),
        "steps": STEPS,
        "batch": BATCH,
        "seconds": seconds,
        "bytes": GPT_WEIGHTS.stat().st_size,
        "losses": losses,
        "bigram": round(bigram_loss(learned, unseen), 4),
        "loss": round(loss_of(model, unseen), 4),
        "stages": stages,
        "drawn": DRAWN,
        "tau": TAU,
        "kept": remembered(model),
    }
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({name: record[name] for name in ("loss", "bigram", "kept", "seconds", "bytes")}))


if __name__ == "__main__":
    main()
