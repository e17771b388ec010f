"""Reviews that a program writes: many words of praise and of blame, a few of them with a label (chapter 15).

Nobody labels most text. So a review without a label may use every word; one with a label uses a few frequent ones, and
`UNSEEN` are the words that no label ever stood beside. What a model knows of those it has learned from their company.
"""

import random
from typing import NamedTuple

PLACES = ("hotel", "film", "museum", "restaurant", "book", "train", "garden", "concert", "market", "school")
PARTS = ("room", "story", "guide", "soup", "end", "seat", "light", "sound", "price", "staff", "music", "food")
PRAISE = (
    "good great lovely wonderful splendid pleasant charming superb perfect brilliant delightful excellent elegant "
    "friendly fresh funny gentle graceful generous warm clever bright careful calm cozy honest lively marvelous neat "
    "polite rich smooth sweet tasty tender thrilling touching witty"
).split()
BLAME = (
    "bad awful horrible terrible dull boring dreadful nasty poor ugly clumsy cold cheap crude dirty dreary empty faulty "
    "filthy foolish gloomy grim harsh hollow lazy lousy messy moldy noisy pointless rude sad shabby silly slow sour "
    "stale weak"
).split()
LABELED = 8  # of each list: the words that reviews with a label use
SEEN = (PRAISE[:LABELED], BLAME[:LABELED])
UNSEEN = (PRAISE[LABELED:], BLAME[LABELED:])
OPENINGS = ("the {place} was {a} and {b} .", "a {a} and {b} {place} .", "what a {a} , {b} {place} !")
DETAILS = ("the {part} was {a} .", "the {part} was {a} and the {part2} was {b} .", "i found the {part} {a} .")


class Review(NamedTuple):
    """A review and whether it praises: 1 for praise, 0 for blame."""

    text: str
    label: int


def write_reviews(count: int, seed: int, words: tuple[list[str], list[str]] = (PRAISE, BLAME)) -> list[Review]:
    """Return so many reviews, praise and blame drawn evenly; equal arguments give equal reviews on every machine.

    words: of praise and of blame, what the reviews choose from: all, SEEN or UNSEEN.
    """
    draw, reviews = random.Random(seed), []
    for _ in range(count):
        label = draw.randrange(2)
        a, b, c, d = draw.sample(words[1 - label], 4)
        part, other = draw.sample(PARTS, 2)
        opening = draw.choice(OPENINGS).format(place=draw.choice(PLACES), a=a, b=b)
        detail = draw.choice(DETAILS).format(part=part, part2=other, a=c, b=d)
        both = [opening, detail]
        if draw.random() < 0.5:
            both.reverse()
        reviews.append(Review(" ".join(both), label))
    return reviews
