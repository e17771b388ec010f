"""The loss counts real tokens only, and smoothing shares its part among all tokens but label and pad."""

import math

import pytest
import torch
from drawn import ids, seeds, tensor
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from transformer_ref.fast import loss as loss_module
from transformer_ref.fast.loss import projected_cross_entropy
from transformer_ref.training.loss import (
    label_smoothed_cross_entropy,
    masked_cross_entropy,
    smooth_targets,
)

BATCH, TARGET, VOCABULARY = 3, 5, 11


def example(seed: int, pad: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits and labels; the rows end in 0, 2 and 4 pads."""
    labels = ids(seed, BATCH, TARGET, low=1, high=VOCABULARY)
    labels[labels == pad] = VOCABULARY - 1 if pad != VOCABULARY - 1 else 1
    labels[1, 3:] = pad
    labels[2, 1:] = pad
    return 4 * tensor(seed, BATCH, TARGET, VOCABULARY), labels


@given(seeds, st.sampled_from([0, 6]))
def test_without_smoothing_it_is_torchs_cross_entropy_over_real_tokens(seed, pad):
    logits, labels = example(seed, pad)
    expected = functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=pad)
    torch.testing.assert_close(masked_cross_entropy(logits, labels, pad), expected)


@given(seeds, st.sampled_from([0, 6]), st.floats(0, 0.9))
def test_smoothed_loss_is_the_cross_entropy_against_the_smoothed_targets(seed, pad, smoothing):
    logits, labels = example(seed, pad)
    targets = smooth_targets(labels, VOCABULARY, smoothing, pad).to(logits.dtype)
    expected = -(targets * logits.log_softmax(-1)).sum() / (labels != pad).sum()
    torch.testing.assert_close(
        label_smoothed_cross_entropy(logits, labels, pad, smoothing), expected, rtol=1e-5, atol=1e-6
    )  # the targets are float32


@given(seeds, st.sampled_from([0, 6]), st.floats(0, 0.9))
def test_smoothed_targets_sum_to_one_and_give_pad_nothing(seed, pad, smoothing):
    labels = example(seed, pad)[1]
    targets = smooth_targets(labels, VOCABULARY, smoothing, pad)
    assert targets[..., pad].eq(0).all() and targets[labels == pad].eq(0).all()
    torch.testing.assert_close(targets.sum(-1), (labels != pad).float())
    torch.testing.assert_close(
        targets.max(-1).values[labels != pad].min(), torch.tensor(max(1 - smoothing, smoothing / (VOCABULARY - 2)))
    )


def test_worked_example_of_the_chapter():
    labels = torch.tensor([[3]])
    torch.testing.assert_close(
        smooth_targets(labels, 6, 0.1, 0)[0, 0], torch.tensor([0, 0.025, 0.025, 0.9, 0.025, 0.025])
    )
    logits = torch.tensor([[[0.0, 0, 1, 3, 0, 0]]])
    assert masked_cross_entropy(logits, labels, 0).item() == pytest.approx(0.289, abs=5e-4)
    assert label_smoothed_cross_entropy(logits, labels, 0, 0.1).item() == pytest.approx(0.564, abs=5e-4)


def test_an_untrained_model_is_as_uncertain_as_a_fair_die():
    logits = torch.zeros(BATCH, TARGET, 8_000)
    assert masked_cross_entropy(logits, example(1)[1], 0).item() == pytest.approx(math.log(8_000))


@given(seeds, st.floats(0, 0.9))
def test_logits_at_pads_change_nothing_and_get_no_gradient(seed, smoothing):
    logits, labels = example(seed)
    changed = logits.clone()
    changed[labels == 0] = 1e6
    changed.requires_grad_()
    loss = label_smoothed_cross_entropy(changed, labels, 0, smoothing)
    torch.testing.assert_close(loss, label_smoothed_cross_entropy(logits, labels, 0, smoothing))
    loss.backward()
    assert changed.grad[labels == 0].eq(0).all() and changed.grad[labels != 0].ne(0).any()


@given(seeds)
def test_tokens_weigh_alike_whatever_their_sentence(seed):
    logits, labels = example(seed)
    sums = [
        masked_cross_entropy(logits[i : i + 1], labels[i : i + 1], 0) * (labels[i] != 0).sum() for i in range(BATCH)
    ]
    torch.testing.assert_close(masked_cross_entropy(logits, labels, 0), sum(sums) / (labels != 0).sum())


def test_a_batch_of_pads_has_loss_zero_and_finite_gradients():
    logits = tensor(1, 2, 3, 5).requires_grad_()
    loss = label_smoothed_cross_entropy(logits, torch.zeros(2, 3, dtype=torch.int64), 0, 0.1)
    loss.backward()
    assert loss.item() == 0 and logits.grad.eq(0).all()


def test_labels_of_another_shape_are_refused_by_name():
    with pytest.raises(ValueError, match="labels"):
        masked_cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 4, dtype=torch.int64), 0)


def projected(hidden, table, labels, pad, smoothing, through_logits):
    """Return the loss and its gradients, either way."""
    hidden, table = (each.clone().requires_grad_() for each in (hidden, table))
    if through_logits:
        loss = label_smoothed_cross_entropy(hidden @ table.T, labels, pad, smoothing)
    else:
        loss = projected_cross_entropy(hidden[labels != pad], table, labels[labels != pad], pad, smoothing)
    (3 * loss).backward()
    return loss.detach(), hidden.grad, table.grad


@pytest.mark.parametrize("chunk", [1, 4, 512])
@given(seed=seeds, pad=st.sampled_from([0, 6]), smoothing=st.sampled_from([0.0, 0.1, 0.7]))
def test_the_loss_piece_by_piece_is_the_loss_of_all_logits(chunk, seed, pad, smoothing):
    labels = example(seed, pad)[1]
    hidden, table = tensor(seed, BATCH, TARGET, 7), tensor(seed + 1, VOCABULARY, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_module, "CHUNK", chunk)
        ours, theirs = (projected(hidden, table, labels, pad, smoothing, way) for way in (False, True))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other)


def test_the_loss_piece_by_piece_is_as_good_in_bf16_as_its_inputs_are():
    labels = ids(1, 40, 30, low=1, high=300)
    hidden, table = tensor(2, 40, 30, 64), tensor(3, 300, 64) / 8
    exact = projected(hidden, table, labels, 0, 0.1, through_logits=True)
    coarse = projected(hidden.bfloat16(), table.bfloat16(), labels, 0, 0.1, through_logits=False)
    assert coarse[0].dtype == torch.float32
    assert coarse[0].item() == pytest.approx(exact[0].item(), abs=2e-3)  # 1,200 tokens average the rounding out
    for mine, other in zip(coarse[1:], exact[1:], strict=True):
        assert (mine.double() - other).norm() < 0.01 * other.norm()


def test_piece_by_piece_a_batch_of_pads_has_loss_zero_and_zero_gradients():
    pads = torch.zeros(2, 3, dtype=torch.int64)
    loss, *gradients = projected(tensor(1, 2, 3, 7), tensor(2, 5, 7), pads, 0, 0.1, through_logits=False)
    assert loss.item() == 0 and all(gradient.eq(0).all() for gradient in gradients)


def test_a_label_far_below_all_others_has_a_finite_loss():
    hidden, table = torch.full((1, 1), 200.0), torch.tensor([[0.0], [-1.0], [1.0]])
    loss = projected_cross_entropy(hidden, table, torch.tensor([1]), 0, 0.0)
    assert loss.isfinite() and loss > 80
