"""Dropout sets the asked-for share of features to zero, scales the rest up, and follows the seed."""

import pytest
import torch
from drawn import seeds, sizes
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.fast.dropout import POOL, PooledDropout, factors


@given(sizes(3), seeds, st.floats(0, 0.99))
def test_a_feature_is_either_zero_or_larger_by_the_share_that_was_dropped(shape, seed, p):
    torch.manual_seed(seed)
    x = torch.full(tuple(shape), 3.0)
    out = PooledDropout(p)(x)
    assert out.shape == x.shape
    torch.testing.assert_close(out[out != 0], torch.full_like(out[out != 0], 3 / (1 - p)))


@pytest.mark.parametrize("p", [0.03, 0.1, 0.5, 0.9])
def test_the_share_of_zeros_is_p(p):
    torch.manual_seed(5)
    share = (factors(torch.empty(1_000, 1_001), p) == 0).float().mean().item()
    assert share == pytest.approx(p, abs=5 * (p * (1 - p) / 1e6) ** 0.5)  # five standard deviations


def test_features_are_dropped_independently_of_their_neighbors_and_of_the_next_call():
    torch.manual_seed(6)
    first, second = ((factors(torch.empty(400, 1_001), 0.5) > 0).float() - 0.5 for _ in range(2))
    pairs = [(first[:, :-1], first[:, 1:]), (first[:, :-4], first[:, 4:]), (first[:-1], first[1:]), (first, second)]
    for one, other in pairs:
        assert abs((one * other).mean().item()) < 0.25 * 5 / 400_000**0.5  # products of +-1/2, five deviations


def test_equal_seeds_drop_alike_and_other_seeds_do_not():
    def drawn(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return PooledDropout(0.4)(torch.ones(5, 7))

    assert drawn(1).equal(drawn(1)) and not drawn(1).equal(drawn(2))


def test_gradients_pass_where_features_passed():
    torch.manual_seed(7)
    x = torch.randn(4, 9, requires_grad=True)
    out = PooledDropout(0.25)(x)
    out.sum().backward()
    torch.testing.assert_close(x.grad, (out != 0) / 0.75)


@pytest.mark.parametrize("layer", [PooledDropout(0.4).eval(), PooledDropout(0.0)])
def test_nothing_is_dropped_in_evaluation_or_with_p_zero(layer):
    x = torch.randn(4, 9)
    assert layer(x) is x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_factors_are_of_the_dtype_of_the_features(dtype):
    out = PooledDropout(0.5)(torch.ones(30, 5, dtype=dtype))
    assert out.dtype == dtype and set(out.flatten().tolist()) == {0.0, 2.0}


def test_a_tensor_larger_than_half_the_pool_gets_fresh_numbers():
    torch.manual_seed(8)
    x = torch.ones(POOL // 2 + 1, dtype=torch.bfloat16)
    assert (PooledDropout(0.25)(x) == 0).float().mean().item() == pytest.approx(0.25, abs=0.002)


def test_each_feature_is_dropped_in_its_share_of_the_calls():
    torch.manual_seed(9)
    shares = torch.stack([PooledDropout(0.3)(torch.ones(4, 9)) == 0 for _ in range(2_000)]).float().mean(dim=0)
    assert (shares - 0.3).abs().max() < 5 * (0.3 * 0.7 / 2_000) ** 0.5
