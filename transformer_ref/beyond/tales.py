"""Small tales by rule, a text that a GPT of letters can learn in minutes (chapter 13).

Each begins *Once upon a time*, gives somebody a name, has something lost and found, and keeps to what it said:
who, what and where recur, so a reader can see at a glance whether a model remembers.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

ALPHABET = '\n !",.ABEFGHILMNOPRSTYabcdefghiklmnopqrstuvwxyz'  # every letter that a tale can hold
SHE = ("Ada", "Bella", "Emma", "Gina", "Ida", "Lena", "Mia", "Nora", "Rosa", "Tina")
HE = ("Aldo", "Bruno", "Elio", "Gino", "Hugo", "Leo", "Marco", "Nino", "Pietro", "Tom")
WHO = ("fox", "cat", "dragon", "owl", "mouse", "bear", "goose", "rabbit", "hedgehog", "donkey")
HOW = ("small", "brave", "clever", "lazy", "hungry", "friendly", "shy", "merry")
WORLDS = (
    "in a world where magic flowed like water",
    "in a forest full of songs",
    "in a town by the sea",
    "in a land without clocks",
    "on a mountain above the clouds",
    "in a house with blue windows",
)
THINGS = ("a key", "a letter", "a lamp", "a coin", "a map", "a ring", "a bell", "a hat")
PLACES = ("at the river", "in the garden", "near the bridge", "under the old tree", "at the market", "behind the mill")
HELPERS = ("wise old frog", "king of the birds", "miller", "queen", "old bridge builder", "moon")


class Tale(NamedTuple):
    """A tale and the facts that it must be consistent with."""

    text: str
    name: str
    who: str
    thing: str  # without its article
    place: str


def tell(choose: random.Random) -> Tale:
    """Return one tale."""
    name, who, how = choose.choice(SHE + HE), choose.choice(WHO), choose.choice(HOW)
    thing, place, helper = choose.choice(THINGS), choose.choice(PLACES), choose.choice(HELPERS)
    she, her = ("she", "her") if name in SHE else ("he", "his")
    it = thing.removeprefix("a ")
    found = choose.choice((f"I saw your {it} {place}", f"Look for your {it} {place}", f"Your {it} lies {place}"))
    begin = choose.choice((f"there lived a {how} {who} named {name}", f"there was a {how} {who} called {name}"))
    text = (
        f"Once upon a time, {choose.choice(WORLDS)}, {begin}. "
        f"{name} had {thing} and {choose.choice(('loved it', f'kept it in {her} bed', 'showed it to nobody'))}. "
        f"One {choose.choice(('day', 'night', 'morning'))} the {it} was gone! "
        f"{choose.choice((f'So {name}', f'Full of fear, {she}', f'At once the {who}'))} went to the {helper}. "
        f'"{found}," said the {helper}. '
        f"{choose.choice((f'{name} ran there', f'So {she} ran there', f'The {who} went there'))} "
        f"and found the {it} {place}. "
        f"From then on {name} {choose.choice(('slept well', 'was happy', f'sang of the {it}'))}.\n"
    )
    return Tale(text, name, who, it, place)


def tales(count: int, seed: int = 1) -> list[Tale]:
    """Return this many tales; the same seed gives the same ones."""
    choose = random.Random(seed)
    return [tell(choose) for _ in range(count)]


def encode(text: str) -> list[int]:
    """Return each letter's number in `ALPHABET`. Raises ValueError for a letter that is in no tale."""
    strange = sorted(set(text) - set(ALPHABET))
    if strange:
        raise ValueError(f"text: expected letters of the tales, got {' '.join(map(repr, strange))}")
    return [ALPHABET.index(letter) for letter in text]


def decode(ids: Sequence[int]) -> str:
    """Return the text of the ids."""
    return "".join(ALPHABET[id] for id in ids)
