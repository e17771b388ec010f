"""Decoder layers and stacks agree with torch's, in both norm placements, and never look ahead."""

import pytest
import torch
from drawn import mask as draw_mask
from drawn import seeds, sizes, tensor, tiny_config
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_oracle import assert_agree, copy_decoder_layer, shaken

from transformer_ref.model.decoder import Decoder, DecoderLayer
from transformer_ref.model.key_value_cache import DecoderCache
from transformer_ref.model.masks import causal_mask

both_placements = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
both_precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def source_mask(seed, batch, source):
    """Return a (batch, 1, 1, source) mask in which each sentence has a real token."""
    mask = draw_mask(seed, batch, 1, 1, source)
    mask[..., 0] = True
    return mask


@both_precisions
@both_placements
@given(drawn=sizes(6), seed=seeds)
def test_a_layer_agrees_with_torch_under_causal_and_padding_masks(dtype, norm_first, drawn, seed):
    batch, target, source, heads, d_head, d_ff = drawn
    d_model = heads * d_head
    theirs = shaken(
        nn.TransformerDecoderLayer(d_model, heads, d_ff, batch_first=True, norm_first=norm_first, dtype=dtype), seed
    ).eval()
    ours = DecoderLayer(d_model, heads, d_ff, dropout=0.1, norm_first=norm_first).to(dtype).eval()
    copy_decoder_layer(ours, theirs)
    x = tensor(seed, batch, target, d_model, dtype=dtype)
    memory, mask = tensor(seed + 1, batch, source, d_model, dtype=dtype), source_mask(seed, batch, source)
    expected = theirs(x, memory, tgt_mask=~causal_mask(target), memory_key_padding_mask=~mask[:, 0, 0])
    assert_agree(ours(x, memory, causal_mask(target), mask).output, expected)


@both_placements
@given(seed=seeds)
def test_a_stack_agrees_with_torch_whose_last_norm_we_have_in_pre_norm_only(norm_first, seed):
    config = tiny_config(norm_first=norm_first, decoder_layers=3)
    layer = nn.TransformerDecoderLayer(
        config.d_model, config.heads, config.d_ff, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    last = nn.LayerNorm(config.d_model, dtype=torch.float64) if norm_first else None
    theirs = shaken(nn.TransformerDecoder(layer, 3, norm=last), seed).eval()
    ours = Decoder(config).double().eval()
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_decoder_layer(mine, other)
    if norm_first:
        ours.norm.load_state_dict(theirs.norm.state_dict())
    x, memory, mask = tensor(seed, 2, 4, 12), tensor(seed + 1, 2, 6, 12), source_mask(seed, 2, 6)
    expected = theirs(x, memory, tgt_mask=~causal_mask(4), memory_key_padding_mask=~mask[:, 0, 0])
    assert_agree(ours(x, memory, causal_mask(4), mask)[0], expected)


@both_placements
@given(seed=seeds, t=st.integers(1, 4))
def test_a_later_token_changes_no_earlier_output(norm_first, seed, t):
    decoder = Decoder(tiny_config(norm_first=norm_first, decoder_layers=2)).double().eval()
    x, memory = tensor(seed, 2, 5, 12), tensor(seed + 1, 2, 6, 12)
    changed = x.clone()
    changed[:, t] += tensor(seed + 2, 12)
    before, after = (decoder(y, memory, causal_mask(5))[0] for y in (x, changed))
    assert torch.equal(before[:, :t], after[:, :t])
    assert not torch.allclose(before[:, t:], after[:, t:])


@given(seeds)
def test_a_visible_source_word_matters_and_a_masked_one_does_not(seed):
    decoder = Decoder(tiny_config()).double().eval()
    x, memory, mask = tensor(seed, 2, 5, 12), tensor(seed + 1, 2, 6, 12), source_mask(seed, 2, 6)
    hidden = ~mask[:, 0, 0, :, None]
    before = decoder(x, memory, causal_mask(5), mask)[0]
    torch.testing.assert_close(decoder(x, memory.masked_fill(hidden, 9.0), causal_mask(5), mask)[0], before)
    assert not torch.allclose(decoder(x, memory.masked_fill(~hidden, 9.0), causal_mask(5), mask)[0], before)


@both_placements
@given(seed=seeds)
def test_chunks_with_a_cache_give_what_one_call_gives(norm_first, seed):
    decoder = Decoder(tiny_config(norm_first=norm_first, decoder_layers=2)).double().eval()
    x, memory, mask = tensor(seed, 2, 6, 12), tensor(seed + 1, 2, 7, 12), source_mask(seed, 2, 7)
    cache, outputs = DecoderCache(layers=2), []
    for chunk in x.split([3, 1, 2], dim=1):
        outputs.append(decoder(chunk, memory, causal_mask(chunk.shape[1], cache.length), mask, cache)[0])
    torch.testing.assert_close(torch.cat(outputs, dim=1), decoder(x, memory, causal_mask(6), mask)[0])


def test_weights_come_on_request_for_both_attentions():
    decoder = Decoder(tiny_config(decoder_layers=2)).double().eval()
    x, memory = tensor(1, 2, 5, 12), tensor(2, 2, 6, 12)
    output, self_weights, cross_weights = decoder(x, memory, causal_mask(5), need_weights=True)
    assert [tuple(of_layer.shape) for of_layer in self_weights] == [(2, 3, 5, 5)] * 2
    assert [tuple(of_layer.shape) for of_layer in cross_weights] == [(2, 3, 5, 6)] * 2
    torch.testing.assert_close(output, decoder(x, memory, causal_mask(5))[0])
    assert decoder(x, memory)[1:] == ([], [])


def test_a_layer_of_the_base_model_has_the_parameters_of_the_worked_example():
    assert sum(p.numel() for p in DecoderLayer(512, 8, 2048, 0.1, False).parameters()) == 4_204_032
