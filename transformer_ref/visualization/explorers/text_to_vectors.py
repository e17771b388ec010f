"""Chapter 02: a sentence of the learner's own, cut and numbered by the learner's own functions."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ipywidgets import IntSlider, Text, VBox

from transformer_ref.special_tokens import SPECIAL_TOKENS
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel
from transformer_ref.visualization.palette import KEY, QUERY

TEXT = (
    "I closed the windows . I bought new windows for my computer . we closed the old window . "
    "the newest computer shows the widest windows . the low door closed slowly ."
)
WIDTH, LETTER, PADDING, ROW = 560.0, 8.6, 14.0, 46.0
Labeled = Sequence[tuple[str, str]]  # what is in a box, and below it


def explorer(
    build_vocab: Callable[..., Any],
    encode: Callable[..., Any],
    bpe_train: Callable[..., Any],
    bpe_encode: Callable[..., Any],
) -> VBox:
    """Return the panel: a sentence, and the number of merges of the tokenizer."""
    sentence = Text(value="we closed the newest windows", description="a sentence", style=WIDE)
    merges = IntSlider(value=20, min=0, max=60, description="merges", style=WIDE)
    sentences = [part.split() for part in TEXT.split(".")]
    corpus = dict(Counter(word for words in sentences for word in words))

    def view(sentence: str, merges: int) -> Drawing:
        words = sentence.split()[:12]
        if not words:
            raise NotYet("Type a few words above.")
        vocab = ask(build_vocab, [list(each) for each in sentences], 1, list(SPECIAL_TOKENS))
        ids = ask(encode, list(words), dict(vocab))
        learned = ask(bpe_train, dict(corpus), merges)
        pieces = [ask(bpe_encode, word, list(learned)) for word in words]
        cut = [piece for word in pieces for piece in word]
        alt = (
            f"Your encode, with a vocabulary of {len(vocab)}: {' '.join(map(str, ids))} for {' '.join(words)}. After "
            f"{len(learned)} merges your bpe_encode cuts them into {len(cut)} pieces: {' '.join(cut)}."
        )
        return _rows(
            alt,
            ("words and ids, by your encode", [*zip([*words, "<eos>"], map(str, ids), strict=False)], QUERY),
            ("pieces, by your bpe_encode", [(piece, "") for piece in cut], KEY),
        )

    return panel("Explorer: your vocabulary and your tokenizer", [sentence, merges], view)


def _rows(alt: str, *rows: tuple[str, Labeled, str]) -> Drawing:
    """Draw boxes in rows below their titles; a full row continues in the next one."""
    placed, y = [], 0.0
    for title, boxes, color in rows:
        placed.append((title, "", 0.0, y, 0.0, color))
        x, y = 0.0, y + 26
        for word, below in boxes:
            width = max(len(word), len(below)) * LETTER + PADDING
            if x + width > WIDTH:
                x, y = 0.0, y + ROW
            placed.append((word, below, x, y, width, color))
            x += width + 4
        y += ROW + 8
    drawing = Drawing(WIDTH, y, alt)
    for word, below, x, y, width, color in placed:
        if not width:
            drawing.text(x, y + 12, word, anchor="start", bold=True)
            continue
        drawing.rectangle(x, y, width, 24, color, opacity=0.22, stroke=color, radius=4)
        drawing.text(x + width / 2, y + 12, word)
        drawing.text(x + width / 2, y + 35, below, size=12)
    return drawing
