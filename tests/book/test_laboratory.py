"""Chapter 08's laboratory: every fault is one, its test finds it, and the record is of the faults that there are."""

import json
from functools import cache

import pytest
import torch

from book.recorded import laboratory, laboratory_tests
from transformer_ref.data.batching import Batch, pad_sequences, shift_right
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
    getattr(laboratory_tests, test)(laboratory.sound(1), batch())


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
