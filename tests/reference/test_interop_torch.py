"""Weights go to torch.nn.Transformer and come back, and the two compute the same."""

import pytest
import torch
from drawn import ids as draw_ids
from drawn import tiny_config, tiny_model
from torch import Tensor, nn
from torch_oracle import assert_agree, shaken

from transformer_ref.interop.torch_transformer import (
    load_torch_transformer,
    save_torch_transformer,
    torch_transformer,
)
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.transformer import Transformer

VARIANTS = [
    {"norm_first": False},
    {"norm_first": True},
    {"norm_first": False, "last_norm": True},
    {"activation": "gelu"},
    {"activation": "silu", "norm_first": True},
]


def their_hidden(theirs: nn.Transformer, model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """Return torch's output for the same embeddings, with inverted masks."""
    padding = source == model.config.pad
    return theirs(
        model.positions(model.source_embedding(source)),
        model.positions(model.target_embedding(target)),
        tgt_mask=~causal_mask(target.shape[1]),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )


def example() -> tuple[Tensor, Tensor]:
    source = draw_ids(1, 3, 6)
    source[1, 4:] = source[2, 2:] = 0
    return source, draw_ids(2, 3, 4)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_torch_s_weights_loaded_here_give_torch_s_answers(variant):
    config = tiny_config(**variant)
    theirs = shaken(torch_transformer(config).double(), 3).eval()
    model = tiny_model(4, **variant)
    before = model.target_embedding.weight.clone()
    load_torch_transformer(model, theirs)
    source, target = example()
    assert_agree(model.hidden(source, target), their_hidden(theirs, model, source, target))
    assert model.target_embedding.weight.equal(before)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_our_weights_saved_there_give_our_answers_and_come_back_unchanged(variant):
    model, other = tiny_model(4, **variant), tiny_model(5, **variant)
    theirs = save_torch_transformer(model)
    source, target = example()
    assert_agree(their_hidden(theirs, model, source, target), model.hidden(source, target))
    load_torch_transformer(other, theirs)
    for stack in ("encoder", "decoder"):
        pairs = zip(getattr(model, stack).parameters(), getattr(other, stack).parameters(), strict=True)
        assert all(one.equal(back) for one, back in pairs)


def test_what_torch_builds_by_itself_is_loaded_too():
    theirs = shaken(nn.Transformer(12, 3, 2, 1, 20, batch_first=True, dtype=torch.float64), 6).eval()
    model = tiny_model(7, last_norm=True)
    load_torch_transformer(model, theirs)
    source, target = example()
    assert_agree(model.hidden(source, target), their_hidden(theirs, model, source, target))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"encoder.norm: expected False, as the model has it, got True"),
        ({"last_norm": True, "d_ff": 21}, r"encoder.layers.0.linear1.weight: expected \(21, 12\), .* got \(20, 12\)"),
        ({"last_norm": True, "heads": 4}, "heads: expected 4, as the model has it, got 3"),
        ({"last_norm": True, "encoder_layers": 3}, "encoder layers: expected 3, as the model has it, got 2"),
        ({"norm_first": True}, "norm_first: expected True, as the model has it, got False"),
    ],
)
def test_a_torch_module_of_another_shape_is_refused_and_moves_nothing(changes, message):
    theirs = nn.Transformer(12, 3, 2, 1, 20, batch_first=True)
    refused_and_unmoved(tiny_model(8, **changes), theirs, message)


@pytest.mark.parametrize(
    ("made_with", "message"),
    [
        ({"activation": "gelu"}, "activation: expected relu, as the model has it, got another function"),
        ({"activation": nn.Tanh()}, "activation: expected relu, as the model has it, got another function"),
        ({"layer_norm_eps": 1e-6}, "norm1.eps: expected 1e-05, as the model has it, got 1e-06"),
        ({"bias": False}, "self_attn.in_proj_bias: expected one, as the model has it, got none"),
    ],
)
def test_a_torch_module_that_computes_something_else_is_refused_and_moves_nothing(made_with, message):
    theirs = nn.Transformer(12, 3, 2, 1, 20, batch_first=True, **made_with)
    refused_and_unmoved(tiny_model(8, last_norm=True), theirs, message)


def test_the_same_function_by_another_name_is_taken():
    def error_function(x):
        return x * (1 + torch.erf(x / 2**0.5)) / 2

    theirs = nn.Transformer(12, 3, 2, 1, 20, batch_first=True, activation=error_function, dtype=torch.float64)
    model = tiny_model(8, last_norm=True, activation="gelu")
    before = [parameter.clone() for parameter in model.parameters()]
    load_torch_transformer(model, theirs)
    assert not all(old.equal(new) for old, new in zip(before, model.parameters(), strict=True))


def refused_and_unmoved(model, theirs, message):
    before = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(ValueError, match=message):
        load_torch_transformer(model, theirs)
    assert all(old.equal(new) for old, new in zip(before, model.parameters(), strict=True))
