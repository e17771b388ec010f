"""Chapter 10's laboratory: every fault is one, its test finds it, and the record is of the faults that there are."""

import json
from functools import cache

import pytest
import torch

from book.recorded import laboratory, laboratory_tests
from transformer_ref.data.batching import Batch, pad_sequences, shift_right
from transformer_ref.faults import hiding
from transformer_ref.faults.attention import opened
from transformer_ref.faults.known import FAULTS
from transformer_ref.special_tokens import BOS, EOS, PAD

RECORD = json.loads(laboratory.RECORD.read_text(encoding="utf-8"))
EVERY_TEST = sorted({fault.test for fault in FAULTS})


@cache
def batch() -> Batch:
    """Three sentence pairs of different lengths."""
    pairs = sorted(laboratory.corpus().train[:40], key=lambda pair: len(pair[1]))
    source, labels = (
        pad_sequences([[*pair[side], EOS] for pair in (pairs[-1], pairs[0], pairs[20])], PAD) for side in (0, 1)
    )
    return Batch(source, shift_right(labels, BOS), labels)


@pytest.mark.parametrize("test", EVERY_TEST)
def test_the_sound_experiment_passes(test):
    assert getattr(laboratory_tests, test)(laboratory.sound(1), batch()) is None  # it raises AssertionError otherwise


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_its_test_finds_the_fault(fault):
    torch.manual_seed(1)
    with pytest.raises(AssertionError):
        getattr(laboratory_tests, fault.test)(laboratory.broken(fault.name, 1), batch())


def test_opened_attention_with_sound_steps_is_the_sound_one():
    sound, open_one = laboratory.sound(1), laboratory.sound(1)
    opened()(open_one)
    ids = batch().source, batch().target_input
    torch.testing.assert_close(open_one.model.eval()(*ids), sound.model.eval()(*ids))


def test_the_record_holds_every_fault_over_every_seed_as_it_is_described_now():
    assert RECORD["about"]["sentences"] == list(laboratory.SHOWN)
    assert list(RECORD["faults"]) == [laboratory.SOUND, *(fault.name for fault in FAULTS)]
    for name, found in RECORD["faults"].items():
        assert {key: found[key] for key in found if key != "seeds"} == laboratory.described(name)
        assert [*found["seeds"]] == [str(seed) for seed in laboratory.SEEDS]


def of(losses, rights) -> dict:
    """A record of three training runs."""
    pairs = enumerate(zip(losses, rights, strict=True))
    return {"seeds": {str(seed): {"loss": loss, "right": right} for seed, (loss, right) in pairs}}


@pytest.mark.parametrize(
    ("losses", "rights", "group"),
    [
        ([0.1, 0.2, 0.3], [0.0, 0.1, 0.2], hiding.BETTER),
        ([0.3, 0.2, 0.41], [0.0, 0.1, 0.2], hiding.TRANSLATIONS),
        ([0.7, 0.61, 0.9], [0.9, 0.9, 0.9], hiding.LOSS),
        ([0.4, 0.5, 0.6], [0.9, 0.8, 0.7], hiding.UNSEEN),
        ([0.3, 0.5, 0.7], [0.1, 0.2, 0.81], hiding.UNSEEN),
    ],
)
def test_a_difference_counts_when_every_seed_lies_beyond_every_seed_of_the_sound_model(losses, rights, group):
    assert hiding.hiding(of(losses, rights), of([0.4, 0.5, 0.6], [0.8, 0.9, 0.95])) == group


def test_the_sound_model_translates_nearly_everything_and_no_other_of_the_six_curves_does():
    best = {name: max(hiding.of_seeds(RECORD["faults"][name], "right")) for name in hiding.QUIZ}
    assert min(hiding.of_seeds(RECORD["faults"][laboratory.SOUND], "right")) > 0.9
    assert [name for name, right in best.items() if right > 0.5] == [laboratory.SOUND]


@pytest.mark.parametrize("name", [fault.name for fault in FAULTS][-3:])
def test_a_mistake_made_after_the_training_leaves_the_loss_as_it_is_and_spoils_the_translations(name):
    found, sound = RECORD["faults"][name], RECORD["faults"][laboratory.SOUND]
    assert hiding.of_seeds(found, "loss") == hiding.of_seeds(sound, "loss")
    assert hiding.hiding(found, sound) == hiding.TRANSLATIONS


@pytest.mark.parametrize(
    ("name", "group"),
    {
        "no causal mask": hiding.BETTER,
        "mask after the softmax": hiding.BETTER,
        "scores times mask": hiding.BETTER,
        "divided by d_k": hiding.UNSEEN,
        "no padding mask": hiding.UNSEEN,
        "no scaling": hiding.LOSS,
    }.items(),
)
def test_the_page_says_of_a_mistake_what_its_record_shows(name, group):
    assert hiding.hiding(RECORD["faults"][name], RECORD["faults"][laboratory.SOUND]) == group


def test_most_of_what_lowers_the_loss_lets_a_word_see_what_it_is_to_predict():
    sound = RECORD["faults"][laboratory.SOUND]
    better = [fault for fault in FAULTS if hiding.hiding(RECORD["faults"][fault.name], sound) == hiding.BETTER]
    tests = ("later_words_change_nothing", "the_decoder_input_is_the_labels_shifted", "shares_of_a_query_sum_to_one")
    leaking = [fault for fault in better if fault.test in tests]
    assert len(leaking) > len(better) / 2
    translating = {
        fault.name
        for fault in better
        if hiding.apart(*(hiding.of_seeds(RECORD["faults"][n], "right") for n in (fault.name, laboratory.SOUND))) >= 0
    }
    assert translating == {"pads counted in the loss", "no zero_grad"}


def test_without_a_padding_mask_some_translations_change_with_the_pads_and_with_one_none():
    for name, moved in (("no padding mask", True), (laboratory.SOUND, False)):
        assert (max(hiding.of_seeds(RECORD["faults"][name], "moved_by_padding")) > 0) == moved
