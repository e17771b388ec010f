"""Encoder layers and stacks agree with torch's, in both norm placements."""

import pytest
import torch
from drawn import mask as draw_mask
from drawn import seeds, sizes, tensor, tiny_config
from hypothesis import given
from torch import nn
from torch_oracle import assert_agree, copy_encoder_layer, shaken

from transformer_ref.model.encoder import Encoder, EncoderLayer

both_placements = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
both_precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def key_mask(seed, batch, source):
    """Return a (batch, 1, 1, source) mask in which each sentence has a real token."""
    mask = draw_mask(seed, batch, 1, 1, source)
    mask[..., 0] = True
    return mask


@both_precisions
@both_placements
@given(drawn=sizes(5), seed=seeds)
def test_a_layer_agrees_with_torch_under_a_padding_mask(dtype, norm_first, drawn, seed):
    batch, source, heads, d_head, d_ff = drawn
    d_model = heads * d_head
    theirs = shaken(
        nn.TransformerEncoderLayer(d_model, heads, d_ff, batch_first=True, norm_first=norm_first, dtype=dtype), seed
    )
    theirs.eval()
    ours = EncoderLayer(d_model, heads, d_ff, dropout=0.1, norm_first=norm_first).to(dtype).eval()
    copy_encoder_layer(ours, theirs)
    x, mask = tensor(seed, batch, source, d_model, dtype=dtype), key_mask(seed, batch, source)
    x.requires_grad_()  # torch's inference shortcut rounds differently and zeroes the pads
    assert_agree(ours(x, mask).output, theirs(x, src_key_padding_mask=~mask[:, 0, 0]))


@both_placements
@given(seed=seeds)
def test_a_stack_agrees_with_torch_whose_last_norm_we_have_in_pre_norm_only(norm_first, seed):
    config = tiny_config(norm_first=norm_first, encoder_layers=3)
    layer = nn.TransformerEncoderLayer(
        config.d_model, config.heads, config.d_ff, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    last = nn.LayerNorm(config.d_model, dtype=torch.float64) if norm_first else None
    theirs = shaken(nn.TransformerEncoder(layer, 3, norm=last, enable_nested_tensor=False), seed).eval()
    ours = Encoder(config).double().eval()
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_encoder_layer(mine, other)
    if norm_first:
        ours.norm.load_state_dict(theirs.norm.state_dict())
    x, mask = tensor(seed, 2, 5, config.d_model).requires_grad_(), key_mask(seed, 2, 5)
    assert_agree(ours(x, mask)[0], theirs(x, src_key_padding_mask=~mask[:, 0, 0]))


@both_placements
@given(seed=seeds)
def test_without_positions_permuting_the_tokens_permutes_the_memory(norm_first, seed):
    encoder = Encoder(tiny_config(norm_first=norm_first)).double().eval()
    x, mask = tensor(seed, 2, 5, 12), key_mask(seed, 2, 5)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    permuted, _ = encoder(x[:, order], mask[..., order])
    torch.testing.assert_close(permuted, encoder(x, mask)[0][:, order])


def test_a_pre_norm_layer_whose_sub_layers_say_nothing_returns_its_input():
    layer = EncoderLayer(12, 3, 20, dropout=0.1, norm_first=True)
    with torch.no_grad():
        for silenced in (layer.self_attention.out_proj, layer.feed_forward.fc2):
            silenced.weight.zero_()
            silenced.bias.zero_()
    x = tensor(1, 2, 5, 12, dtype=torch.float32)
    assert torch.equal(layer(x).output, x)


@both_placements
def test_weights_come_on_request_and_change_no_output(norm_first):
    encoder = Encoder(tiny_config(norm_first=norm_first)).double().eval()
    x, mask = tensor(1, 2, 5, 12), key_mask(1, 2, 5)
    memory, weights = encoder(x, mask, need_weights=True)
    without, none = encoder(x, mask)
    assert [tuple(of_layer.shape) for of_layer in weights] == [(2, 3, 5, 5)] * 2 and none == []
    torch.testing.assert_close(memory, without)
    assert all((of_layer.masked_select(~mask) == 0).all() for of_layer in weights)


def test_a_layer_of_the_base_model_has_the_parameters_of_the_worked_example():
    assert sum(p.numel() for p in EncoderLayer(512, 8, 2048, 0.1, False).parameters()) == 3_152_384
