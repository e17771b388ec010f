"""Reviews that a program writes: many words of praise and of blame, a few of them with a label (chapter 15).

Nobody labels most text. So a review without a label may use every word; one with a label uses a few frequent ones, and
`UNSEEN` are the words that never occur with a label. A model can only learn about them from the words around them.
"""

import random
from typing import NamedTuple

PLACES = ("hotel", "film", "museum", "restaurant", "book", "train", "garden", "concert", "market", "school")
PARTS = ("room", "story", "guide", "soup", "end", "seat", "light", "sound", "price", "staff", "music", "food")
PRAISE = (
    "good great lovely wonderful splendid pleasant charming superb perfect brilliant delightful excellent "
    "elegant friendly fresh generous warm clever bright marvelous polite smooth tasty thrilling"
).split()
BLAME = (
    "bad awful horrible terrible dull boring dreadful nasty poor ugly clumsy cold "
    "crude dirty dreary faulty gloomy harsh lousy noisy pointless rude shabby stale"
).split()
LABELED = 8  # of each list: the words that reviews with a label use
SEEN = (PRAISE[:LABELED], BLAME[:LABELED])
UNSEEN = (PRAISE[LABELED:], BLAME[LABELED:])
OTHERWISE = 0.1  # of the words are of the other list: nobody praises everything
OPENINGS = ("the {place} was {a} and {b} .", "our {a} and {b} {place} .", "{a} and {b} , this {place} !")
DETAILS = ("the {part} was {a} and the {part2} was {b} .", "{a} {part} and {b} {part2} .")


class Review(NamedTuple):
    """A review and its label: 1 for praise, 0 for blame."""

    text: str
    label: int


def write_reviews(count: int, seed: int, words: tuple[list[str], list[str]] = (PRAISE, BLAME)) -> list[Review]:
    """Return this many reviews, praise as often as blame; equal arguments give equal ones on every machine.

    words: of praise and of blame, what the reviews choose from: all, SEEN or UNSEEN.
    """
    draw, reviews = random.Random(seed), []
    for _ in range(count):
        label = draw.randrange(2)
        fitting, others = (draw.sample(words[side], 4) for side in (1 - label, label))
        a, b, c, d = (other if draw.random() < OTHERWISE else word for word, other in zip(fitting, others, strict=True))
        part, other = draw.sample(PARTS, 2)
        opening = draw.choice(OPENINGS).format(place=draw.choice(PLACES), a=a, b=b)
        detail = draw.choice(DETAILS).format(part=part, part2=other, a=c, b=d)
        both = [opening, detail]
        if draw.random() < 0.5:
            both.reverse()
        reviews.append(Review(" ".join(both), label))
    return reviews
