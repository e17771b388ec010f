"""Chapter 05: the picture at the top, and what becomes of a lecture's table."""

import re
from collections import Counter

import pytest
from bs4 import BeautifulSoup

from book.figures.attention import attention_hero
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import Hero

CHAPTER = "05_self_attention"
TABLES = {
    "Q": [[1, 0], [1, 1], [0, 1], [2, 0]],
    "K": [[1, 0], [1, 1], [0, 1], [2, 0]],
    "V": [[1, 0], [1, 1], [0, 1], [2, 0]],
    "S": [[0.707, 0.707, 0, 1.414], [0.707, 1.414, 0.707, 1.414], [0, 0.707, 0.707, 0], [1.414, 1.414, 0, 2.828]],
    "A": [[0.221, 0.221, 0.109, 0.449], [0.165, 0.335, 0.165, 0.335], [0.165, 0.335, 0.335, 0.165]]
    + [[0.157, 0.157, 0.038, 0.647]],
    "Z": [[1.340, 0.330], [1.170, 0.500], [0.830, 0.670], [1.609, 0.196]],
}


def figure(**changed) -> Hero:
    tables = {**TABLES, **changed}
    return attention_hero("I closed the windows".split(), divisor="√2", followed=3, met=1, **tables)


def test_the_picture_at_the_top_holds_every_number_of_the_four_words(book):
    for drawn in book.soup(CHAPTER).select(".chapter-hero svg"):
        told = Counter(text.get_text() for text in drawn.select("text"))
        wanted = Counter(
            f"{number:g}" if name in "QKV" else f"{number:.3f}"
            for name, table in TABLES.items()
            for row in table
            for number in row
        )
        assert wanted - told == Counter()


def test_the_picture_refuses_a_table_that_lacks_a_word():
    with pytest.raises(ValueError, match=r"V: expected a row for each of 4 words, got 3"):
        figure(V=TABLES["V"][:3])
    with pytest.raises(ValueError, match="expected Q, K, V, S, A, Z, got A, K, M, Q, S, V, Z"):
        figure(M=TABLES["V"])


def test_the_letter_after_an_underscore_is_low_and_the_rest_is_back_on_the_line():
    drawing = Drawing(10, 10, "a label with an index")
    drawing.text(0, 0, "d_k < 5", subscripts=True)
    drawing.text(0, 0, "a_b")
    first, second = BeautifulSoup(drawing.to_svg(), "html.parser").select("text")
    low, back = first.select("tspan")
    assert (low.get_text(), back.get_text(), second.get_text()) == ("k", " < 5", "a_b")
    assert float(low["dy"]) == -float(back["dy"]) > 0


def test_keys_left_behind_give_another_vector_and_keys_moved_the_same(printed):
    rows = dict(re.findall(r"(before|both moved|keys stay) +tensor\(\[(\d\.\d+, \d\.\d+)\]\)", printed))
    assert rows == {"before": "1.340, 0.330", "both moved": "1.340, 0.330", "keys stay": "1.000, 0.670"}
