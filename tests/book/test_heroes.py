"""One page-wide figure for each chapter: its numbers are the functions' own, it fits a phone, anybody can read it."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import pytest
import torch
from bs4 import BeautifulSoup, Tag

from book.figures.attention import attention_hero
from book.figures.clock_hands import clock_hands_hero
from book.figures.drawn_to_scale import drawn_to_scale_hero
from book.figures.four_ways import four_ways_hero
from book.figures.guesses import Read, guesses_hero
from book.figures.heads import Head, heads_hero
from book.figures.matrix import told
from book.figures.rows_of_a_table import rows_of_a_table_hero
from book.figures.scene_and_question import scene_and_question_hero
from book.figures.scores_to_shares import scores_to_shares_hero
from book.figures.shifted_right import Taught, shifted_right_hero
from book.figures.three_measures import three_measures_hero
from book.figures.time_steps import Step, time_steps_hero
from book.figures.translations import Translation, translations_hero
from book.figures.who_sees_whom import View, who_sees_whom_hero
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.masks import causal_mask, padding_mask
from transformer_ref.model.positional_encoding import sinusoidal_table
from transformer_ref.model.similarity import cosine, scaled_dot_product_scores
from transformer_ref.model.softmax import softmax
from transformer_ref.visualization.drawing import FONT_SIZE, Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.machine import ROAD, machine, road_map
from transformer_ref.visualization.palette import KEY, QUERY, VALUE, text_on, weight_fill

MOST_BYTES = 60_000  # of a hero, both arrangements together, before they are packed for the way
SMALLEST_LETTERS = 12.0
LETTER = 0.5  # of its size: how wide a letter is on average, at least; a word estimated by it is never too wide
PAPER_AND_INK = {"light": ("#ffffff", "#111827", "#000000"), "dark": ("#14181e", "#f1f5f9", "#f1f5f9")}  # on a weight
WORDS = "I closed the windows".split()
X = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])  # (word, feature)
S = scaled_dot_product_scores(X, X)
A = softmax(S)
THREE = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])


def numbers(table: torch.Tensor, digits: int) -> list[str]:
    return [told(number, digits) for number in table.flatten().tolist()]


def listen(piece: torch.Tensor) -> Head:
    found, weights = explicit_attention(piece, piece, piece)
    return Head(piece, weights, found)


def seen(mask: torch.Tensor) -> View:
    queries = torch.zeros(1, 1, 4, 1)
    weights = explicit_attention(queries, queries, queries, mask.expand(1, 1, 4, 4)).weights[0, 0]
    return View("encoder", "no pads", WORDS, WORDS, weights, ~mask.expand(1, 1, 4, 4)[0, 0])


def of_attention() -> tuple[Hero, list[str]]:
    hero = attention_hero(WORDS, Q=X, K=X, V=X, S=S, A=A, Z=A @ X, divisor="√2", followed=3, met=1)
    return hero, [*3 * numbers(X, 0), *numbers(S, 3), *numbers(A, 3), *numbers(A @ X, 3)]


def of_heads() -> tuple[Hero, list[str]]:
    heads, whole = [listen(THREE[:, :2]), listen(THREE[:, 2:])], listen(THREE)
    wanted = [text for head in (*heads, whole) for text in (*numbers(head.weights, 3), *numbers(head.found, 3))]
    return heads_hero(WORDS[:3], THREE, heads, whole), wanted


def of_clock_hands() -> tuple[Hero, list[str]]:
    table, rounds = sinusoidal_table(5, 8), [2 * math.pi * 10_000 ** (i / 4) for i in range(4)]
    return clock_hands_hero(table, [str(t) for t in range(5)], rounds), ["6.3", "63", "628", "6,283"]


def of_masks() -> tuple[Hero, list[str]]:
    views = [seen(padding_mask(torch.tensor([[1, 1, 1, 0]]), 0)), seen(causal_mask(4))]
    shares = [weight for view in views for row in view.weights.tolist() for weight in row if weight]
    return who_sees_whom_hero(views), [told(share, 2) for share in shares]


def of_a_table() -> tuple[Hero, list[str]]:
    table, ids = torch.arange(12.0).reshape(6, 2), [4, 1, 5]
    hero = rows_of_a_table_hero("b a c", ["<pad>", "a", "<eos>", "<unk>", "b", "c"], ids, table)
    return hero, [*numbers(table, 1), *numbers(table[ids], 1), *map(str, ids)]


def of_measures() -> tuple[Hero, list[str]]:
    measures = {"dot product": (X @ X.T, 0), "cosine": (cosine(X, X), 3), "score": (S, 3)}
    wanted = [text for table, digits in measures.values() for text in numbers(table, digits)]
    return three_measures_hero(WORDS, X, measures, asks=3, asked=1), [*wanted, "45°"]


def of_softmax() -> tuple[Hero, list[str]]:
    hot = {f"τ = {tau}": softmax(S[3] / tau) for tau in (0.5, 1, 4)}
    wanted = [text for column in (S[3], S[3].exp(), A[3], *hot.values()) for text in numbers(column, 3)]
    return scores_to_shares_hero(WORDS, S[3], S[3].exp(), A[3], hot), [*wanted, told(S[3].exp().sum(), 3)]


def of_four_ways() -> tuple[Hero, list[str]]:
    facts = {name: [f"{name} costs {place}"] for place, name in enumerate(("one", "back", "windows", "all"))}
    return four_ways_hero(WORDS, WORDS, A, facts), [line for lines in facts.values() for line in lines]


def of_training() -> tuple[Hero, list[str]]:
    long = Taught("I sleep.", ["<bos>", "Dormo", "."], ["Dormo", ".", "<eos>"], [0.5, 0.25, 1.0])
    short = Taught("Sleep!", ["<bos>", "Dormi", "<pad>"], ["Dormi", "<eos>", "<pad>"], [0.5, 0.5, None])
    return shifted_right_hero([long, short]), ["0.69", "1.39", "0.00", "0.69", "0.69"]


def of_writing() -> tuple[Hero, list[str]]:
    steps = [
        Step("<bos>", [("Ho", 0.9), ("Ha", 0.05)], "Ho"),
        Step("Ho", [("comprato", 0.6), ("studiato", 0.004)], "comprato"),
        *[Step(before, [("comprato", 0.004)], "comprato") for before in ["comprato"] * 5],
    ]
    return time_steps_hero("I bought.", steps), ["0.90", "0.05", "0.60", *["< 0.01"] * 6, "<bos>"]


def of_guesses() -> tuple[Hero, list[str]]:
    reads = [
        Read(letter, [(letter, 0.97), ("q", 0.31), (after, 0.84)], after)
        for letter, after in zip("a cat", " cat\n", strict=True)
    ]
    return guesses_hero("a cat", reads), [*5 * ["0.97", "0.31", "0.84", "q"], *3 * ["␣"], "↵"]


def of_translations() -> tuple[Hero, list[str]]:
    hero = translations_hero([Translation(WORDS, WORDS, A, 3), Translation(WORDS, WORDS[:2], A[:2], 1)])
    shares = [*A.flatten().tolist(), *A[:2].flatten().tolist()]
    return hero, [told(share, 2) for share in shares if share >= 0.1]


def of_sizes() -> tuple[Hero, list[str]]:
    wanted = ["67 MB", "256 × 256: 262 kB", "64 × 64: 17 kB", "17 MB", "4.2 MB", "2.1 MB", "8 groups", "1 group"]
    return drawn_to_scale_hero(4096, 256, 64, (8, 2, 1)), wanted


def of_a_scene() -> tuple[Hero, list[str]]:
    pixels = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(1)).round()
    hero = scene_and_question_hero(pixels, 2, "what is on the hot dog?", [*[0.05] * 8, 0.6], [("mustard", 0.75)])
    return hero, [*["0.05"] * 8, "0.60", "0.75", "mustard"]


def of_the_machine() -> tuple[Hero, list[str]]:
    return machine(lambda key: f"#{key}"), [str(number) for number in range(1, 22)]


def of_the_road() -> tuple[Hero, list[str]]:
    return road_map(lambda chapter: f"{chapter}.html"), [
        part.name for part in ROAD.values() if "layer" not in part.name
    ]


MADE = [value for name, value in list(globals().items()) if name.startswith("of_")]


@cache
def made(maker: Callable[[], tuple[Hero, list[str]]]) -> tuple[Hero, list[str], list[Tag]]:
    hero, wanted = maker()
    return hero, wanted, BeautifulSoup(hero._repr_html_(), "html.parser").select("svg")


def every(check: Callable) -> Callable:
    return pytest.mark.parametrize("maker", MADE, ids=lambda maker: maker.__name__)(check)


@every
def test_both_arrangements_show_every_number_as_often_as_it_was_given(maker):
    _, wanted, pictures = made(maker)
    assert len(pictures) == 2
    for picture in pictures:
        missing = Counter(wanted) - Counter(text.get_text() for text in picture.select("text"))
        assert not missing


@every
def test_a_hero_is_small_has_no_id_and_says_in_words_what_it_shows(maker):
    hero, _, pictures = made(maker)
    page = hero._repr_html_()
    assert len(page.encode()) < MOST_BYTES
    assert " id=" not in page and "url(#" not in page
    for picture in pictures:
        assert picture["role"] in ("img", "group") and len(picture["aria-label"].split()) > 20
    assert len(str(hero).splitlines()) >= 3


@every
def test_every_word_of_a_hero_stays_inside_its_picture_and_is_large_enough(maker):
    for picture, widest in zip(made(maker)[2], (PAGE, PHONE), strict=True):
        *_, width, height = map(float, picture["viewbox"].split())
        assert width <= widest
        for words, left, right, top, bottom in places_of_words(picture):
            assert left >= -1 and right <= width + 1, (words, left, right, width)
            assert top >= -1 and bottom <= height + 1, (words, top, bottom, height)
        for text in picture.select("text"):
            assert float(text.get("font-size", FONT_SIZE)) >= SMALLEST_LETTERS, text.get_text()


def places_of_words(picture: Tag) -> Iterator[tuple[str, float, float, float, float]]:
    """The texts of a picture with their minimal boxes, including the transforms of their groups."""
    for text in picture.select("text"):
        x, y, size = float(text["x"]), float(text["y"]), float(text.get("font-size", FONT_SIZE))
        for group in text.find_parents("g"):
            across, down = map(float, re.findall(r"[-\d.]+", group["transform"]))
            x, y = x + across, y + down
        long = LETTER * size * len(text.get_text())
        start = {"start": 0.0, "middle": long / 2, "end": long}[text.get("text-anchor", "middle")]
        if text.has_attr("transform"):  # rotated to be upright
            yield text.get_text(), x - size / 2, x + size / 2, y - long + start, y + start
        else:
            yield text.get_text(), x - start, x - start + long, y - 0.8 * size, y + 0.2 * size


@every
def test_the_words_of_a_hero_do_not_lie_on_each_other(maker):
    for picture in made(maker)[2]:
        boxes = list(places_of_words(picture))
        for number, (words, left, right, top, bottom) in enumerate(boxes):
            for other, left2, right2, top2, bottom2 in boxes[number + 1 :]:
                apart = right <= left2 + 2 or right2 <= left + 2 or bottom <= top2 + 4 or bottom2 <= top + 4
                assert apart, (words, other)


@pytest.mark.parametrize("theme", PAPER_AND_INK)
@pytest.mark.parametrize("percent", range(0, 101, 4))
def test_text_on_a_weight_can_be_read_at_every_weight_in_light_and_dark(theme, percent):
    paper, ink, on_weight = PAPER_AND_INK[theme]
    fill, opacity = weight_fill(percent / 100)
    said = text_on(opacity)
    text = "#ffffff" if said == "#ffffff" else on_weight if "--on-weight" in said else ink
    assert contrast(text, blended(fill, opacity, paper)) >= 4.5


@pytest.mark.parametrize(("theme", "color"), product(PAPER_AND_INK, (QUERY, KEY, VALUE)))
def test_ink_on_the_tint_of_a_role_can_be_read_in_light_and_dark(theme, color):
    paper, ink, _ = PAPER_AND_INK[theme]
    assert contrast(ink, blended(color, 0.25, paper)) >= 4.5


def channels(color: str) -> list[int]:
    return [int(color[place : place + 2], 16) for place in (1, 3, 5)]


def blended(fill: str, opacity: float, paper: str) -> str:
    pairs = zip(channels(fill), channels(paper), strict=True)
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    def light(color: str) -> float:
        shares = [c / 255 for c in channels(color)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return sum(weight * s for weight, s in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_drawing_that_is_too_wide_for_its_place_is_refused():
    page, phone = (Drawing(width, 10, "a picture for a test") for width in (PAGE, PHONE))
    with pytest.raises(ValueError, match="narrow: expected a drawing of at most 350 pixels, got 720"):
        Hero(page, page, ["words"])
    assert Hero(page, phone, ["a", "b"]).words == "a\nb"


def test_boxes_are_drawn_to_one_scale_and_a_tile_lies_within_the_table():
    for picture in BeautifulSoup(drawn_to_scale_hero(1024, 128, 32, (4, 1))._repr_html_(), "html.parser").select("svg"):
        wide = Counter(float(box["width"]) for box in picture.select("rect"))
        side = max(wide)
        assert wide[round(side / 8, 1)] == 2 and wide[round(side / 32, 1)] == 1 + 2 * 4 + 2
    with pytest.raises(ValueError, match="expected d_head < tile < length, got 64, 64, 4096"):
        drawn_to_scale_hero(4096, 64, 64, (1,))


def test_a_share_that_a_closed_cell_has_is_refused():
    view = seen(causal_mask(4))
    leaky = view._replace(weights=torch.full((4, 4), 0.25))
    with pytest.raises(ValueError, match="expected 0 wherever encoder is closed"):
        who_sees_whom_hero([leaky])


def test_a_step_that_reads_another_word_than_was_taken_is_refused():
    steps = [Step("<bos>", [("Ho", 0.9)], "Ho"), Step("Ha", [("dormito", 0.6)], "dormito")]
    with pytest.raises(ValueError, match="expected a step that reads 'Ho', got 'Ha'"):
        time_steps_hero("I slept.", steps)
    with pytest.raises(ValueError, match="expected 'Ha' among the likeliest"):
        time_steps_hero("I slept.", [steps[0]._replace(taken="Ha")])


def test_letters_that_were_asked_at_different_depths_are_refused():
    reads = [Read("a", [("b", 0.5)], "b"), Read("b", [("c", 0.5), ("c", 0.9)], "c")]
    with pytest.raises(ValueError, match=r"expected the same number of depths for every letter, got \[1, 2\]"):
        guesses_hero("abc", reads)


@pytest.mark.parametrize(
    "chapter",
    [
        *("00_start_here", "01_why_attention", "02_text_to_vectors", "03_similarity", "04_softmax"),
        *("05_self_attention", "06_multi_head_attention", "07_positional_encoding", "08_masks", "09_blocks"),
        *("10_training", "11_inference", "12_capstone", "13_gpt", "14_vision", "15_pretrained", "16_efficient"),
    ],
)
def test_a_chapter_has_one_hero_in_two_arrangements(book, chapter):
    heroes = book.soup(chapter).select(".chapter-hero")
    assert [len(hero.select(".for-page > svg, .for-phone > svg")) for hero in heroes] == [2]


def test_a_scene_with_another_number_of_weights_than_patches_is_refused():
    with pytest.raises(ValueError, match="weights: expected one for each of 9 patches"):
        scene_and_question_hero(torch.zeros(3, 6, 6), 2, "what?", [1.0], [("mustard", 1.0)])
