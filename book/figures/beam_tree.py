"""A beam search as a tree: what was kept, what is finished and what was cut, each with its probability."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, INK, PAPER, WEIGHT

LEFT, STEP, ROW = 8.0, 114.0, 28.0  # where the first words are; from a word to the next; from leaf to leaf
WIDE, HIGH = 88.0, 24.0
FATES = ("kept", "finished", "cut")


class Branch(NamedTuple):
    """A prefix: its words, its probability, and what became of it, one of FATES."""

    words: tuple[str, ...]
    probability: float
    fate: str


def beam_tree(branches: Sequence[Branch]) -> Drawing:
    """Return the tree of these prefixes, to be read from left to right, more probable ones above.

    Raises ValueError for a branch whose own prefix is missing, or with an unknown fate.
    """
    known = {branch.words for branch in branches}
    for branch in branches:
        if branch.fate not in FATES or (len(branch.words) > 1 and branch.words[:-1] not in known):
            raise ValueError(f"branches: expected a fate of {FATES} and every beginning, got {branch}")
    places = _places(branches)
    deepest = max(len(branch.words) for branch in branches)
    bottom = max(y for _, y in places.values()) + 1.7 * ROW
    told = {
        fate: ", ".join(f"{' '.join(b.words)} {b.probability:.2f}" for b in branches if b.fate == fate)
        for fate in FATES
    }
    alt = "A tree of beginnings, from left to right. " + " ".join(f"{fate}: {words}." for fate, words in told.items())
    drawing = Drawing(LEFT + STEP * deepest, bottom + 16, alt)
    for branch in branches:
        (x, y), word = places[branch.words], branch.words[-1]
        if len(branch.words) > 1:
            before, height = places[branch.words[:-1]]
            drawing.line(before + WIDE, height, x, y, GRID if branch.fate == "cut" else INK)
        _node(drawing, x, y, f"{word}  {branch.probability:.2f}", branch.fate)
    for place, fate in enumerate(FATES):
        _node(drawing, LEFT + STEP * place, bottom, fate, fate)
    return drawing


def _places(branches: Sequence[Branch]) -> dict[tuple[str, ...], tuple[float, float]]:
    """The left edge and the middle of each branch: leaves one below the other, a parent next to its first child."""
    places: dict[tuple[str, ...], tuple[float, float]] = {}
    ranked = sorted(branches, key=lambda branch: -branch.probability)
    leaves: list[tuple[str, ...]] = []

    def put(words: tuple[str, ...]) -> None:
        y = HIGH / 2 + 4 + len(leaves) * ROW
        children = [branch.words for branch in ranked if branch.words[:-1] == words and branch.words]
        for child in children:
            put(child)
        if not children:
            leaves.append(words)
        if words:
            places[words] = (LEFT + STEP * (len(words) - 1), y)

    put(())
    return places


def _node(drawing: Drawing, x: float, y: float, words: str, fate: str) -> None:
    """Draw a frame around a prefix that was kept, a filled one around a finished one, none around one that was cut."""
    if fate != "cut":
        drawing.rectangle(x, y - HIGH / 2, WIDE, HIGH, PAPER, stroke=INK, radius=6)
    if fate == "finished":
        drawing.rectangle(x, y - HIGH / 2, WIDE, HIGH, WEIGHT, opacity=0.2, radius=6)
    drawing.text(x + WIDE / 2, y, words, size=13, bold=fate == "finished")
