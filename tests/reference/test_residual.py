"""Where the norm is, before the sub-layer or after the addition."""

import pytest
import torch
import torch.nn.functional as F
from drawn import seeds, sizes, tensor
from hypothesis import given

from transformer_ref.model.residual import Residual


@pytest.mark.parametrize("norm_first", [False, True])
@given(drawn=sizes(3), seed=seeds)
def test_post_norm_normalizes_the_sum_and_pre_norm_what_is_read(norm_first, drawn, seed):
    x, change = tensor(seed, *drawn), tensor(seed + 1, *drawn)
    residual = Residual(drawn[-1], dropout=0.0, norm_first=norm_first).double()

    def norm(y):
        return F.layer_norm(y, drawn[-1:])

    torch.testing.assert_close(residual.read(x), norm(x) if norm_first else x)
    torch.testing.assert_close(residual.write(x, change), x + change if norm_first else norm(x + change))


def test_dropout_touches_the_change_and_never_the_stream():
    residual = Residual(5, dropout=0.5, norm_first=True)
    x = tensor(1, 2, 3, 5, dtype=torch.float32)
    assert torch.equal(residual.write(x, torch.zeros_like(x)), x)
    added = residual.write(x, torch.ones_like(x)) - x
    assert set(added.round(decimals=4).flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(residual.eval().write(x, torch.ones_like(x)), x + 1)
