"""Chapter 10: its worked numbers, its recorded training runs, and its moving parts show what transformer_ref
computes."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from book.recorded import training
from transformer_ref.data.batching import token_batches
from transformer_ref.training.schedule import cosine_factor, linear_factor, noam_rate

CHAPTER = "10_training"
RECORD = json.loads(training.RECORD.read_text(encoding="utf-8"))
WORKED = [
    r"position 1: reads Ti +should say amo",
    r"all positions +2\.005",
    r"0\.000, 0\.025, 0\.025, 0\.900, 0\.025, 0\.025",
    r"plain +0\.289\s+ours +0\.564\s+theirs +0\.522",
    r"PyTorch +0\.522",
    r"0\.0948 \+ 0\.3689 = 0\.4637",
    r"step +1: 1\.75e-07",
    r"step +4,000: 6\.99e-04",
    r"8,000, d 512 +8\.99",
    r"now \(0\.6, 0\.8\)",
    r"from position 2 on[^\n]*\n.*9\d\.\d%\n.*4\d\.\d%\n.*in order: +9[34]\.\d%",
    r"real tokens 180\s+cells +930",
    r"largest difference of a weight 0\.0",
    r"8 of 8 written exactly",
]


def move(slider, value: int) -> None:
    """Set a slider's value and dispatch the event."""
    slider.evaluate("(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value)


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


def test_seven_of_the_ten_mistakes_look_perfect_on_eight_sentences_and_none_of_them_writes_all(book):
    (table,) = [each for each in book.soup(CHAPTER).select("table.of-numbers") if "by heart" in each.caption.get_text()]
    rows = [(row.th.get_text(), *(cell.get_text() for cell in row.select("td"))) for row in table.select("tbody tr")]
    mistakes = {name: (float(loss), int(right.split()[0])) for name, loss, right, _ in rows}
    assert mistakes.pop("sound")[1] == 8
    perfect = [right for loss, right in mistakes.values() if loss < 0.01]
    assert (len(mistakes), len(perfect)) == (10, 7) and max(perfect) < 8
    assert mistakes["softmax twice"] == (3.056, 8)


def test_the_record_is_of_the_trainings_that_there_are():
    assert {name: RECORD["about"][name] for name in RECORD["about"] if name != "versions"} == {
        name: value for name, value in training.about().items() if name != "versions"
    }
    settings = {f"{norm}, {rate:g}, {start}" for norm, rate in training.TRIED for start in training.STARTS}
    assert set(RECORD["warm_up"]) == settings
    for found in (RECORD["course"], *RECORD["warm_up"].values()):
        assert [*found] == [str(seed) for seed in training.SEEDS]


def test_the_rate_without_a_warm_up_is_the_other_one_but_for_the_first_steps():
    warm, cold = ([training.factor(step, how) for step in range(1, 601)] for how in (True, False))
    assert cold[: training.WARM_UP] == [1.0] * training.WARM_UP
    assert warm[training.WARM_UP - 1 :] == cold[training.WARM_UP - 1 :] and warm[0] == 1 / training.WARM_UP


def test_the_accuracy_on_right_words_is_above_that_on_own_words_in_every_look():
    for look in (look for seed in RECORD["course"].values() for look in seed):
        assert look["forced"] > look["own"]


def test_what_the_page_says_of_step_150_is_what_was_recorded():
    looks = [look for seed in RECORD["course"].values() for look in seed if look["step"] == 150]
    forced, whole = (sum(look[name] for look in looks) / len(looks) for name in ("forced", "sentences"))
    assert (round(100 * forced), round(100 * (1 - whole))) == (84, 70)
    page = (Path(__file__).resolve().parents[2] / "book" / f"{CHAPTER}.md").read_text(encoding="utf-8")
    assert "At step 150" in page and "84 % of the tokens" in page and "70 % of its translations" in page


@pytest.mark.browser
def test_one_way_of_laying_the_input_shows_no_position_its_answer_but_needs_the_mask(chapter):
    widget = chapter.locator("#W10a")
    leaks = {}
    for shift in (-1, 0, 1, 2):
        move(widget.locator("#W10a-by"), shift)
        for mask in ("on", "off"):
            widget.get_by_label(mask, exact=True).check()
            leaks[shift, mask] = widget.locator("tr.leak").count()
    assert leaks == {(-1, "on"): 3, (-1, "off"): 3, (0, "on"): 4, (0, "off"): 4,
                     (1, "on"): 0, (1, "off"): 3, (2, "on"): 0, (2, "off"): 2}  # fmt: skip


@pytest.mark.browser
def test_the_row_of_inputs_is_pulled_by_arrow_keys_and_by_dragging(chapter):
    widget = chapter.locator("#W10a")
    widget.locator("#W10a-by").press("ArrowRight")
    expect(widget.locator("output")).to_contain_text("Input one to the right")
    widget.locator("#W10a-by").press("ArrowLeft")
    expect(widget.locator("output")).to_contain_text("Input not shifted")
    row = widget.locator("[data-row=reads]")
    row.scroll_into_view_if_needed()
    box = row.bounding_box()
    chapter.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    chapter.mouse.down()
    chapter.mouse.move(box["x"] + box["width"] * 3 / 4, box["y"] + box["height"] / 2, steps=4)
    chapter.mouse.up()
    expect(widget.locator("output")).to_contain_text("Input one to the right")


@pytest.mark.browser
def test_while_translating_a_position_reads_only_what_has_been_written(chapter):
    widget = chapter.locator("#W10a")
    widget.get_by_label("translating").check()
    widget.get_by_label("2", exact=True).check()
    expect(widget.locator("output")).to_contain_text("Place 2 sees nothing; what it learned to read there has not")
    move(widget.locator("#W10a-by"), 1)
    reads = widget.locator("tbody td:nth-of-type(1)").all_inner_texts()
    assert reads == ["<bos>", "Ti", "amo", "(not yet)"]
    expect(widget.locator("output")).to_contain_text("Place 2 sees <bos> Ti amo")


@pytest.mark.browser
@pytest.mark.parametrize(("d", "warm"), [(512, 4000), (128, 400)])
def test_the_schedule_shows_the_rates_of_the_reference(chapter, d, warm):
    widget = chapter.locator("#W10b")
    widget.get_by_label(str(d), exact=True).check()
    move(widget.locator("#W10b-warm"), warm)
    peak = noam_rate(warm, d, warm)
    rows = widget.locator("tbody tr")
    assert rows.count() == 8
    for row in rows.all():
        step, *shown = row.locator("th, td").all_inner_texts()
        step = int(step.replace(",", ""))
        done = (step - 1) / 20_000
        expected = [
            noam_rate(step, d, warm),
            peak * linear_factor(step, warm, done),
            peak * cosine_factor(step, warm, done),
        ]
        assert [float(text) for text in shown] == pytest.approx(expected, rel=0.006)
    expect(widget.locator("output")).to_contain_text(f"d = {d}, warm-up {warm:,}")


@pytest.mark.browser
@pytest.mark.parametrize("limit", [128, 1536])
def test_the_batches_are_those_of_the_reference_and_of_the_text(chapter, book, limit, printed):
    lengths = json.loads(book.soup(CHAPTER).select_one("#training-data").get_text())["lengths"]
    widget = chapter.locator("#W10c")
    widget.get_by_label(f"{limit:,}", exact=True).check()
    widget.get_by_label("sorted by length").check()
    batches = token_batches(lengths, limit)
    cells = sum(len(items) * max(lengths[item] for item in items) for items in batches)
    told = widget.locator("[data-order=sorted] td").all_inner_texts()
    assert told == [f"{len(batches):,}", f"{cells:,}", f"{100 * (1 - sum(lengths) / cells):.1f} %"]
    widget.get_by_role("button", name="batch before").press("Enter")  # from the first to the last
    last = batches[-1]
    expect(widget.locator("output")).to_contain_text(f"Batch {len(batches)} of {len(batches)}: {len(last)} sentences")
    come = widget.locator("[data-order=come] td").all_inner_texts()
    line = re.search(rf"^ *{limit}  as they come +(\d+) +(\d+) +([\d.]+)%", printed, re.MULTILINE)
    assert [text.replace(",", "") for text in come] == [line[1], line[2], f"{line[3]} %"]


@pytest.mark.browser
def test_the_laboratory_shows_the_chosen_mistake_with_its_test(book, chapter):
    widget = chapter.locator("#W10d")
    written = json.loads(book.soup(CHAPTER).select_one("#laboratory-data").get_text())
    assert widget.locator("option").count() == 37
    for name in ("no causal mask", "no scaling"):
        fault = next(fault for fault in written["faults"] if fault["name"] == name)
        widget.locator("select").select_option(name)
        expect(widget.locator("output")).to_contain_text(f"{name}: {fault['group']}")
        expect(widget.locator("pre.test")).to_have_text(fault["test"].strip())
    before = widget.locator("output").inner_text()
    widget.get_by_role("button", name="next").press("Enter")
    expect(widget.locator("output")).not_to_have_text(before)


def test_every_mistake_of_the_laboratory_stands_in_the_widget_and_in_the_table_of_its_text(book, printed):
    written = json.loads(book.soup(CHAPTER).select_one("#laboratory-data").get_text())
    assert len(written["faults"]) == 37
    for fault in written["faults"]:
        losses = sorted(fault["losses"])
        assert f"{fault['name']:38s} {losses[0]:.3f} to {losses[-1]:.3f}" in printed
