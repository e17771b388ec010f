"""Figures: the right words next to the right numbers, one scale, words for everybody."""

import ast
import re
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

import book.figures
import transformer_ref.visualization
from book.figures.beam_tree import Branch, beam_tree
from book.figures.shapes_diagram import projections_diagram, shapes_diagram
from transformer_ref.visualization import palette
from transformer_ref.visualization.bars import FULL_LENGTH, share_bars
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.heat_map import MOST_NUMBERS, heat_map
from transformer_ref.visualization.palette import STRONGEST_SIGNED, signed_fill, weight_fill
from transformer_ref.visualization.plane import Plane
from transformer_ref.visualization.tables import STRONGEST, WHITE_INK_FROM, Table, text_table

ALT = "A map made for a test"
DRAWING = ("transformer_ref.visualization", "book.figures")


def drawn(picture) -> BeautifulSoup:
    return BeautifulSoup(picture._repr_html_(), "html.parser")


@given(queries=st.integers(1, 5), keys=st.integers(1, 9))
@settings(deadline=None)  # no test of ours is about time
def test_every_cell_of_a_heat_map_shows_its_own_weight(queries, keys):
    weights = torch.arange(queries * keys).reshape(queries, keys) / (queries * keys)
    rows, columns = [f"q{i}" for i in range(queries)], [f"k{j}" for j in range(keys)]
    told = [title.get_text() for title in drawn(heat_map(weights, rows, columns, ALT)).select("rect title")]
    assert told == [f"q{i} to k{j}: {weights[i, j]:.3f}" for i in range(queries) for j in range(keys)]


def test_a_weight_has_the_same_color_in_every_map():
    small = drawn(heat_map([[0.25, 0.75]], ["q"], ["a", "b"], ALT)).select("rect")
    large = drawn(heat_map([[0.25, 0.10]], ["q"], ["a", "b"], ALT)).select("rect")
    assert small[0]["fill-opacity"] == large[0]["fill-opacity"] == "0.250"


def test_a_big_map_shows_colors_without_numbers():
    side = int(MOST_NUMBERS**0.5) + 1
    names = [f"w{index}" for index in range(side)]
    texts = [text.get_text() for text in drawn(heat_map([[0.5] * side] * side, names, names, ALT)).select("text")]
    assert "0.500" not in texts


def test_a_masked_cell_is_hatched_and_has_no_number():
    picture = drawn(heat_map([[1.0, 0.0]], ["q"], ["a", "b"], ALT, hidden=[[False, True]]))
    assert [text.get_text() for text in picture.select("text")].count("0.000") == 0
    assert len(picture.select("path.hatch")) == 1


def test_the_lines_of_a_hatching_stay_inside_their_box_and_need_no_id():
    drawing = Drawing(100, 100, "a hatched box for a test")
    drawing.hatched_rectangle(20, 30, 50, 40)
    page = drawn(drawing)
    numbers = [float(number) for number in re.findall(r"[\d.]+", page.select_one("path.hatch")["d"])]
    assert len(numbers) >= 4 * 8
    assert all(20 <= x <= 70 for x in numbers[::2]) and all(30 <= y <= 70 for y in numbers[1::2])
    assert page.select("[id]") == []


def test_a_map_refuses_words_that_do_not_fit_and_scores_that_are_no_weights():
    with pytest.raises(ValueError, match="weights: expected 2 x 3 numbers"):
        heat_map([[0.5, 0.5]], ["a", "b"], ["c", "d", "e"], ALT)
    with pytest.raises(ValueError, match="from 0 to 1"):
        heat_map([[1.4, 0.5]], ["a"], ["c", "d"], ALT)


def test_signed_values_have_two_hues_that_meet_at_zero():
    assert signed_fill(0.5, 1.0)[0] != signed_fill(-0.5, 1.0)[0]
    assert signed_fill(0.0, 1.0)[1] == 0.0 and signed_fill(-1.0, 1.0)[1] == STRONGEST_SIGNED
    with pytest.raises(ValueError, match=r"from -1\.0 to 1\.0"):
        signed_fill(1.5, 1.0)


@given(weight=st.floats(0, 1))
def test_a_weight_is_shown_by_its_own_size(weight):
    assert weight_fill(weight)[1] == weight
    bar = drawn(share_bars(["word"], [weight], ALT)).select("rect")[1]
    assert float(bar["width"]) == pytest.approx(weight * FULL_LENGTH, abs=0.06)


def test_a_plane_has_one_unit_for_both_axes_and_up_is_up():
    plane = Plane((-1, 2), (0, 3), ALT, unit=50)
    (x0, y0), (x1, y1) = plane.place((0, 0)), plane.place((1, 1))
    assert x1 - x0 == 50 and y1 - y0 == -50


@given(sizes=st.tuples(*[st.integers(1, 9)] * 4))
def test_the_shapes_diagram_names_every_axis_length(sizes):
    queries, keys, d_k, d_v = sizes
    texts = [text.get_text() for text in drawn(shapes_diagram(queries, keys, d_k, d_v)).select("text")]
    assert [
        texts.count(f"query {queries}"),
        texts.count(f"key {keys}"),
        texts.count(f"dk {d_k}"),  # the k is set low
        texts.count(f"dv {d_v}"),
    ] == [4, 4, 2, 2]


def test_the_projections_diagram_shows_one_x_three_times_and_its_three_tables():
    texts = [text.get_text() for text in drawn(projections_diagram(4, 7, 3, 5)).select("text")]
    assert [texts.count(letter) for letter in ("X", "WQ", "WK", "WV", "Q", "K", "V")] == [3, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("alt", ["", "map", "figure of attention"])
def test_a_drawing_without_a_real_description_is_refused(alt):
    with pytest.raises(ValueError, match="alt: expected a sentence"):
        Drawing(10, 10, alt)


def test_a_beam_tree_shows_every_branch_right_of_its_beginning_and_frames_what_was_not_cut():
    tree = {("a",): (0.5, "kept"), ("b",): (0.4, "kept"), ("a", "a"): (0.2, "cut"), ("b", "end"): (0.36, "finished")}
    page = drawn(beam_tree([Branch(words, *rest) for words, rest in tree.items()]))
    places = {text.get_text(): float(text["x"]) for text in page.select("text")}
    assert places["a  0.20"] > places["a  0.50"] and places["end  0.36"] > places["b  0.40"]
    assert len(page.select("rect")) == 2 + 2 + 3  # kept, finished (filled as well), the legend
    with pytest.raises(ValueError, match="every beginning"):
        beam_tree([Branch(("a", "b"), 0.1, "kept")])


def test_words_on_a_drawing_cannot_become_markup():
    picture = heat_map([[1.0]], ["<script>"], ['"a" & b'], 'Says "<b>" & more here')
    page = BeautifulSoup(picture.to_svg(), "html.parser")
    assert page.find(["script", "b"]) is None
    assert page.svg["aria-label"] == 'Says "<b>" & more here'


def test_a_text_table_keeps_every_number_under_its_word():
    lines = text_table([[0.5, 0.25], [1.0, 10.0]], ["a", "longer"], ["first", "2nd"], sums=True).splitlines()
    assert lines == ["        first     2nd     sum", "a       0.500   0.250   0.750", "longer  1.000  10.000  11.000"]


WORDS = ["I", "closed"]


@given(rows=st.integers(1, 4), columns=st.integers(1, 9), digits=st.integers(0, 4))
def test_a_table_on_a_page_and_the_same_table_printed_say_the_same_words_and_numbers(rows, columns, digits):
    numbers = torch.rand(rows, columns, generator=torch.Generator().manual_seed(rows)) - 0.5
    table = Table(
        numbers, [f"r{i}" for i in range(rows)], [f"c{j}" for j in range(columns)], "made for a test",
        digits=digits, signed=True, note="and below it",
    )  # fmt: skip
    page = drawn(table)
    page.style.decompose()
    assert page.get_text(" ").replace("−", "-").split() == repr(table).split()


def test_a_column_has_digits_of_its_own_and_a_cell_may_be_words():
    names = ["steps", "loss", "writes"]
    table = Table([[1_234.0, 0.5, "near <eos>"]], ["r"], names, "mixed", digits=[0, 2, 0], signed=True)
    assert repr(table).split() == ["mixed", "steps", "loss", "writes", "r", "1,234", "0.50", "near", "<eos>"]
    cells = drawn(table).select("tbody td")
    assert [cell.get_text() for cell in cells] == ["1,234", "0.50", "near <eos>"]
    assert cells[2]["class"] == ["words"] and "style" not in cells[2].attrs
    with pytest.raises(ValueError, match="digits: expected one number, or 3, got"):
        Table([[1.0, 2.0, 3.0]], ["r"], list("abc"), "too few", digits=[1, 2])


def test_a_screen_reader_hears_title_row_and_column_of_every_number_and_the_sum_of_shares():
    page = drawn(Table([[0.25, 0.75], [1.0, 0.0]], WORDS, WORDS, "A, the <weights>", shares=True, asking=True))
    assert page.caption.get_text() == "A, the <weights>"
    assert [(head.get_text(), head["scope"]) for head in page.select("th")] == [
        *((word, "col") for word in [*WORDS, "sum"]),
        *((word, "row") for word in WORDS),
    ]
    assert [cell.get_text() for cell in page.select("td.sum")] == ["1.000", "1.000"]


def contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """The contrast ratio of two sRGB colors from 0 to 255, as WCAG defines it."""

    def light(color):
        linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    darker, lighter = sorted((light(first), light(second)))
    return lighter / darker


def rgb(color: str) -> tuple[int, ...]:
    return tuple(int(color[at : at + 2], 16) for at in (1, 3, 5))


@given(share=st.floats(0, 1), dark=st.booleans())
def test_the_number_in_a_shaded_cell_can_be_read_at_every_share_on_a_light_page_and_on_a_dark_one(share, dark):
    """The colors are those of course.css: ink on shaded cells, and paper."""
    cell = drawn(Table([[share]], ["a"], ["b"], "one share", shaded=True)).select_one("tbody td")
    assert f"--of:{100 * share:.1f}" == cell["style"]
    paper, ink = ((20, 24, 30), (241, 245, 249)) if dark else ((255, 255, 255), (0, 0, 0))
    assert ("full" in cell["class"]) == (share >= WHITE_INK_FROM)
    ink = (255, 255, 255) if "full" in cell["class"] else ink
    fill = tuple(share * hue + (1 - share) * page for hue, page in zip(rgb(palette.WEIGHT), paper, strict=True))
    assert contrast(fill, ink) >= 4.5


@given(value=st.floats(-1, 1), dark=st.booleans())
def test_a_signed_number_can_be_read_on_both_hues(value, dark):
    cell = drawn(Table([[value, 1.0]], ["a"], ["b", "c"], "two numbers", signed=True)).select_one("tbody td")
    assert ("above" in cell["class"]) == (value >= 0)
    depth = float(cell["style"].removeprefix("--of:")) / 100
    assert depth == pytest.approx(STRONGEST / 100 * abs(value), abs=1e-3)
    paper, ink = ((20, 24, 30), (241, 245, 249)) if dark else ((255, 255, 255), (0, 0, 0))
    hue = rgb(palette.POSITIVE if value >= 0 else palette.NEGATIVE)
    fill = tuple(depth * part + (1 - depth) * page for part, page in zip(hue, paper, strict=True))
    assert contrast(fill, ink) >= 4.5


def test_a_masked_cell_of_a_table_is_hatched_and_keeps_its_number():
    cells = drawn(Table([[1.0, 0.0]], ["q"], WORDS, "masked", shares=True, masked=[[False, True]])).select("tbody td")
    assert [cell["class"][0] for cell in cells] == ["share", "masked", "sum"]
    assert cells[1].get_text() == "0.000"


def test_a_table_refuses_what_it_could_only_show_wrongly():
    with pytest.raises(ValueError, match="numbers: expected 1 x 2 numbers"):
        Table([[1.0]], ["a"], WORDS, "too few")
    with pytest.raises(ValueError, match="numbers: expected shares from 0 to 1 in 'scores', got 1.4"):
        Table([[1.4]], ["a"], ["b"], "scores", shares=True)
    with pytest.raises(ValueError, match=r"shaded: expected words of the rows or columns, got \['c'\]"):
        Table([[0.4]], ["a"], ["b"], "shares", shaded=["c"])
    with pytest.raises(ValueError, match="title: expected words"):
        Table([[0.4]], ["a"], ["b"], " ")


def test_figures_import_nothing_else_of_ours():
    folder = Path(transformer_ref.visualization.__file__).parent
    for module in [*folder.glob("*.py"), *Path(book.figures.__file__).parent.glob("*.py")]:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in getattr(node, "names", [])]
            others = [name for name in filter(None, names) if not name.startswith(DRAWING)]
            ours = [name for name in others if name.startswith(("book", "transformer_ref", "autograder", "torch"))]
            assert not ours, module
