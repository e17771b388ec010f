"""A config is checked once, when it is made, and survives the trip through JSON."""

import dataclasses
import json

import pytest
from drawn import tiny_config
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.config import ModelConfig
from transformer_ref.device import choose_device


@given(heads=st.integers(1, 5), d_head=st.integers(1, 9), norm_first=st.booleans(), pad=st.integers(0, 8))
def test_to_dict_then_json_then_from_dict_is_the_same_config(heads, d_head, norm_first, pad):
    config = tiny_config(heads=heads, d_model=heads * d_head, norm_first=norm_first, pad=pad)
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.d_head == d_head


def test_the_defaults_are_the_base_model_of_the_paper():
    config = ModelConfig(37_000, 37_000)
    assert (config.encoder_layers, config.decoder_layers, config.d_model, config.d_ff) == (6, 6, 512, 2048)
    assert (config.heads, config.d_head, config.dropout, config.norm_first) == (8, 64, 0.1, False)


def test_an_unknown_field_is_refused_by_name():
    with pytest.raises(ValueError, match=r"got .'widht'"):
        ModelConfig.from_dict({**tiny_config().to_dict(), "widht": 3})


def test_a_config_cannot_be_changed_after_it_was_checked():
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny_config().heads = 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 10}, r"d_model: expected a multiple of heads \(3\), got 10"),
        ({"heads": 0}, "heads: expected at least 1, got 0"),
        ({"d_ff": -1}, "d_ff: expected at least 1, got -1"),
        ({"max_length": 0}, "max_length: expected at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout: expected a probability in \[0, 1\), got 1.0"),
        ({"pad": 11}, "pad: expected an id of both vocabularies, from 0 to 10, got 11"),
        ({"eos": -1}, "eos: expected an id of both vocabularies, from 0 to 10, got -1"),
        ({"tie_embeddings": True}, "tie_embeddings: expected source_vocabulary equal to .*, got 11 and 13"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny_config(**changes)


@pytest.mark.parametrize("changes", [{"heads": 3.0}, {"heads": True}, {"norm_first": "pre"}, {"dropout": "0.1"}])
def test_a_value_of_another_type_is_refused_by_name(changes):
    with pytest.raises(TypeError, match=f"{next(iter(changes))}: expected"):
        tiny_config(**changes)


def test_the_device_is_the_one_asked_for():
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type in ("cpu", "cuda")


@pytest.mark.parametrize("request_", ["gpu", "cuda:", "cuda:x", "cpu:1", "", "cuda:99"])
def test_a_device_that_does_not_exist_is_refused(request_):
    with pytest.raises(ValueError, match="device: expected"):
        choose_device(request_)
