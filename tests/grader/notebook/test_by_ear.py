"""Reports of checks and of progress, as a screen reader gets them."""

import accessibility_tree
import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import report
from autograder.judging.observe import LocalEndpoint
from autograder.notebook import own_check, progress_overview

ATTEND = "def attend(W, V):\n    "
WEIGHTS = "def attention_weights(Q, K):\n    "
ANSWERS = {  # kind of answer -> the exercise, the answer, and words that the report must contain
    "right": ("attend", f"{ATTEND}return W @ V\n", "passed:"),
    "a known mistake": ("attention-weights", f"{WEIGHTS}return torch.softmax(Q @ K.mT, -1)\n", "not passed:"),
    "nothing known": (
        "attention-weights",
        f"{WEIGHTS}return torch.softmax(Q @ K.mT, -1) ** 1.7 + 0.01\n",
        "not passed:",
    ),
    "an error": (
        "attend",
        "def attend(W, V):\n    raise ValueError('x')\n",
        "four words: your code stopped with ValueError",
    ),
    "blank": (
        "attend",
        "def attend(W, V):\n    raise NotImplementedError\n",
        "The answer still raises NotImplementedError",
    ),
    "missing": ("attend", "", "attend"),
}


@pytest.fixture
def heard(browser):
    """Show HTML as a cell's output; returns its accessibility errors and its spoken text."""
    page = browser.new_page()

    def show(html: str) -> tuple[list[str], str]:
        page.set_content(f"<html lang='en'><body>{html}</body></html>")
        return accessibility_tree.faults(page, whole=False), accessibility_tree.spoken(page)

    yield show
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_report_says_in_words_what_its_signs_and_colors_say(heard, kind):
    name, source, words = ANSWERS[kind]
    verdict = judge_and_explain(catalogue.find(name), LocalEndpoint(namespace_of(source)), None)
    shown = own_check.outcome_of(verdict, report(verdict))
    found, said = heard(shown["html"])
    assert found == [] and words in said


@pytest.mark.browser
def test_progress_says_of_each_exercise_and_chapter_where_it_stands(heard, tmp_path, monkeypatch):
    monkeypatch.setattr(progress_overview.progress_store, "place", lambda: tmp_path)
    earned = {"attend": (4.0, 4.0), "attention-weights": (0.0, 8.0)}
    found, said = heard(progress_overview.standing(earned, {})["html"])
    assert found == []
    assert "solved 05.1 attend" in said and "begun 05.2" in said and "untouched 05.3" in said


@pytest.mark.browser
@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<button></button>", "button without a name"),
        ("<a href='x'></a>", "link without a name"),
        ("<svg role='img'></svg>", "without a name"),
        (
            "<div role=table><div role=row><div role=cell>1</div></div></div>",
            "table without headers",
        ),
        ("<p><b>✗</b> softmax</p>", "a sign alone: ✗"),
        ("<div tabindex=0></div>", "div can be reached by key"),
    ],
)
def test_what_a_listener_would_miss_is_found(heard, html, fault):
    found, _ = heard(html)
    assert any(fault in each for each in found), found


@pytest.mark.browser
def test_a_page_needs_headings_in_order_and_one_main_part(browser):
    page = browser.new_page()
    page.set_content("<html lang='en'><body><h1>a</h1><h3>b</h3></body></html>")
    assert accessibility_tree.faults(page) == ["heading 1 is followed by 3", "0 main parts"]
    page.set_content("<html lang='en'><body><main><h1>a</h1><h2>b</h2></main></body></html>")
    assert accessibility_tree.faults(page) == []
    page.close()
