"""Slides of a chapter's figures."""

import re

import pytest

from book.tools import slides

CHAPTER = "03_similarity"


@pytest.mark.browser
def test_every_figure_of_a_chapter_is_a_slide_of_its_own(book, browser, tmp_path):
    pdf = tmp_path / "deck.pdf"
    count = slides.figures_to_pdf(browser, book.site / f"{CHAPTER}.html", pdf)
    figures = book.soup(CHAPTER).select(".bd-article .cell_output svg.drawing[aria-label]")
    still = [figure for figure in figures if not figure.find_parent(class_=["widget", "for-phone"])]
    assert count == len(still) > 2
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf.read_bytes())) == count


def test_a_chapter_that_is_not_built_is_a_sentence(capsys):
    assert slides.main(["05"]) == 2
    assert "CHAPTER: expected one of the built chapters" in capsys.readouterr().err
