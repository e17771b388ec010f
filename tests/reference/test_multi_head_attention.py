"""Heads are cut from the features of each token, and the whole agrees with torch's module."""

import pytest
import torch
from drawn import mask as draw_mask
from drawn import seeds, sizes, tensor
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_oracle import assert_agree, copy_attention, shaken

from transformer_ref.model.key_value_cache import KeyValueCache
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention, merge_heads, split_heads


def pair(d_model, heads, dtype=torch.float64, bias=True, seed=0):
    """Return our module and torch's with the same weights."""
    theirs = nn.MultiheadAttention(d_model, heads, bias=bias, batch_first=True, dtype=dtype).eval()
    shaken(theirs, seed)
    ours = MultiHeadAttention(d_model, heads, bias=bias).to(dtype).eval()
    copy_attention(ours, theirs)
    return ours, theirs


@given(sizes(4), seeds)
def test_merging_undoes_splitting_and_a_token_stays_at_its_place(drawn, seed):
    batch, length, heads, d_head = drawn
    x = tensor(seed, batch, length, heads * d_head)
    split = split_heads(x, heads)
    assert split.shape == (batch, heads, length, d_head)
    assert torch.equal(merge_heads(split), x)
    for head in range(heads):
        assert torch.equal(split[:, head], x[..., head * d_head : (head + 1) * d_head])


def test_the_worked_example_splits_into_two_heads():
    x = torch.tensor([[[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]]])
    assert split_heads(x, 2)[0].tolist() == [[[1, 0], [0, 1], [1, 1]], [[0, 1], [1, 0], [0, 0]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@given(drawn=sizes(5), seed=seeds)
def test_it_agrees_with_torch_under_a_mask_of_the_other_polarity(dtype, bias, drawn, seed):
    batch, queries, keys, heads, d_head = drawn
    ours, theirs = pair(heads * d_head, heads, dtype, bias, seed)
    query_input = tensor(seed, batch, queries, heads * d_head, dtype=dtype)
    key_value_input = tensor(seed + 1, batch, keys, heads * d_head, dtype=dtype)
    mask = draw_mask(seed, batch, 1, queries, keys)
    mask[..., 0] = True  # torch answers a query without keys with NaN
    expected, weights = theirs(
        query_input,
        key_value_input,
        key_value_input,
        average_attn_weights=False,
        attn_mask=~mask[:, 0].repeat_interleave(heads, dim=0),
    )
    result = ours(query_input, key_value_input, mask, need_weights=True)
    assert_agree(result.output, expected)
    assert_agree(result.weights, weights)
    assert_agree(ours(query_input, key_value_input, mask).output, expected)


def test_its_gradients_agree_with_torch():
    ours, theirs = pair(12, 3)
    x = tensor(1, 2, 5, 12)
    ours(x, mask=causal_mask(5)).output.square().sum().backward()
    theirs(x, x, x, attn_mask=~causal_mask(5))[0].square().sum().backward()
    assert_agree(
        torch.cat([ours.q_proj.weight.grad, ours.k_proj.weight.grad, ours.v_proj.weight.grad]),
        theirs.in_proj_weight.grad,
    )
    assert_agree(ours.out_proj.bias.grad, theirs.out_proj.bias.grad)


@given(seeds)
def test_a_query_without_keys_gets_the_bias_of_the_output_and_nothing_else(seed):
    ours, _ = pair(12, 3, seed=seed)
    mask = draw_mask(seed, 2, 1, 4, 6)
    mask[1, :, 2] = False
    output = ours(tensor(seed, 2, 4, 12), tensor(seed + 1, 2, 6, 12), mask).output
    torch.testing.assert_close(output[1, 2], ours.out_proj.bias, rtol=0, atol=1e-12)


@given(seeds, st.permutations([0, 1, 2]))
def test_permuting_the_batch_permutes_the_result(seed, order):
    ours, _ = pair(12, 3, seed=seed)
    x, mask = tensor(seed, 3, 5, 12), draw_mask(seed, 3, 1, 5, 5)
    torch.testing.assert_close(ours(x[order], mask=mask[order]).output, ours(x, mask=mask).output[order])


@given(seeds)
def test_chunks_with_a_cache_give_what_one_call_gives(seed):
    ours, _ = pair(12, 3, seed=seed)
    x, cache, outputs = tensor(seed, 2, 6, 12), KeyValueCache(), []
    for chunk in x.split([3, 1, 2], dim=1):
        outputs.append(ours(chunk, mask=causal_mask(chunk.shape[1], cache.length), cache=cache).output)
    torch.testing.assert_close(torch.cat(outputs, dim=1), ours(x, mask=causal_mask(6)).output)


def test_cross_attention_with_a_cache_projects_the_memory_once():
    ours, _ = pair(12, 3)
    memory, cache = tensor(1, 2, 6, 12), KeyValueCache()
    for step in range(3):
        query_input = tensor(2 + step, 2, 1, 12)
        given = memory if step == 0 else torch.full_like(memory, torch.nan)
        cached = ours(query_input, given, cache=cache).output
        torch.testing.assert_close(cached, ours(query_input, memory).output)
    assert cache.length == 6


def test_dropout_acts_on_the_weights_while_training_and_never_after():
    ours = MultiHeadAttention(12, 3, dropout=0.5)
    x = tensor(1, 2, 5, 12, dtype=torch.float32)
    assert not torch.equal(ours(x).output, ours(x).output)
    assert torch.equal(ours.eval()(x).output, ours(x).output)


def test_the_paper_s_base_size_has_the_parameters_of_the_worked_example():
    count = sum(parameter.numel() for parameter in MultiHeadAttention(512, 8).parameters())
    assert count == 4 * (512**2 + 512) == 1_050_624


def test_a_width_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match=r"d_model: expected a multiple of heads \(3\), got 10"):
        MultiHeadAttention(10, 3)
    with pytest.raises(ValueError, match=r"d_model: expected a multiple of heads \(3\), got 10"):
        split_heads(torch.zeros(2, 4, 10), 3)
