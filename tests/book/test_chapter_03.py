"""Chapter 03: its numbers come out of its own cells, its widgets move, and their numbers are transformer_ref's."""

import itertools
import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page, expect

from transformer_ref.model.similarity import cosine, dot

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "03_similarity"

WORKED_EXAMPLES = {
    "the two pairs": [r"tensor\(12\.\) tensor\(3\.\)", r"cosine +0\.970 +0\.243"],
    "row I": [r"I +0\.707 +0\.707 +0\.000 +1\.414"],
    "row closed": [r"closed +0\.707 +1\.414 +0\.707 +1\.414"],
    "row the": [r"the +0\.000 +0\.707 +0\.707 +0\.000"],
    "row windows": [r"windows +1\.414 +1\.414 +0\.000 +2\.828"],
    "the spread": [
        r"d +4 +std +2\.0 ",
        r"d +64 +std +8\.0 ",
        r"d +512 +std 22\.6 ",
    ],
    "the printed table": [r"4 cells right, 12 wrong", r"\(0, 2\): 8 cells right", r"mirror image: False"],
    "cosines, not scores": [r"cosine +1\.000 +0\.707 +[-−]1\.000"],
}


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_numbers_come_out_of_the_cells(printed, example):
    for pattern in WORKED_EXAMPLES[example]:
        assert re.search(pattern, printed), f"{example}: {pattern} is nowhere in the outputs"


ARROWS = (((1, 4), (0, 3)), ((1, 4), (3, 0)), ((2.5, -1), (-3, 0.5)), ((1, 2), (-2, -4)), ((0, 0), (3, 1)))


def shown(page: Page, measure: str) -> float:
    return float(page.locator(f"#W03a [data-measure={measure}]").inner_text().replace("−", "-"))


def put(page: Page, points: tuple[tuple[float, float], ...]) -> None:
    for arrow, axis in itertools.product(range(2), range(2)):
        page.fill(f"#W03a [data-field='{arrow}-{axis}']", str(points[arrow][axis]))
        page.locator(f"#W03a [data-field='{arrow}-{axis}']").press("Tab")


@pytest.mark.browser
def test_the_two_arrows_compute_what_the_reference_computes(chapter):
    for points in ARROWS:
        put(chapter, points)
        a, b = torch.tensor(points, dtype=torch.float64)
        assert shown(chapter, "dot") == pytest.approx(dot(a, b).item(), abs=5e-4), points
        assert shown(chapter, "cosine") == pytest.approx(cosine(a[None], b[None]).item(), abs=5.1e-4), points
        assert shown(chapter, "scaled") == pytest.approx(dot(a, b).item() / 2**0.5, abs=5.1e-4), points


@pytest.mark.browser
def test_arrow_keys_move_a_tip_and_the_numbers_follow(chapter):
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        chapter.locator("#W03a .handle[data-index='1']").press(key)
    assert chapter.evaluate("document.activeElement.dataset.index") == "1"
    assert shown(chapter, "dot") == 1 * 1 + 4 * 2.5


@pytest.mark.browser
def test_dragging_a_tip_snaps_to_halves(chapter):
    handle = chapter.locator("#W03a .handle[data-index='0']")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    chapter.mouse.move(x, y)
    chapter.mouse.down()
    chapter.mouse.move(x + 83, y + 57, steps=4)
    chapter.mouse.up()
    place = [float(chapter.locator(f"#W03a [data-field='0-{axis}']").input_value()) for axis in range(2)]
    assert place != [1.0, 4.0] and all((2 * number).is_integer() for number in place)


@pytest.mark.browser
def test_the_slider_shows_the_spread_of_every_width(chapter):
    handle, caption = chapter.get_by_label("how many numbers d"), chapter.locator("#W03b output")
    expect(caption).to_contain_text("d = 64: standard deviation 8.0")
    for _ in range(4):
        handle.press("ArrowLeft")
    expect(caption).to_contain_text("d = 4: standard deviation 2.0")
