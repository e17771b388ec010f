"""What the exercises of chapter 13 share."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from autograder.catalogue.ch09_blocks.shared import drawn
from autograder.catalogue.exercise import Block
from autograder.catalogue.known_answers import Answer, answer
from autograder.catalogue.sections import of_chapter

sections = of_chapter("13")

STEEP = 1e6  # so steep, ReLU and every GELU are one function to the sixth digit


def generator(g: torch.Generator) -> torch.Generator:
    """A generator to pass to an answer, with a drawn seed."""
    return torch.Generator().manual_seed(int(torch.randint(1 << 40, (), generator=g)))


def steep(g: torch.Generator, blocks: Sequence[Block], dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Weights for each role, under which it does not matter whether a feed-forward network has a ReLU or a GELU."""
    weights = drawn(g, blocks, dtype)
    for role, weight in weights.items():
        if ".first" in role:
            weight *= STEEP
        elif role.endswith(".second"):
            weight /= STEEP
    return weights


def are_steep(weights: Mapping[str, Tensor]) -> bool:
    """Whether it does not matter under these weights which of the bends there is."""
    firsts = [weight for role, weight in weights.items() if role.endswith(".first")]
    return not any(0 < float(first.abs().max()) < 1e3 for first in firsts)


HEADS = answer("""
    class Heads(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.W_q = nn.Linear(width, width)
            self.W_k = nn.Linear(width, width)
            self.W_v = nn.Linear(width, width)
            self.W_o = nn.Linear(width, width)

        def cut(self, x):
            return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

        def forward(self, x):
            q, k, v = self.cut(self.W_q(x)), self.cut(self.W_k(x)), self.cut(self.W_v(x))
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            open_ = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
            scores = scores.masked_fill(~open_, float("-inf"))
            shares = torch.softmax(scores, dim=-1)
            mixed = (shares @ v).transpose(1, 2).reshape(x.shape)
            return self.W_o(mixed)


""")
OPEN = "open_ = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()"
HIDE, SHARES = 'scores = scores.masked_fill(~open_, float("-inf"))', "shares = torch.softmax(scores, dim=-1)"
DIVIDED, SAID = " / q.shape[-1] ** 0.5", "return self.W_o(mixed)"

BLOCK = answer("""
    class GPTBlock(nn.Module):
        def __init__(self, d_model, h, d_ff, dropout=0.0):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
            self.attention = Heads(d_model, h)
            self.widen, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
            self.drop = nn.Dropout(dropout)

        def think(self, x):
            return self.narrow(F.gelu(self.widen(x)))

        def forward(self, x):
            seen = self.norm1(x)
            x = x + self.drop(self.attention(seen))
            seen = self.norm2(x)
            x = x + self.drop(self.think(seen))
            return x
""")


def with_heads(source: str) -> Answer:
    """An answer that has causal multi-head attention next to its own class."""
    return answer(f"{HEADS}\n\n{answer(source)}")


def with_block(source: str) -> Answer:
    """An answer that has attention and block next to its own class."""
    return answer(f"{HEADS}\n\n{BLOCK}\n\n{answer(source)}")
