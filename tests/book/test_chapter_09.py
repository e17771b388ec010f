"""Chapter 09: its worked numbers, its record, its map of the machine, and its moving parts."""

import json
import re
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from autograder import catalogue
from transformer_ref.recording import recording
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.machine import PARTS, machine

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "09_blocks"
PAGE = (ROOT / "book" / f"{CHAPTER}.md").read_text(encoding="utf-8")
RECORD = recording("depth")
LISTED = re.findall(r"^- \[\*\*(\d+)\*\*\]\{#part-(\w+)\} .*? exercise (\d\d\.\d) `(\w+)`", PAGE, re.MULTILINE)
WORKED = [
    r"-1\.414 0\.000 0\.000 1\.414",
    r"-1\.225 0\.000 0\.000 1\.225",
    r"4 13\.4% too small",
    r"512 0\.1% too small",
    r"found +1\.609 0\.196\nbecomes 3\.609 0\.196",
    r"after thinking +0\.598 +13\.09 +0\.801",
    r"layer 1: 0\.000 -1\.414 0\.000 1\.414 +spread 1\.000",
    r"layer 1: 3\.414 2\.586 4\.000 6\.000",
    r"\b3,152,384\b",
    r"\b4,204,032\b",
    r"base +63,082,496",
    r"big +214,245,376",
    r"1: root 3\.464, -0\.577 -0\.577 -0\.577 1\.732",
    r"5: 100,970,496",
]


def test_the_files_of_the_model_are_as_many_as_the_page_says():
    folder = ROOT / "transformer_ref" / "model"
    names = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    assert len(names) == 15 and "`transformer_ref/model/` has fifteen short files" in PAGE
    assert {"keeping_weights.py", "tokens_alone.py", "key_value_cache.py"} <= names


def first_gradients(residual: bool, norm: str, depth: int) -> list[float]:
    (kind,) = (kind for kind in RECORD["start"] if (kind["residual"], kind["norm"]) == (residual, norm))
    return [row["gradients"][0] for row in kind["by_depth"][str(depth)]]


def right(layers: int, residual: bool, norm: str) -> list[float]:
    found = [
        row for row in RECORD["trained"] if (row["layers"], row["residual"], row["norm"]) == (layers, residual, norm)
    ]
    return found[0]["right"]


def test_what_the_page_says_of_gradients_is_what_was_recorded():
    assert max(first_gradients(False, "none", 24)) < 1e-4
    assert min(first_gradients(True, "none", 24)) > 1e18
    for residual in (True, False):
        for norm in ("before", "after"):
            assert all(0.5 < size < 25 for size in first_gradients(residual, norm, 24))


def test_every_layer_of_every_depth_from_2_to_24_was_measured_in_six_kinds():
    assert len(RECORD["start"]) == 6
    assert min(RECORD["depths"]) == 2 and max(RECORD["depths"]) == 24
    for kind in RECORD["start"]:
        for depth in RECORD["depths"]:
            assert [len(row["gradients"]) for row in kind["by_depth"][str(depth)]] == [depth] * 3


def test_what_the_page_says_of_the_trained_stacks_is_what_was_recorded():
    assert max(right(2, False, "before") + right(2, False, "after")) <= 0.40
    assert min(right(2, True, "before") + right(2, True, "after")) > 0.7
    mean = {norm: sum(right(6, True, norm)) / 3 for norm in ("before", "after")}
    assert f"{mean['before']:.2f}" == "0.96" and f"{mean['after']:.2f}" == "0.32"
    assert max(right(6, False, "before") + right(6, False, "after")) < mean["after"]


def test_the_recorded_gradients_come_out_again():
    from book.recorded.depth import start

    (kind,) = (kind for kind in RECORD["start"] if (kind["residual"], kind["norm"]) == (True, "before"))
    again = start(4, "before", True, seed=1)
    assert again.gradients == pytest.approx(kind["by_depth"]["4"][0]["gradients"], rel=0.02)  # three digits, any CPU


def test_every_box_of_the_machine_has_a_line_of_text_under_its_number():
    assert {key: int(number) for number, key, _, _ in LISTED} == {key: part.number for key, part in PARTS.items()}


def test_a_box_leads_to_the_exercise_that_bears_the_number_and_the_name():
    numbers = {e.id: e.number for a in catalogue.ASSIGNMENTS for e in a.exercises}
    for _, key, number, name in LISTED:
        exercise = re.sub(r"(?<=[a-z])(?=[A-Z])|_", "-", name).lower()
        assert numbers[exercise] == number, key


def test_a_part_names_the_exercise_that_the_list_names():
    for _, key, _, name in LISTED:
        assert PARTS[key].exercise == re.sub(r"(?<=[a-z])(?=[A-Z])|_", "-", name).lower()


def test_the_parts_of_solved_exercises_are_ticked_in_both_drawings_and_in_the_words():
    hero = machine(lambda key: f"#{key}", {"softmax", "embed"})
    ticked = [key for key, part in PARTS.items() if part.exercise in ("softmax", "embed")]
    assert ticked == ["embedding", "shares", "softmax"] and hero.words.count("✓") == 4  # an embedding on either side
    for drawing in (hero.wide, hero.narrow):
        assert drawing.to_svg().count("✓") == 4 and "3 of the 21 parts are ticked" in drawing.alt
    assert "✓" not in machine(lambda key: f"#{key}").words


def test_a_linked_drawing_can_be_entered_by_key_and_a_plain_one_is_an_image():
    page, phone = BeautifulSoup(machine(lambda key: f"#{key}")._repr_html_(), "html.parser").select("svg")
    assert page["role"] == phone["role"] == "group"
    for linked in (page, phone):
        assert {link["href"] for link in linked.select("a")} == {f"#{key}" for key in PARTS}
    assert 'role="img"' in Drawing(10, 10, "a drawing without any link").to_svg()


def test_a_line_of_code_is_found_by_its_name_and_a_name_that_is_not_there_is_none(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "extension")
    from source_line import line_of

    path = ROOT / "transformer_ref" / "model" / "residual.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[line_of(path, "Residual.write") - 1].strip().startswith("def write")
    assert line_of(path, "Residual.wrote") is None and line_of(path, "write") is None


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


@pytest.mark.browser
def test_a_box_of_the_machine_chosen_by_key_shows_its_line_with_a_link_to_its_section(chapter):
    widget = chapter.locator("#W09a")
    box = widget.locator('.for-page a[href="#part-cross"]')
    box.focus()
    chapter.keyboard.press("Enter")
    expect(widget.locator("output")).to_contain_text("target words look at the source")
    expect(widget.locator("output a").first).to_have_attribute("href", re.compile(r"#sec-09-decoder$"))
    expect(box).to_have_class("chosen")


@pytest.mark.browser
def test_the_gradients_shown_are_those_recorded(chapter):
    widget = chapter.locator("#W09b")
    for plus, norm, residual, depth in (("x + f(x)", "none", True, 24), ("f(x) alone", "before", False, 24)):
        widget.get_by_label(plus, exact=True).check()
        widget.get_by_label(norm, exact=True).check()
        widget.locator("#W09b-depth").press("End")
        label = widget.locator("svg").get_attribute("aria-label")
        assert f"{depth} layers" in label
        assert widget.locator("circle").count() == 3 * depth
        first = first_gradients(residual, norm, depth)[0]
        digit, exponent = f"{first:.0e}".split("e")
        raised = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(figure)] for figure in str(int(exponent)))
        assert f"First layer: {digit}" + (f" · 10{raised}" if int(exponent) else "") in label


@pytest.mark.browser
@pytest.mark.parametrize(
    ("place", "first"), [("after the plus (post-norm)", False), ("before the part (pre-norm)", True)]
)
def test_six_layers_of_either_placement_give_what_torch_gives(chapter, place, first):
    widget = chapter.locator("#W09c")
    widget.get_by_label(place).check()
    widget.get_by_label("layers").press("End")
    x = torch.tensor([2.0, 4.0, 4.0, 6.0])

    def norm(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, (4,))

    for _ in range(6):
        x = x + norm(x).roll(1) if first else norm(x + x.roll(1))
    shown = [float(text.replace("−", "-")) for text in widget.locator("tbody tr").last.locator("td").all_inner_texts()]
    assert shown[:4] == pytest.approx(x.tolist(), abs=2e-3)
    assert shown[4] == pytest.approx(x.std(correction=0).item(), abs=2e-3)


@pytest.mark.browser
def test_the_three_attentions_hide_what_their_masks_hide(chapter, book):
    written = json.loads(book.soup(CHAPTER).select_one("#blocks-data").get_text())["three"]
    widget = chapter.locator("#W09d")
    for attention in written:
        widget.get_by_label(attention["name"]).check()
        queries, keys = len(attention["rows"]), len(attention["columns"])
        hidden = queries * (queries - 1) // 2 if attention.get("causal") else 0
        expect(widget.locator("td.hidden-cell")).to_have_count(hidden)
        expect(widget.locator(".ch09-map td:not(.hidden-cell)")).to_have_count(queries * keys + 1 - hidden)
        expect(widget.locator(".role-key").first).to_have_text(attention["key"])
