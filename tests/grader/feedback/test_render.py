"""How a report looks: one set of parts, as text and as HTML that says the same and runs nothing of a learner's."""

import re

import pytest
import torch
from bs4 import BeautifulSoup
from IPython.core.interactiveshell import InteractiveShell

from autograder import address
from autograder import check as check_module
from autograder.feedback import render
from autograder.feedback.parts import Example, Head, Line, Row
from autograder.notebook import own_check
from autograder.notebook.own_check import judge_in_notebook

SCRIPT = "<script>alert('x')</script><img src=x onerror=alert(1)>"
ANSWERS = {
    "right": "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)\n",
    "known": "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT, dim=-1)\n",
    "unknown": "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / 1.3, -1)\n",
    "stops": f"def attention_weights(Q, K):\n    raise ValueError({SCRIPT!r} + ' *a* `b`')\n",
    "missing": "x = 1\n",
    "blank": "def attention_weights(Q, K):\n    raise NotImplementedError\n",
}


@pytest.fixture
def shown(monkeypatch):
    """What the check of an answer shows, as text and as parsed HTML."""
    monkeypatch.setattr(own_check, "_kept", {})
    monkeypatch.setattr(own_check, "_failed", {})
    monkeypatch.setenv(address.SETTING, "https://book.example")

    def show(source, exercise="attention-weights"):
        namespace: dict = {"torch": torch, "__name__": "__main__"}
        exec(source, namespace)
        outcome = judge_in_notebook(exercise, namespace)
        return outcome["text"], BeautifulSoup(outcome["html"], "html.parser")

    return show


def words(text: str) -> list[str]:
    """The words, in whatever order columns are, without signs and marks."""
    return sorted(re.findall(r"[\w.]+", re.sub(r"[*`✓✗·]", " ", text)))


@pytest.mark.parametrize("name", ANSWERS)
def test_the_html_says_what_the_text_says_and_holds_no_tag_of_a_learner_s(shown, name):
    text, page = shown(ANSWERS[name])
    assert {tag.name for tag in page.find_all()} <= {
        *("div", "p", "strong", "span", "table", "tr", "th", "td", "code", "em", "a")
    }
    assert not [each for tag in page.find_all() for each in tag.attrs if each.startswith("on")]
    assert words(text) == words(page.get_text(" "))
    assert ("✗" in text) == bool(page.find("span", attrs={"aria-label": "not passed: "}))


def test_a_learner_s_exception_is_shown_letter_by_letter(shown):
    _, page = shown(ANSWERS["stops"])
    assert f"ValueError: {SCRIPT} *a* `b`" in page.get_text()


def test_the_section_to_reread_is_a_link_to_the_book_and_words_where_no_book_is(shown, monkeypatch):
    link = shown(ANSWERS["known"])[1].find("a")
    assert link["href"] == "https://book.example/05_self_attention.html#sec-05-why-divide"
    assert link.get_text() == '05, "Scaled dot products: why divide?"'
    monkeypatch.setattr("autograder.notebook.own_check.book_address", lambda: "")
    text, page = shown(ANSWERS["known"])
    assert page.find("a") is None and "http" not in text
    assert 'Reread 05, "Scaled dot products: why divide?"' in page.get_text()


def test_where_numbers_differ_the_learner_s_are_marked_and_only_there():
    row = Row("four words", 'row "windows"', ("0.157", "0.647"), ("0.157", "0.776"))
    page = BeautifulSoup(render.as_html([Head("a", 0, 2, "points"), row], ""), "html.parser")
    cells = page.find_all("td")
    assert [cell.get_text() for cell in cells] == ["0.157", "0.647", "0.157", "0.776"]
    assert ["border-bottom" in cell["style"] for cell in cells] == [False, False, False, True]


def test_the_names_of_an_example_are_not_broken_on_a_narrow_screen():
    example = Example((("ids", "[[5]]"),), "[[[[True]]]]", "[[[[True]], [[True]], [[True]]]]")
    page = BeautifulSoup(render.as_html([Head("a", 0, 2, "points"), example], ""), "html.parser")
    heads = page.find_all("th")
    assert [head.get_text() for head in heads] == ["ids =", "should be", "yours is"]
    assert all("white-space:nowrap" in head["style"] for head in heads)


def test_stars_and_ticks_are_markup_in_our_words_alone():
    ours, theirs = (
        BeautifulSoup(render.as_html([Line("a *b* `c` <i>", ours=each)], ""), "html.parser") for each in (True, False)
    )
    assert [tag.get_text() for tag in ours.find_all(["em", "code"])] == ["b", "c"] and ours.find("i") is None
    product = BeautifulSoup(render.as_html([Line("*all* of `a *b* c`", ours=True)], ""), "html.parser")
    assert product.find("code").get_text() == "a *b* c" and product.find("em").get_text() == "all"
    assert theirs.get_text() == "a *b* `c` <i>" and theirs.find(["em", "code", "i"]) is None


def test_a_kernel_gets_both_and_a_terminal_the_text(monkeypatch, capsys):
    kept = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: kept.append((data, raw)))
    monkeypatch.setattr(check_module, "_shell", lambda: type("Shell", (), {"kernel": None})())
    check_module._show({"text": "plain", "html": "<b>rich</b>"})
    assert kept == [({"text/plain": "plain", "text/html": "<b>rich</b>"}, True)]
    monkeypatch.setattr(check_module, "_shell", InteractiveShell)  # IPython in a terminal has no kernel
    check_module._show({"text": "plain", "html": "<b>rich</b>"})
    captured = capsys.readouterr()
    assert captured.out == "plain\n" and captured.err == "" and len(kept) == 1


def test_a_report_takes_its_ink_from_the_theme(shown):
    _, page = shown(ANSWERS["known"])
    colors = re.findall(r"(?<![-\w])color:([^;]+);", str(page))
    assert colors and all(each.startswith("var(--jp-") or each in ("inherit", render.MISTAKE) for each in colors)
    assert "background:#" not in str(page)
