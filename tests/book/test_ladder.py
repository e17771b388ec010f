"""The page that adds one part at a time: the record is of these models, and what the page says was recorded."""

import pytest

from book.recorded.gpt import loss_of
from book.recorded.ladder import PROMPT, RUNGS, SEEDS, line, texts, trained
from transformer_ref.beyond.gpt import GPT
from transformer_ref.recording import recording


@pytest.fixture(scope="module")
def rungs() -> dict[str, dict]:
    return {rung["rung"]: rung for rung in recording("ladder")["rungs"]}


def test_the_record_is_of_these_models(rungs):
    learned, _ = texts()
    assert list(rungs) == list(RUNGS) and recording("ladder")["seeds"] == list(SEEDS)
    for name, build in RUNGS.items():
        model = build(learned)
        assert sum(each.numel() for each in model.parameters()) == rungs[name]["parameters"]
        assert len(rungs[name]["losses"]) == len(SEEDS) and rungs[name]["line"].startswith(PROMPT)
    assert type(model) is GPT  # the last one is the chapter's model


@pytest.mark.parametrize("name", ["pairs", "average"])
def test_a_model_that_is_trained_again_has_the_recorded_loss(rungs, name):
    learned, unseen = texts()
    model = trained(name, learned, SEEDS[0])
    assert loss_of(model, unseen) == pytest.approx(rungs[name]["losses"][0], abs=0.03)
    if name == "pairs":
        assert line(model) == rungs[name]["line"]


def test_what_the_page_says_of_the_losses_was_recorded(rungs):
    losses = {name: rung["losses"] for name, rung in rungs.items()}
    table = losses["pairs"][0]
    assert min(losses["average"]) > table + 0.5, "the loss rises"
    assert table < min(losses["one head"]) and max(losses["one head"]) < min(losses["average"]) - 0.5
    assert min(losses["four heads"]) < table < max(losses["four heads"]) < table + 0.05, "it has caught up"
    assert max(losses["feed-forward"]) < table
    assert max(max(each) for each in losses.values()) == max(losses["four blocks"])
    assert min(losses["four blocks"]) > max(losses["average"]), "the worst of the seven"
    assert max(losses["residual and norm"]) < 0.3
    assert rungs["one head"]["parameters"] == rungs["four heads"]["parameters"]
    assert rungs["four blocks"]["parameters"] > 3 * rungs["feed-forward"]["parameters"]
    added = rungs["residual and norm"]["parameters"] - rungs["four blocks"]["parameters"]
    assert 0 < added < 0.01 * rungs["four blocks"]["parameters"], "almost no parameters"
