"""The same two layers at every position."""

import torch
from drawn import seeds, sizes, tensor
from hypothesis import given

from transformer_ref.model.feed_forward import FeedForward


@given(sizes(4), seeds)
def test_each_token_gets_what_it_would_get_alone(drawn, seed):
    batch, length, d_model, d_ff = drawn
    feed_forward, x = FeedForward(d_model, d_ff).double(), tensor(seed, batch, length, d_model)
    alone = torch.stack([feed_forward(x[:, t : t + 1])[:, 0] for t in range(length)], dim=1)
    torch.testing.assert_close(feed_forward(x), alone)


def test_a_case_small_enough_to_do_by_hand():
    feed_forward = FeedForward(2, 3)
    with torch.no_grad():
        feed_forward.fc1.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        feed_forward.fc1.bias.copy_(torch.tensor([0.0, -1.0, -10.0]))
        feed_forward.fc2.weight.copy_(torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 1.0]]))
        feed_forward.fc2.bias.copy_(torch.tensor([0.5, 0.0]))
    # (2, 3) -> (2, 2, -5) -> (2, 2, 0) -> (2 + 4 + 0.5, -2)
    assert feed_forward(torch.tensor([[[2.0, 3.0]]])).tolist() == [[[6.5, -2.0]]]
