"""What a stranger's text costs the teacher who opens formgrader's page of one submission: seconds, whatever it is."""

import time

import pytest
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import strip_files_prefix
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder.reports import sanitize

FLOODS = {
    "formulas": "\\\\[" * 33_000,
    "formulas in a line": "\\\\(" * 33_000,
    "environments": "\\begin{a}" * 11_000,
    "formulas of a cell that is not long": "\\\\[" * 6_000,
    "brackets": "[" * 100_000,
    "tags": "<b>" * 33_000,
}


def page(*cells: str) -> str:
    filters = {"markdown2html": sanitize.markdown2html, "clean_html": sanitize.clean_html}
    notebook = new_notebook(cells=[new_markdown_cell(cell) for cell in cells])
    return HTMLExporter(filters=filters).from_notebook_node(notebook)[0]


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_of_marks_is_shown_as_it_was_written(flood):
    began = time.process_time()
    html = strip_files_prefix(sanitize.markdown2html({"cell": {}}, flood))  # as nbgrader's template has it
    assert time.process_time() - began < 5
    assert sanitize.NOT_RENDERED in html and "<b>" not in html and html.count("&#91;") == flood.count("[")


def test_formulas_and_brackets_of_an_honest_text_are_rendered():
    text = "*Why* [this](https://a.example)? " + "\\\\[ x^2 \\\\] and $y$, " * 50
    html = page(text)
    assert "<em>Why</em>" in html and 'href="https://a.example"' in html and sanitize.NOT_RENDERED not in html


def test_the_texts_of_a_page_have_a_time_together(monkeypatch):
    assert page("*one*", "*two*").count("<em>") == 2
    monkeypatch.setattr(sanitize, "MOST_SECONDS", 0.0)
    html = page("*one*", "*two* <i>", "*three*")
    assert html.count(sanitize.NOT_RENDERED) == 2 and "<em>one</em>" in html and "*two* &lt;i&gt;" in html


def test_a_text_at_which_the_renderer_fails_does_not_end_the_page(monkeypatch):
    def fails(*_):
        raise RecursionError

    monkeypatch.setattr(HTMLExporter, "markdown2html", fails)
    assert "*one* &lt;b&gt;" in sanitize.markdown2html({"cell": {}}, "*one* <b>")


NESTED = {
    "b": "<b>" * 33_000,
    "p and b": "<p><b>" * 16_000,
    "span and p": "<span><p>" * 11_000,
    "b and i": "<b></i>" * 14_000,
}


@pytest.mark.parametrize("tags", NESTED.values(), ids=NESTED)
def test_nested_tags_of_a_raw_cell_are_shown_as_they_were_written(tags):
    began = time.process_time()
    html = sanitize.clean_html(tags)
    assert time.process_time() - began < 5 and sanitize.NOT_RENDERED in html
    assert html.count("&lt;") == tags.count("<")


def test_tags_of_an_honest_raw_cell_are_rendered():
    assert sanitize.clean_html("<b>a</b>" * 900) == "<b>a</b>" * 900
