"""Chapter 05: the picture at the top, and what becomes of a lecture's table."""

import re

import pytest
from bs4 import BeautifulSoup

from transformer_ref.visualization.attention_figure import AttentionFigure
from transformer_ref.visualization.drawing import Drawing

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
ALT = ("the scores of four words", "the shares of four words")


def figure(**changed) -> AttentionFigure:
    tables = {**TABLES, **changed}
    return AttentionFigure("I closed the windows".split(), divisor="√2", followed=3, alt=ALT, **tables)


def test_the_picture_at_the_top_holds_every_number_of_the_four_words(book):
    drawn = book.soup(CHAPTER).select_one(".attention-figure")
    told = [text.get_text() for text in drawn.select("text")]
    for table in TABLES.values():
        for number in (number for row in table for number in row):
            assert f"{number:.3f}" in told or f"{number:g}" in told, number


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


def test_keys_left_behind_give_another_vector_and_keys_moved_the_same(book):
    printed = "\n".join(node.get_text() for node in book.soup(CHAPTER).select(".cell_output"))
    rows = dict(re.findall(r"(before|both moved|keys stay) +tensor\(\[(\d\.\d+, \d\.\d+)\]\)", printed))
    assert rows == {"before": "1.340, 0.330", "both moved": "1.340, 0.330", "keys stay": "1.000, 0.670"}
