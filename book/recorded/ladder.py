"""Train seven language models of characters, each with one more part than the one before: ladder.json, for chapter 13.

    python -m book.recorded.ladder

A table of pairs, the average of the past, one head, four heads, a feed-forward network, four such blocks, and these
blocks with residuals and norms: the GPT of the chapter. All read the same windows of the same tales with the same
optimizer, and each is trained from three seeds. Recorded are the losses on tales that no model has read, and a line
that the first of the three writes. Some seven minutes of one core.
"""

import json
import math
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from book.recorded.gpt import loss_of
from transformer_ref.beyond.gpt import GPT, generate, lm_batch
from transformer_ref.beyond.tales import ALPHABET, decode, encode, tales
from transformer_ref.model.feed_forward import FeedForward
from transformer_ref.model.key_value_cache import KeyValueCache
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.recording import FOLDER

RECORD = FOLDER / "ladder.json"
D_MODEL, HEADS, D_FF, LENGTH, LAYERS = 64, 4, 256, 128, 4
LEARNED, UNSEEN, TEXT = 3_000, 200, 1  # tales read, tales of another seed, seed of the former
SEEDS = (1, 2, 3)
STEPS, BATCH, RATE, WARMUP = 800, 16, 3e-3, 50
PROMPT, WRITTEN, TAU = "Once upon a time", 64, 0.7


class Pairs(nn.Module):
    """A bigram table, found by counting, which no training can improve."""

    max_length = LENGTH

    def __init__(self, ids: Tensor) -> None:
        super().__init__()
        pairs = torch.ones(len(ALPHABET), len(ALPHABET))  # one of each, so that no pair is impossible
        pairs.index_put_((ids[:-1], ids[1:]), torch.ones(len(ids) - 1), accumulate=True)
        self.table = nn.Parameter((pairs / pairs.sum(-1, keepdim=True)).log())

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits, (batch, target, vocabulary), for ids (batch, target)."""
        return self.table[ids]


class Average(nn.Module):
    """The mean of a projection of all positions up to each position."""

    def __init__(self) -> None:
        super().__init__()
        self.values, self.out = (nn.Linear(D_MODEL, D_MODEL, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Return means over the past, (batch, target, d_model), for x of the same shape."""
        mask = causal_mask(x.shape[1], 0, device=x.device).to(x.dtype)  # (target, target)
        return self.out(mask / mask.sum(-1, keepdim=True) @ self.values(x))  # (batch, target, d_model)


class Heads(nn.Module):
    """Causal self-attention with h heads, without norm and residual."""

    def __init__(self, h: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(D_MODEL, h)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of attention, (batch, target, d_model), for x of the same shape."""
        return self.attention(x, mask=causal_mask(x.shape[1], 0, device=x.device))[0]


class Bare(nn.Module):
    """A block of a GPT whose residuals and norms have been removed; its sub-layers follow one another."""

    def __init__(self, *sublayers: nn.Module) -> None:
        super().__init__()
        self.sublayers = nn.Sequential(*sublayers)

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Return the output of the last sub-layer, (batch, target, d_model); there is no cache here."""
        return self.sublayers(x)


def bare(*blocks: Bare) -> GPT:
    """Return a GPT with these blocks and without its last norm."""
    model = GPT(len(ALPHABET), D_MODEL, HEADS, 0, D_FF, LENGTH)
    model.blocks, model.norm = nn.ModuleList(blocks), nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]
    return model


RUNGS = {
    "pairs": Pairs,
    "average": lambda _: bare(Bare(Average())),
    "one head": lambda _: bare(Bare(Heads(1))),
    "four heads": lambda _: bare(Bare(Heads(HEADS))),
    "feed-forward": lambda _: bare(Bare(Heads(HEADS), FeedForward(D_MODEL, D_FF, "gelu"))),
    "four blocks": lambda _: bare(*(Bare(Heads(HEADS), FeedForward(D_MODEL, D_FF, "gelu")) for _ in range(LAYERS))),
    "residual and norm": lambda _: GPT(len(ALPHABET), D_MODEL, HEADS, LAYERS, D_FF, LENGTH),
}


def texts() -> tuple[Tensor, Tensor]:
    """Return the ids of the training tales and of those for validation."""
    learned, unseen = (
        torch.tensor(encode("".join(tale.text for tale in tales(count, seed))))
        for count, seed in ((LEARNED, TEXT), (UNSEEN, TEXT + 1))
    )
    return learned, unseen


def trained(name: str, learned: Tensor, seed: int) -> nn.Module:
    """Return a rung after its training: AdamW, warm-up and a cosine."""
    torch.manual_seed(seed)
    model = RUNGS[name](learned)
    if name == "pairs":
        return model.eval()
    optimizer = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.98))
    g = torch.Generator().manual_seed(seed)
    for step in range(STEPS):
        x, y = lm_batch(learned, LENGTH, g, BATCH)
        rate = RATE * min(1, (step + 1) / WARMUP) * (1 + math.cos(math.pi * step / STEPS)) / 2
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def line(model: nn.Module) -> str:
    """Return the prompt and what the model draws after it, up to the end of the tale."""
    g = torch.Generator().manual_seed(SEEDS[0])
    ids = generate(model, torch.tensor([encode(PROMPT)]), WRITTEN, LENGTH, TAU, g)
    return decode(ids[0].tolist())


def main() -> None:
    """Train all rungs, record."""
    torch.set_num_threads(1)
    learned, unseen = texts()
    rungs = []
    for name in RUNGS:
        began = time.process_time()
        models = [trained(name, learned, seed) for seed in SEEDS]
        rungs.append({
            "rung": name,
            "parameters": sum(each.numel() for each in models[0].parameters()),
            "losses": [round(loss_of(model, unseen), 4) for model in models],  # pyright: ignore[reportArgumentType]
            "line": line(models[0]),
            "seconds": round(time.process_time() - began),
        })  # fmt: skip
        print(rungs[-1], flush=True)
    record = {
        "command": "python -m book.recorded.ladder",
        "torch": torch.__version__,
        "steps": STEPS,
        "batch": BATCH,
        "length": LENGTH,
        "seeds": SEEDS,
        "tau": TAU,
        "rungs": rungs,
    }
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
