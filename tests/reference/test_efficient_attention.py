"""Chapter 16: what attention costs, and that the ways around the table give what they should."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from transformer_ref.beyond.efficient import (
    FeatureAttention,
    attention_flops,
    attention_memory,
    cache_bytes,
    empty_state,
    feature_map,
    fold,
    grouped_query,
    linear_attention,
    linear_step,
    online_softmax,
    tiled_attention,
)
from transformer_ref.beyond.measure import peak_bytes
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.key_value_cache import KeysAndValues, KeyValueCache
from transformer_ref.model.masks import causal_mask, padding_mask
from transformer_ref.model.multi_head_attention import merge_heads, split_heads

FOUR_WORDS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])


def drawn(*shapes, seed=16, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(shape, generator=g, dtype=torch.float64) for shape in shapes]


def linear_by_its_table(query, key, value, causal):
    """The definition: a table of phi(q) . phi(k), its rows divided by their sums."""
    table = feature_map(query) @ feature_map(key).mT
    table = table.tril() if causal else table
    return (table / table.sum(-1, keepdim=True)) @ value


sizes = st.integers(1, 9)


def test_the_worked_numbers():
    assert attention_flops(50, 512, 8) == 5_120_000
    assert attention_flops(4096, 512, 8) == 34_359_738_368
    assert attention_memory(50, 512, 8) == 489_600
    assert cache_bytes(6, 8, 64, 200) * 128 == 629_145_600  # chapter 11: 32 sentences of four hypotheses


@pytest.mark.parametrize(("n", "d", "h"), [(7, 12, 3), (5, 8, 1), (20, 6, 6)])
def test_the_operations_are_those_that_torch_counts(n, d, h):
    query, key, value = drawn((1, h, n, d // h), (1, h, n, d // h), (1, h, n, d // h))
    with FlopCounterMode(display=False) as counted:
        explicit_attention(query, key, value)
    assert counted.get_total_flops() == attention_flops(n, d, h)


def test_the_bytes_are_those_of_the_tensors():
    n, d, h = 7, 12, 3
    query, key, value = (each.float() for each in drawn((h, n, d // h), (h, n, d // h), (h, n, d // h)))
    output, weights = explicit_attention(query, key, value)
    assert attention_memory(n, d, h) == sum(each.nbytes for each in (query, key, value, output, weights))
    assert attention_memory(n, d, h, 2) * 2 == attention_memory(n, d, h)


def test_the_cache_of_chapter_11_takes_the_bytes_of_the_formula():
    held = KeyValueCache().append(KeysAndValues(torch.zeros(1, 3, 7, 5), torch.zeros(1, 3, 7, 5)))
    assert cache_bytes(1, 3, 5, 7) == held.key.nbytes + held.value.nbytes


@pytest.mark.parametrize("count", [attention_flops, attention_memory])
def test_heads_that_do_not_divide_the_width_are_refused(count):
    with pytest.raises(ValueError, match=r"d: expected a multiple of heads \(3\), got 10"):
        count(5, 10, 3)


@given(sizes, sizes, sizes, sizes)
@settings(deadline=None)
def test_linear_attention_is_its_table_in_other_brackets(queries, keys, d_head, d_value):
    query, key, value = drawn((2, queries, d_head), (2, keys, d_head), (2, keys, d_value))
    torch.testing.assert_close(linear_attention(query, key, value), linear_by_its_table(query, key, value, False))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 150])
def test_causal_linear_attention_is_a_recurrent_network(length):
    query, key, value = drawn((2, 3, length, 5), (2, 3, length, 5), (2, 3, length, 7))
    output = linear_attention(query, key, value, True)
    state, steps = empty_state(key, value), []
    for t in range(length):
        state, row = linear_step(state, query[..., t, :], key[..., t, :], value[..., t, :])
        steps.append(row)
    torch.testing.assert_close(output, torch.stack(steps, dim=-2))
    torch.testing.assert_close(output, linear_by_its_table(query, key, value, True))
    assert state.mixed.shape == (2, 3, 5, 7)  # as large after 150 tokens as after one


@pytest.fixture
def layer():
    torch.manual_seed(16)
    return FeatureAttention(12, 3).double().eval()


@pytest.mark.parametrize("causal", [False, True])
def test_a_layer_with_features_is_linear_attention_between_its_projections(layer, causal):
    (x,) = drawn((2, 7, 12))
    projected = (split_heads(part(x), 3) for part in (layer.q_proj, layer.k_proj, layer.v_proj))
    expected = layer.out_proj(merge_heads(linear_attention(*projected, causal)))
    torch.testing.assert_close(layer(x, mask=causal_mask(7) if causal else None).output, expected)


def test_a_layer_with_features_never_looks_at_what_is_hidden_and_gives_a_blind_query_nothing(layer):
    (x,) = drawn((2, 7, 12))
    mask = padding_mask(torch.tensor([[1] * 7, [1] * 4 + [0] * 3]), 0)
    result, poisoned = layer(x, mask=mask, need_weights=True), x.clone()
    poisoned[1, 4:] = 1e3
    torch.testing.assert_close(layer(x[:, :4], poisoned, mask).output[1], layer(x[:, :4], x, mask).output[1])
    assert result.weights[1, ..., 4:].eq(0).all() and torch.allclose(result.weights.sum(-1), torch.ones(1).double())
    blind = layer(x, mask=torch.zeros(7, 7, dtype=torch.bool), need_weights=True).weights
    assert blind.eq(0).all()


def test_a_layer_with_features_and_a_cache_agrees_with_the_whole_pass(layer):
    (x,) = drawn((2, 7, 12))
    cache, pieces, begin = KeyValueCache(), [], 0
    for size in (3, 1, 3):
        chunk = x[:, begin : begin + size]
        pieces.append(layer(chunk, mask=causal_mask(size, begin), cache=cache).output)
        begin += size
    torch.testing.assert_close(torch.cat(pieces, dim=1), layer(x, mask=causal_mask(7)).output)


def test_the_four_words_by_hand():
    X = FOUR_WORDS
    assert (feature_map(X).mT @ X).tolist() == [[10, 3], [5, 4]] and feature_map(X).sum(0).tolist() == [8, 6]
    torch.testing.assert_close(linear_attention(X, X, X)[3], torch.tensor([35 / 30, 13 / 30]))
    scores = X[3:] @ X.mT / math.sqrt(2)
    running = fold(None, scores[:, :2], X[:2])
    assert (running.total.item(), running.mixed.tolist()) == (2, [[2, 1]])
    torch.testing.assert_close(
        online_softmax([(scores[:, :2], X[:2]), (scores[:, 2:], X[2:])])[0],
        torch.tensor([1.609, 0.196]),
        atol=5e-4,
        rtol=0,
    )


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), sizes, sizes, st.sampled_from([1.0, 30.0, 900.0]))
@settings(deadline=None)
def test_online_softmax_is_softmax_however_the_keys_are_cut(cuts, queries, d_value, scale):
    scores, values = drawn((queries, sum(cuts)), (sum(cuts), d_value))
    scores = scores * scale
    blocks = zip(scores.split(cuts, dim=1), values.split(cuts), strict=True)
    torch.testing.assert_close(online_softmax(blocks), scores.softmax(-1) @ values)


def test_hidden_blocks_change_nothing_wherever_they_stand_and_a_blind_row_is_zero():
    scores, values = drawn((3, 4), (4, 2))
    scores[1] = -torch.inf
    hidden = (torch.full((3, 2), -torch.inf, dtype=torch.float64), drawn((2, 2))[0])
    expected = scores[[0, 2]].softmax(-1) @ values
    for blocks in ([hidden, (scores, values)], [(scores, values), hidden], [hidden, hidden, (scores, values)]):
        output = online_softmax(blocks)
        assert output[1].tolist() == [0, 0]
        torch.testing.assert_close(output[[0, 2]], expected)


def test_online_softmax_has_the_gradients_of_softmax_and_none_that_is_no_number():
    scores, values = drawn((3, 6), (6, 2))
    scores[1] = -torch.inf
    scores[0, :3] = -torch.inf
    gradients = []
    for how in (
        lambda s, v: online_softmax(zip(s.split(3, dim=1), v.split(3), strict=True)),
        lambda s, v: explicit_of_scores(s) @ v,
    ):
        s, v = scores.clone().requires_grad_(), values.clone().requires_grad_()
        how(s, v).square().sum().backward()
        gradients.append((s.grad, v.grad))
    assert all(bool(each.isfinite().all()) for each in gradients[0])
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


def explicit_of_scores(scores):
    """Softmax, with zeros where a row has nothing."""
    blind = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)


def test_no_block_at_all_is_refused():
    with pytest.raises(ValueError, match="blocks: expected at least one, got none"):
        online_softmax([])


@pytest.mark.parametrize("causal", [False, True])
@given(length=st.integers(1, 13), tile=st.integers(1, 6))
@settings(deadline=None)
def test_tiled_attention_is_attention(causal, length, tile):
    query, key, value = drawn((2, length, 3), (2, length, 3), (2, length, 4))
    mask = causal_mask(length) if causal else None
    expected = explicit_attention(query, key, value, mask).output
    torch.testing.assert_close(tiled_attention(query, key, value, causal, tile), expected)


def test_tiled_attention_reads_memory_of_another_length():
    query, key, value = drawn((2, 7, 3), (2, 11, 3), (2, 11, 4))
    torch.testing.assert_close(tiled_attention(query, key, value, tile=4), explicit_attention(query, key, value).output)


@pytest.mark.parametrize(("heads", "groups"), [(6, 6), (6, 3), (6, 2), (6, 1), (1, 1)])
def test_grouped_queries_are_attention_with_the_keys_written_several_times(heads, groups):
    query, key, value = drawn((2, heads, 4, 5), (2, groups, 9, 5), (2, groups, 9, 7))
    repeated = [each.repeat_interleave(heads // groups, dim=1) for each in (key, value)]
    torch.testing.assert_close(
        grouped_query(query, key, value, groups), F.scaled_dot_product_attention(query, *repeated)
    )


@pytest.mark.parametrize(("groups", "held"), [(4, 4), (0, 1), (12, 12)])
def test_groups_that_do_not_divide_the_heads_are_refused(groups, held):
    query, key, value = drawn((2, 6, 4, 5), (2, held, 9, 5), (2, held, 9, 7))
    with pytest.raises(ValueError, match=r"groups: expected a divisor of the heads \(6\)"):
        grouped_query(query, key, value, groups)


def test_keys_of_another_number_of_groups_are_refused():
    query, key, value = drawn((2, 6, 4, 5), (2, 3, 9, 5), (2, 3, 9, 7))
    with pytest.raises(ValueError, match="key: expected shape"):
        grouped_query(query, key, value, 2)


def test_only_the_table_grows_by_the_square():
    """With four times the tokens the formula holds about sixteen times as much, tiles and brackets about four."""
    grown = {}
    for n in (512, 2048):
        query, key, value = (each.float() for each in drawn((1, n, 16), (1, n, 16), (1, n, 16)))
        ways = {
            "table": lambda q=query, k=key, v=value: explicit_attention(q, k, v),
            "tiles": lambda q=query, k=key, v=value: tiled_attention(q, k, v, tile=64),
            "linear": lambda q=query, k=key, v=value: linear_attention(q, k, v),
            "earlier": lambda q=query, k=key, v=value: linear_attention(q, k, v, True),
        }
        for name, call in ways.items():
            grown.setdefault(name, []).append(peak_bytes(call))
    assert grown["table"][1] > 14 * grown["table"][0] and grown["table"][0] >= 512 * 512 * 4
    for name in ("tiles", "linear", "earlier"):
        assert grown[name][1] < 5 * grown[name][0] and grown[name][1] < 2048 * 2048
