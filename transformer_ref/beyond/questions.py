"""Scenes that a program draws, a question about one thing in them, and attention that the question guides (chapter 14).

A scene is a table with 3 by 3 places. On four of them are four foods, each with a topping and a cloth below it; the
others are empty. "What is on the hot dog" asks for a topping, "what is under the hot dog" for a cloth. The question's
vector is the query; the keys and the values are the scene's patches, so the weights are a map of where it looked.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from transformer_ref.beyond.vision import patchify, unpatchify
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.feed_forward import FeedForward
from transformer_ref.model.multi_head_attention import MultiHeadAttention

PLACE = 8  # pixels of a place, which is one patch
ACROSS = 3  # places of a table in both directions
SIDE = PLACE * ACROSS
NOISE = 0.05  # its standard deviation; a channel runs from 0 to 1

TABLE = (0.88, 0.86, 0.82)
TOPPINGS = {
    "mustard": (0.95, 0.80, 0.05),
    "ketchup": (0.80, 0.10, 0.10),
    "relish": (0.20, 0.60, 0.15),
    "cream": (1.0, 1.0, 1.0),
}
CLOTHS = {"blue cloth": (0.45, 0.62, 0.88), "pink cloth": (0.93, 0.62, 0.72), "gray cloth": (0.50, 0.52, 0.55)}
ANSWERS = (*TOPPINGS, *CLOTHS)
INKS = {"b": (0.80, 0.58, 0.30), "s": (0.62, 0.25, 0.15), "d": (0.55, 0.36, 0.18), "p": (0.93, 0.72, 0.45)}

# one letter a pixel: . cloth, b bun, s sausage, d crust, p dough, * topping
FOODS = {
    "hot dog": ("........", "........", ".bbbbbb.", "ss*ss*ss", "s*ss*s*s", ".bbbbbb.", "........", "........"),
    "pizza": ("dddddddd", ".dppppd.", ".p*pp*p.", "..p**p..", "..pppp..", "...*p...", "...pp...", "........"),
    "burger": ("..bbbb..", ".bbbbbb.", "bbbbbbbb", "s*s*s*s*", "ssssssss", "bbbbbbbb", ".bbbbbb.", "........"),
    "pancake": ("........", "..pppp..", ".pp**pp.", ".p*pp*p.", ".pp**pp.", ".dppppd.", "..dddd..", "........"),
}
WORDS = tuple(dict.fromkeys(f"what is on under the {' '.join(FOODS)}".split()))
HOT_DOG, MUSTARD = list(FOODS).index("hot dog"), list(TOPPINGS).index("mustard")


class Scenes(NamedTuple):
    """Scenes as lists of objects and positions. `draw` makes the pixels."""

    places: Tensor  # (scene, food), int64: the place of each food, counted row by row
    toppings: Tensor  # (scene, food), int64: what is on each food
    cloths: Tensor  # (scene, food), int64: what is under it


def scenes(count: int, generator: Generator, prior: float | None = None) -> Scenes:
    """Return random scenes.

    prior: the share of hot dogs with mustard, the others have another topping; None: all toppings are equally likely.
    """
    places = torch.rand(count, ACROSS**2, generator=generator).argsort(dim=1)[:, : len(FOODS)]  # (scene, food)
    toppings = torch.randint(len(TOPPINGS), (count, len(FOODS)), generator=generator)  # (scene, food)
    if prior is not None:
        usual = torch.rand(count, generator=generator) < prior  # (scene,)
        other = torch.randint(1, len(TOPPINGS), (count,), generator=generator)  # how far from mustard
        toppings[:, HOT_DOG] = torch.where(usual, MUSTARD, (MUSTARD + other) % len(TOPPINGS))
    return Scenes(places, toppings, torch.randint(len(CLOTHS), (count, len(FOODS)), generator=generator))


def swapped(told: Scenes, food: int, topping: Tensor | int) -> Scenes:
    """Return the scenes with another topping on one food, as a control. topping: one for all, or one per scene."""
    toppings = told.toppings.clone()
    toppings[:, food] = topping
    return told._replace(toppings=toppings)


def draw(told: Scenes, generator: Generator | None = None) -> Tensor:
    """Return the scenes' pixels, (scene, 3, SIDE, SIDE), from 0 to 1, with noise where a generator is given."""
    stamps = _stamps()  # (food, topping, cloth, 3 * PLACE * PLACE)
    table = torch.tensor(TABLE).repeat_interleave(PLACE**2)  # (3 * PLACE * PLACE,)
    patches = table.repeat(len(told.places), ACROSS**2, 1)  # (scene, place, 3 * PLACE * PLACE)
    scene = torch.arange(len(told.places))
    for food in range(len(FOODS)):
        patches[scene, told.places[:, food]] = stamps[food, told.toppings[:, food], told.cloths[:, food]]
    pixels = unpatchify(patches, PLACE, SIDE, SIDE)
    if generator is None:
        return pixels
    return pixels + NOISE * torch.randn(pixels.shape, generator=generator)


class Asked(NamedTuple):
    """Questions and the correct answers."""

    ids: Tensor  # (question, 6), of WORDS
    foods: Tensor  # (question,), int64
    answers: Tensor  # (question,), int64, of ANSWERS


def question(foods: Tensor | Sequence[int], about: str = "on") -> Tensor:
    """Return "what is on the ..." as ids of WORDS, (question, 6): a food of one word is repeated.

    about: "on" or "under". Raises ValueError for another word.
    """
    if about not in ("on", "under"):
        raise ValueError(f'about: expected "on" or "under", got {about!r}')
    rows = []
    for food in torch.as_tensor(foods).tolist():
        name = list(FOODS)[food].split()
        rows.append([WORDS.index(word) for word in ("what", "is", about, "the", name[0], name[-1])])
    return torch.tensor(rows)


def ask(told: Scenes, generator: Generator) -> Asked:
    """Return one random question a scene, about a topping or a cloth."""
    count = len(told.places)
    scene, foods = torch.arange(count), torch.randint(len(FOODS), (count,), generator=generator)
    under = torch.randint(2, (count,), generator=generator).bool()  # (scene,)
    ids = torch.where(under[:, None], question(foods, "under"), question(foods))  # (scene, 6)
    answers = torch.where(under, len(TOPPINGS) + told.cloths[scene, foods], told.toppings[scene, foods])
    return Asked(ids, foods, answers)


def _stamps() -> Tensor:
    """Return every food with every topping on every cloth, (food, topping, cloth, 3 * PLACE * PLACE)."""
    patches = []
    for rows in FOODS.values():
        for topping in TOPPINGS.values():
            for cloth in CLOTHS.values():
                inks = {**INKS, ".": cloth, "*": topping}
                pixels = torch.tensor([[inks[letter] for letter in row] for row in rows])  # (PLACE, PLACE, 3)
                patches.append(pixels.permute(2, 0, 1).flatten())
    return torch.stack(patches).reshape(len(FOODS), len(TOPPINGS), len(CLOTHS), -1)


class Looked(NamedTuple):
    """An answer and the attention weights of the question over the patches."""

    logits: Tensor  # (batch, answer)
    weights: Tensor  # (batch, place), each row sums to 1


class QuestionAttention(nn.Module):
    """A question attends to a scene's patches once; the answer is computed from it and what it retrieved."""

    def __init__(self, d_model: int = 32, d_ff: int = 64) -> None:
        super().__init__()
        self.words = Embedding(len(WORDS), d_model)
        self.project = nn.Linear(3 * PLACE**2, d_model)  # a patch becomes a word
        self.see = FeedForward(d_model, d_ff)
        self.norm = nn.LayerNorm(d_model)
        self.look = MultiHeadAttention(d_model, heads=1)
        self.think = FeedForward(d_model, d_ff)
        self.head = nn.Linear(d_model, len(ANSWERS))

    def forward(self, pixels: Tensor, ids: Tensor, weights: Tensor | None = None) -> Looked:
        """Return the logits and the map, for scenes (batch, 3, SIDE, SIDE) and questions (batch, length).

        weights: (batch, patch), used instead of the model's own attention weights, as a control.
        """
        asks = self.words(ids).sum(dim=1, keepdim=True)  # (batch, 1, d_model)
        places = self.project(patchify(pixels, PLACE))  # (batch, place, d_model)
        places = self.norm(places + self.see(places))
        found, own = self.look(asks, places, need_weights=True)  # (batch, 1, d_model), (batch, 1, 1, place)
        if weights is not None:
            found = self.look.out_proj(weights[:, None] @ self.look.v_proj(places))  # (batch, 1, d_model)
        told = asks + found  # (batch, 1, d_model)
        return Looked(self.head(told + self.think(told))[:, 0], own[:, 0, 0] if weights is None else weights)
