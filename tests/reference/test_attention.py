"""The formula and the kernel give the same, and both keep the laws of attention."""

import pytest
import torch
import torch.nn.functional as F
from drawn import mask as draw_mask
from drawn import seeds, sizes, tensor
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref import machine
from transformer_ref.fast.attention import products_are_faster, quick_attention, two_products
from transformer_ref.model.attention import attend, attention_weights, explicit_attention, fused_attention
from transformer_ref.model.masks import causal_mask

WORDS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])  # I closed the windows


def fused_by_products(*arguments):
    """Return the output of the fused path if the library's kernel is slow."""
    return fused_attention(*arguments, kernel=two_products)


def fused_by_the_quicker_one(*arguments):
    """Return the output of the fused path with the faster kernel."""
    return fused_attention(*arguments, kernel=quick_attention)


fused_paths = [fused_attention, fused_by_products, fused_by_the_quicker_one]
both_paths = pytest.mark.parametrize("path", [explicit_attention, *fused_paths])
both_kernels = pytest.mark.parametrize("fused_path", fused_paths)


@st.composite
def inputs(draw, leading_axes=None):
    """Draw query, key, value and a mask with one query that may attend to nothing; every size differs."""
    count = draw(st.integers(0, 3)) if leading_axes is None else leading_axes
    *leading, queries, keys, d_k, d_v = draw(sizes(count + 4))
    seed = draw(seeds)
    mask = draw_mask(seed, *leading, queries, keys)
    mask[..., draw(st.integers(0, queries - 1)), :] = False
    return (
        tensor(seed, *leading, queries, d_k),
        tensor(seed + 1, *leading, keys, d_k),
        tensor(seed + 2, *leading, keys, d_v),
        mask,
    )


@both_kernels
@given(drawn=inputs())
def test_explicit_and_fused_agree_in_output_and_in_every_gradient(fused_path, drawn):
    query, key, value, mask = drawn
    for each in (query, key, value):
        each.requires_grad_()
    for chosen in (mask, None):
        explicit = explicit_attention(query, key, value, chosen).output
        fused = fused_path(query, key, value, chosen).output
        torch.testing.assert_close(explicit, fused, rtol=0, atol=1e-10)
        upstream = tensor(7, *explicit.shape)
        of_explicit = torch.autograd.grad(explicit, (query, key, value), upstream)
        of_fused = torch.autograd.grad(fused, (query, key, value), upstream)
        torch.testing.assert_close(of_explicit, of_fused, rtol=0, atol=1e-10)


@both_kernels
@given(drawn=inputs(leading_axes=2), kept=st.sampled_from(["key", "query and key", "batch and key", "all"]))
def test_explicit_and_fused_agree_on_masks_that_broadcast(fused_path, drawn, kept):
    query, key, value, mask = drawn
    mask = {"key": mask[0, 0, 0], "query and key": mask[0, 0], "batch and key": mask[:, :1, :1], "all": mask}[kept]
    torch.testing.assert_close(
        explicit_attention(query, key, value, mask).output,
        fused_path(query, key, value, mask).output,
        rtol=0,
        atol=1e-10,
    )


@pytest.mark.parametrize("way", ["products", "kernel"])
def test_products_take_the_kernel_s_place_only_on_a_cpu_in_bf16_and_where_they_are_faster(way, monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, f"attention={way}")
    assert products_are_faster(torch.zeros(2, 3, dtype=torch.bfloat16)) == (way == "products")
    assert not products_are_faster(torch.zeros(2, 3))
    assert not products_are_faster(torch.zeros(2, 3, dtype=torch.bfloat16, device="meta"))


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")
def test_what_is_traced_holds_no_measurement(monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, "attention=products")
    query = torch.zeros(2, 3, dtype=torch.bfloat16)
    traced = torch.jit.trace(lambda query: quick_attention(query, query, query), query)
    assert "scaled_dot_product_attention" in str(traced.graph)


@given(inputs())
def test_each_query_shares_out_one_and_a_masked_key_gets_exactly_nothing(drawn):
    query, key, _, mask = drawn
    weights = attention_weights(query, key, mask)
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double())
    assert (weights[~mask] == 0).all() and (weights >= 0).all()


@both_paths
@given(drawn=inputs())
def test_a_query_without_keys_gets_zeros_and_sends_no_gradient(path, drawn):
    query, key, value, mask = drawn
    query.requires_grad_()
    output = path(query, key, value, mask).output
    blind = ~mask.any(-1)
    assert (output[blind] == 0).all() and output.isfinite().all()
    (gradient,) = torch.autograd.grad(output.sum(), query)
    assert (gradient[blind] == 0).all() and gradient.isfinite().all()


@both_paths
@given(drawn=inputs(), poison=st.sampled_from([1e6, -1e6]))
def test_what_a_masked_key_and_its_value_hold_does_not_matter(path, drawn, poison):
    query, key, value, mask = drawn
    hidden = ~mask.any(-2)  # the keys that no query may see
    poisoned = path(
        query, key.masked_fill(hidden[..., None], poison), value.masked_fill(hidden[..., None], poison), mask
    ).output
    torch.testing.assert_close(poisoned, path(query, key, value, mask).output, rtol=0, atol=1e-10)


@both_paths
@given(drawn=inputs(), seed=seeds)
def test_the_order_of_the_keys_does_not_matter_and_the_order_of_the_queries_is_kept(path, drawn, seed):
    query, key, value, mask = drawn
    moved = torch.randperm(key.shape[-2], generator=torch.Generator().manual_seed(seed))
    asked = torch.randperm(query.shape[-2], generator=torch.Generator().manual_seed(seed))
    permuted = path(
        query[..., asked, :], key[..., moved, :], value[..., moved, :], mask[..., asked, :][..., moved]
    ).output
    torch.testing.assert_close(permuted, path(query, key, value, mask).output[..., asked, :])


@both_paths
@given(length=st.integers(2, 7), seed=seeds)
def test_a_later_word_changes_no_earlier_output_under_the_causal_mask(path, length, seed):
    x, t = tensor(seed, 2, length, 5), seed % length
    changed = x.clone()
    changed[:, t] += 1
    before, after = (path(y, y, y, causal_mask(length)).output for y in (x, changed))
    assert torch.equal(before[:, :t], after[:, :t])
    assert not torch.allclose(before[:, t:], after[:, t:])


@given(inputs(leading_axes=2))
def test_explicit_agrees_with_the_library_where_every_query_sees_a_key(drawn):
    query, key, value, mask = drawn
    mask[..., 0] = True
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    output = explicit_attention(query, key, value, mask).output
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-10)


def test_the_four_words_have_the_weights_and_outputs_of_the_table():
    output, weights = explicit_attention(WORDS, WORDS, WORDS)
    expected = torch.tensor(
        [
            [0.221, 0.221, 0.109, 0.449],
            [0.165, 0.335, 0.165, 0.335],
            [0.165, 0.335, 0.335, 0.165],
            [0.157, 0.157, 0.038, 0.647],
        ]
    )
    torch.testing.assert_close(weights, expected, rtol=0, atol=6e-4)  # the table has three digits
    expected = torch.tensor([[1.340, 0.330], [1.170, 0.500], [0.830, 0.670], [1.609, 0.196]])
    torch.testing.assert_close(output, expected, rtol=0, atol=6e-4)


def test_the_four_words_have_the_causal_weights_of_the_table():
    weights = attention_weights(WORDS, WORDS, causal_mask(4))
    expected = torch.tensor(
        [[1, 0, 0, 0], [0.330, 0.670, 0, 0], [0.198, 0.401, 0.401, 0], [0.157, 0.157, 0.038, 0.647]]
    )
    torch.testing.assert_close(weights, expected, rtol=0, atol=6e-4)


def test_equal_values_come_back_and_a_one_hot_row_copies_one():
    value = tensor(1, 2, 6, 7)
    weights = torch.softmax(tensor(2, 2, 4, 6), -1)
    constant = value[:, :1].expand(2, 6, 7)
    torch.testing.assert_close(attend(weights, constant), constant[:, :4])
    one_hot = torch.eye(6, dtype=torch.float64)[[5, 0, 3]].expand(2, 3, 6)
    assert torch.equal(attend(one_hot, value), value[:, [5, 0, 3]])


def test_the_fused_path_has_no_weights():
    assert fused_attention(WORDS, WORDS, WORDS).weights is None


@both_paths
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("key", ((2, 4, 5), (2, 6, 3), (2, 6, 7))),
        ("value", ((2, 4, 5), (2, 6, 5), (2, 4, 7))),
        ("key", ((2, 4, 5), (3, 6, 5), (3, 6, 7))),
        ("query", ((5,), (6, 5), (6, 7))),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_by_name(path, name, shapes):
    with pytest.raises(ValueError, match=f"{name}: expected shape"):
        path(*(torch.zeros(shape) for shape in shapes))


@both_paths
def test_a_mask_that_does_not_fit_is_refused_by_name(path):
    query, key, value = torch.zeros(2, 4, 5), torch.zeros(2, 6, 5), torch.zeros(2, 6, 7)
    with pytest.raises(ValueError, match="mask: expected a shape that broadcasts to"):
        path(query, key, value, torch.ones(6, 4, dtype=torch.bool))
    with pytest.raises(TypeError, match="mask: expected a boolean tensor"):
        path(query, key, value, torch.ones(4, 6))
