"""The inventory in a browser: two rounds, one visit, and nothing about what is right before the second is over."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from autograder.catalogue import inventory
from autograder.reports import beliefs

INVENTORY = inventory.read()
UNTOLD = [question.because for question in INVENTORY.questions]


def test_without_scripts_every_question_can_be_read_and_none_is_answered(book):
    page = book.soup("inventory")
    asked = page.select(".inventory fieldset")
    assert [each["id"].removeprefix("inventory-") for each in asked] == [each.id for each in INVENTORY.questions]
    for fieldset in asked:
        assert len(fieldset.select("label input[type=radio]")) == 5 and fieldset.legend.get_text(strip=True)
        assert not fieldset.select("[checked]")
    first = [fieldset.select_one("input")["value"] for fieldset in asked]
    assert 2 <= first.count("right") <= 10  # where no script shuffles, the first choice says nothing
    assert "Without JavaScript" in page.select_one(".inventory noscript").get_text()


def test_only_the_inventorys_page_loads_its_script(book):
    for name in ("inventory", "index", "05_self_attention"):
        loaded = [node["src"] for node in book.soup(name).select("script[src*=inventory]")]
        assert bool(loaded) == (name == "inventory")


def answer(page: Page, **given: str) -> None:
    """Choose the given answer for every question, else "I do not know"."""
    for question in INVENTORY.questions:
        chosen = given.get(question.id.replace("-", "_"), given.get("otherwise", "unknown"))
        page.locator(f"#inventory-{question.id} input[value='{chosen}']").check()


def order(page: Page) -> list[list[str]]:
    values = "fieldsets => fieldsets.map(f => [...f.querySelectorAll('input')].map(i => i.value))"
    return page.locator(".inventory fieldset").evaluate_all(values)


def told(page: Page) -> str:
    return page.locator(".inventory").inner_text()


@pytest.mark.browser
def test_a_reader_answers_twice_and_sees_which_beliefs_changed(book, visit, tmp_path):
    visited = visit((book.site / "inventory.html").as_uri())
    page = visited.page
    done = page.get_by_role("button", name="I am done")

    # the first round: by keyboard, kept over a reload, refused while a question is open
    first = INVENTORY.questions[0]
    page.locator(f"#inventory-{first.id} input").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("status")).to_have_text("1 of 24 answered")
    before, chosen = order(page), page.locator(".inventory input:checked").get_attribute("value")
    for _ in range(10):  # what is kept goes to another process, and a reload may be there before it
        page.wait_for_timeout(1_000)
        page.reload()
        page.locator(".inventory input").first.wait_for(state="attached")  # drawn by a script, perhaps after the load
        if page.locator(".inventory input:checked").count():
            break
    assert page.locator(".inventory input:checked").get_attribute("value") == chosen
    assert order(page) != before and all(values[-1] == "unknown" for values in order(page))
    done.click()
    expect(page.get_by_role("status")).to_contain_text("Still open: 2, 3, 4")
    answer(page, row_sums="softmax over the queries", beam="greedy", causal="right")
    done.click()
    expect(page.get_by_role("heading", name="Thank you")).to_be_focused()
    assert not [sentence for sentence in UNTOLD if sentence in told(page)] and "Right" not in told(page)

    # the file of the first round, in a browser that knows nothing
    with page.expect_download() as download:
        page.get_by_role("button", name="Save my answers").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == f"{INVENTORY.name}.json"
    page.get_by_role("button", name="Forget my answers").click()
    page.get_by_role("button", name="Press again").click()
    page.get_by_label("I have a saved file").set_input_files(path)
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()

    # the second round
    page.get_by_role("button", name="ask again").click()
    answer(page, otherwise="right", beam="greedy", causal="only the word itself", pads="unknown")
    done.click()
    expect(page.get_by_role("heading", name="What has changed")).to_be_focused()
    rows = page.locator(".inventory table tbody tr").all_inner_texts()
    assert [[int(number) for number in re.findall(r"\t(\d+)", row)] for row in rows] == [[1, 2, 21], [21, 2, 1]]
    held = page.locator(".inventory-change", has_text="A beam search keeps four")
    assert "Both times: Four continuations of the most probable beginning." in held.inner_text()
    assert "In exercise 11.3 this mistake is called “greedy”." in held.inner_text()
    assert (
        held.get_by_role("link", name="Reread 11, Beam search").get_attribute("href") == "11_inference.html#sec-11-beam"
    )
    learned = page.locator(".inventory-change.right", has_text="fills a table of weights")
    assert (
        "Before: Those of each column." in learned.inner_text() and "After: Those of each row." in learned.inner_text()
    )

    with page.expect_download() as download:
        page.get_by_role("button", name="Save my result").click()
    download.value.save_as(path)
    (record,), refused = beliefs.read_records([path])
    assert refused == [] and record.before["row-sums"] == "softmax over the queries"
    assert record.after["causal"] == "only the word itself" and record.after["row-sums"] == "right"
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert set(saved) == {"inventory", "version", "person", "before", "after"}
    assert re.fullmatch("[0-9a-f]{32}", saved["person"])  # a random number, by which two files of one person are one
    assert visited.failures == []


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_among_the_questions_or_in_the_result(book, visit, width, theme):
    from axe_playwright_python.sync_playwright import Axe

    page = visit((book.site / "inventory.html").as_uri(), width=width, theme=theme).page
    only = {"include": [[".inventory"]]}
    assert [rule["id"] for rule in Axe().run(page, context=only).response["violations"]] == []
    for _ in range(2):
        answer(page, row_sums="right")
        page.get_by_role("button", name="I am done").click()
        again = page.get_by_role("button", name="ask again")
        if again.count():
            again.click()
    page.locator(".inventory details").evaluate_all("folds => folds.forEach(fold => fold.open = true)")
    assert [rule["id"] for rule in Axe().run(page, context=only).response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
