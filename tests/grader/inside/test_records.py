"""A model's config travels by its fields and is checked anew where it arrives."""

import json

import pytest

from autograder.inside import wire
from transformer_ref.config import ModelConfig

CONFIG = ModelConfig(11, 13, d_model=6, heads=3, dropout=0.25, norm_first=True)


def test_a_config_arrives_as_it_was():
    assert wire.copy((CONFIG, 5)) == (CONFIG, 5)


@pytest.mark.parametrize(
    "record",
    [
        ["os", "system", {"dict": []}],
        ["transformer_ref.config", "ModelConfig", {"dict": []}],
        ["transformer_ref.config", "ModelConfig", {"value": 3}],
        [["transformer_ref.config"], "ModelConfig", {"dict": []}],
    ],
)
def test_a_record_of_another_class_or_of_other_fields_is_refused(record):
    with pytest.raises(wire.WireError):
        wire.decode(json.dumps([{"record": record}, []]).encode(), b"")
