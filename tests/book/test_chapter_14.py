"""Chapter 14: its worked numbers, its recorded training runs, and its moving parts show what the recordings hold."""

import json
import re

import pytest
import torch
from playwright.sync_api import expect

from book.recorded import vision
from transformer_ref.beyond import images, questions

CHAPTER = "14_vision"
RECORD = json.loads(vision.RECORD.read_text(encoding="utf-8"))
TASKS, LOOKING, KINDS = RECORD["compare"]["tasks"], RECORD["pixels"]["kinds"], RECORD["questions"]["kinds"]
WORKED = [
    r"50,176 pixels\n2,517,630,976 weights a head\n9\.4 GiB",
    r"196 patches of 768 numbers\n197 tokens, 38,809 weights",
    r"\[ 0, +1, +4, +5\]",
    r"all +86,567,656",
    r"with positions +changes\nwithout positions no change",
    r"CNN equal\nViT not",
    r"tensor\(\[2\.000, 3\.000\]\)",
    r"0\.5 tensor\(\[1\.000, 2\.500\]\)",
    r"query +0\nkey +0\nvalue +0\ngamma +not 0",
    r"\[ +3\., +3\., +3\.\],\n.*-17\.",
    r"equal True\nweights \(9, 9, 9\)",
    r"corner +\[0, 0, 0, 0, 1, 1, 0, 1, 1\]",
    r"kernel +3\nflipped -3",
    r"\(1, 64, 48\) 4,225 257",
]


def every_seed(task: str, model: str) -> list[float]:
    return TASKS[task]["models"][model]["right"]


def mean(task: str, model: str) -> float:
    return sum(every_seed(task, model)) / 3


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


def test_the_recording_is_of_three_seeds_and_says_how_it_was_made():
    assert RECORD["command"] == "python -m book.recorded.vision"
    for part in ("compare", "pixels", "questions"):
        assert len(RECORD[part]["seeds"]) == 3 and {"python", "torch"} == set(RECORD[part]["versions"])
    assert sum(RECORD[part]["cpu_seconds"] for part in vision.PARTS) < 8 * 60


def test_the_recorded_models_are_those_of_the_program():
    for task, (_, _, _, classes) in vision.TASKS.items():
        for name, (make, _) in vision.MODELS.items():
            assert TASKS[task]["models"][name]["weights"] == vision.size(make(classes))
    for shown, told in zip(RECORD["questions"]["scenes shown"], vision.SHOWN.values(), strict=True):
        assert shown == {name: getattr(told, name)[0].tolist() for name in told._fields}


def test_a_convolution_wins_where_the_page_says_so():
    for task in ("shapes", "shapes, more images", "shapes, other half", "counts"):
        assert min(every_seed(task, "local CNN")) > max(every_seed(task, "ViT")), task
    assert min(every_seed("shapes", "deep CNN")) > max(every_seed("shapes", "ViT"))
    assert mean("shapes", "ViT") < mean("shapes, more images", "ViT") < mean("shapes, more images", "local CNN")
    assert max(every_seed("shapes, other half", "deep CNN")) < 0.8 and min(every_seed("counts", "ViT")) > 0.7
    assert abs(mean("counts", "ViT") - mean("counts", "deep CNN")) < 0.1


def test_what_needs_far_pixels_is_beyond_the_local_network_without_attention():
    for model in ("ViT", "deep CNN"):
        assert min(every_seed("relations", model)) > 0.98
    assert max(every_seed("relations", "local CNN")) < 0.78  # three of four, and what chance adds
    without, looking = ([row["right"] for row in LOOKING[kind]] for kind in ("without", "with"))
    assert max(without) < 0.78 and sorted(without)[1] < 0.55 < 0.7 < max(without)
    assert min(looking) > 0.98
    assert LOOKING["with"][0]["weights"] - LOOKING["without"][0]["weights"] == 513


def test_the_door_starts_shut_and_opens_to_either_side():
    ends = [row["gamma"][-1] for row in LOOKING["with"]]
    assert all(row["gamma"][0] == 0 for row in LOOKING["with"])
    assert min(ends) < -0.2 and sorted(ends)[1] > 0.2
    assert all(max(map(abs, row["gamma"][: 1 + 200 // 20])) > 0.3 for row in LOOKING["with"])


def test_whoever_asks_all_look_at_one_place_and_it_holds_ink():
    for row in LOOKING["with"]:
        for shown in row["opened"]:
            weights = torch.tensor(shown["weights"])
            (place,) = set(weights.argmax(dim=1).tolist())
            assert weights.max(dim=1).values.min() > 0.9
            across = images.SIDE // 3
            top, left = 3 * (place // across), 3 * (place % across)
            ink = torch.tensor(shown["image"]) > 0.5
            assert ink[max(0, top - 2) : top + 5, max(0, left - 2) : left + 5].any()
            assert shown["said"][shown["same"]] > 0.9


def test_both_maps_lie_on_the_hot_dog_and_one_model_alone_reads_it():
    """What the section on misleading maps says, for each of the three seeds."""
    for row in KINDS["all toppings"]:
        found = row["on the hot dog"]
        assert row["as trained"] > 0.99 and found["right"] > 0.99 and found["map"] > 0.95
        assert found["swapped"] > 0.99 and 0.6 < found["even"] < 0.7
    for row in KINDS["always mustard"]:
        found = row["on the hot dog"]
        assert row["as trained"] > 0.99 and found["map"] > 0.75
        assert found["swapped"] < 0.05 and found["even"] < 0.1 and found["right"] < 0.3
        assert row["on the pizza"]["right"] > 0.95 and row["under the hot dog"]["right"] > 0.9


@pytest.mark.browser
def test_a_smaller_patch_means_more_words(chapter):
    widget = chapter.locator("#W14a")
    expect(widget.locator("output")).to_contain_text("9 patches of 192 numbers, 10 tokens")
    widget.get_by_label("side of a patch").press("ArrowRight")
    expect(widget.locator("output")).to_contain_text("16 patches of 108 numbers, 17 tokens")


@pytest.mark.browser
def test_a_place_that_asks_shows_the_recorded_weights(chapter):
    widget = chapter.locator("#W14b")
    widget.get_by_label("seed 3", exact=True).check()
    widget.get_by_label("different", exact=True).check()
    widget.get_by_role("slider", name="column").press("ArrowRight")
    weights = LOOKING["with"][2]["opened"][1]["weights"][6 * 2 + 1]
    best = max(range(36), key=weights.__getitem__)
    expect(widget.locator("output")).to_contain_text("Query: row 3, column 2.")
    expect(widget.locator("output")).to_contain_text(f"row {best // 6 + 1}, column {best % 6 + 1}: {weights[best]:.2f}")


@pytest.mark.browser
def test_nine_heads_add_up_to_the_convolution(chapter):
    widget = chapter.locator("#W14c")
    for _ in range(9):
        widget.get_by_label("heads added").press("ArrowRight")
    expect(widget.locator("output")).to_contain_text("All nine: the convolution.")
    widget.get_by_label("a corner", exact=True).check()
    expect(widget.locator("output")).to_contain_text("The sum there so far: −3.")


@pytest.mark.browser
def test_the_model_that_knows_only_mustard_says_mustard_of_ketchup(chapter):
    widget = chapter.locator("#W14d")
    expect(widget.locator("output")).to_contain_text("says ketchup")
    widget.get_by_label("mustard", exact=True).check()
    expect(widget.locator("output")).to_contain_text("says mustard")
    widget.get_by_label("ketchup", exact=True).check()
    widget.get_by_label("always mustard", exact=True).check()
    expect(widget.locator("output")).to_contain_text(re.compile("says mustard .* wrong, it is ketchup"))
    widget.get_by_label("under", exact=True).check()
    expect(widget.locator("output")).to_contain_text("says blue cloth")
    assert len(questions.FOODS) == widget.get_by_role("group", name="the", exact=True).get_by_role("radio").count()
