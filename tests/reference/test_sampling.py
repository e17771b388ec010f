"""Tokens are drawn as often as they should be, and excluded ones are never drawn."""

import pytest
import torch
from drawn import generator, ids, seeds, tensor, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.sampling import draw, sample_decode, sampling_probabilities

HAND = torch.tensor([0.5, 0.05, 0.3, 0.15]).log()


@given(seeds, st.floats(0.2, 5), st.none() | st.integers(1, 12), st.none() | st.floats(0.01, 1))
def test_probabilities_sum_to_one_and_keep_the_order_of_the_logits(seed, temperature, top_k, top_p):
    logits = tensor(seed, 3, 9)
    p = sampling_probabilities(logits, temperature, top_k, top_p)
    torch.testing.assert_close(p.sum(-1), torch.ones(3, dtype=torch.float64))
    in_order = p.gather(-1, logits.argsort(-1, descending=True))
    assert (in_order.diff() <= 1e-12).all() and (in_order[:, 0] > 0).all()


@given(seeds, st.integers(1, 8))
def test_top_k_keeps_the_k_likeliest_in_their_old_proportions(seed, top_k):
    logits = tensor(seed, 2, 9)
    all_of_them, kept = sampling_probabilities(logits), sampling_probabilities(logits, top_k=top_k)
    assert (kept > 0).sum(-1).tolist() == [top_k, top_k]
    torch.testing.assert_close(kept, all_of_them * (kept > 0) / (all_of_them * (kept > 0)).sum(-1, keepdim=True))


@given(seeds, st.floats(0.05, 0.999))
def test_top_p_keeps_the_fewest_tokens_that_reach_p(seed, top_p):
    logits = tensor(seed, 9)
    kept = sampling_probabilities(logits, top_p=top_p) > 0
    shares = sampling_probabilities(logits)[kept]
    assert shares.sum() >= top_p - 1e-12 and shares.sum() - shares.min() < top_p


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({}, [0.5, 0.05, 0.3, 0.15]),
        ({"top_k": 2}, [0.625, 0, 0.375, 0]),
        ({"top_p": 0.79}, [0.625, 0, 0.375, 0]),
        ({"top_p": 0.81}, [0.5 / 0.95, 0, 0.3 / 0.95, 0.15 / 0.95]),
        ({"temperature": 0.5}, [0.25 / 0.365, 0.0025 / 0.365, 0.09 / 0.365, 0.0225 / 0.365]),
        ({"top_k": 3, "top_p": 0.5}, [1.0, 0, 0, 0]),
    ],
)
def test_four_tokens_by_hand(choices, expected):
    torch.testing.assert_close(sampling_probabilities(HAND, **choices), torch.tensor(expected), rtol=1e-5, atol=1e-6)


def test_the_first_word_is_drawn_as_often_as_its_probability_says():
    model, many = tiny_model(3), 20_000
    source = ids(1, 1, 5).expand(many, 5)
    drawn = sample_decode(model, source, 1, generator(2), temperature=2.0)[:, 1]
    logits = model(source[:1], torch.tensor([[model.config.bos]]))[0, 0].detach()
    logits[model.config.pad] = -torch.inf  # which is never drawn
    p = sampling_probabilities(logits, temperature=2.0)
    counts = torch.bincount(drawn, minlength=13) / many
    assert ((counts - p).abs() < 5 * (p * (1 - p) / many).sqrt() + 1e-9).all()  # five standard deviations


@given(seeds, st.integers(1, 4), st.integers(2, 40))
def test_a_race_of_exponential_times_draws_what_torch_draws(seed, rows, words):
    probabilities = tensor(seed, rows, words, dtype=torch.float32).mul(3).softmax(-1)
    expected = torch.multinomial(probabilities, 1, generator=generator(seed)).squeeze(1)
    assert draw(probabilities, generator(seed)).equal(expected)


def test_a_model_that_gives_nan_is_said():
    model = tiny_model(3)
    with torch.no_grad():
        model.output.weight[4] = torch.nan
    with pytest.raises(ValueError, match="logits: expected numbers to draw from, got NaN"):
        sample_decode(model, ids(1, 2, 5), 4, generator(1))


@pytest.mark.parametrize("choices", [{"top_k": 1}, {"temperature": 1e-3}, {"top_p": 1e-6}])
def test_the_least_daring_draw_is_greedy_decoding(choices):
    model, source = tiny_model(4), ids(1, 4, 5)
    assert sample_decode(model, source, 9, generator(1), **choices).equal(greedy_decode(model, source, 9))


def test_after_eos_come_pads_alone_and_nobody_waits_for_the_last_position_once_all_ended():
    model, source = tiny_model(5), ids(1, 6, 5)
    drawn = sample_decode(model, source, 15, generator(1), temperature=3.0)
    eos, pad = model.config.eos, model.config.pad
    ends = [row.index(eos) for row in drawn.tolist() if eos in row]
    assert len(ends) > 1 and drawn[:, 0].eq(model.config.bos).all()
    for row in drawn.tolist():
        if eos in row:
            assert set(row[row.index(eos) + 1 :]) <= {pad}


def test_equal_generators_draw_alike_and_others_do_not():
    model, source = tiny_model(6), ids(1, 4, 5)
    first, again, other = (sample_decode(model, source, 9, generator(seed), temperature=3.0) for seed in (1, 1, 2))
    assert first.equal(again) and not (first.shape == other.shape and first.equal(other))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"temperature": 0.0}, "temperature: expected more than 0"),
        ({"top_k": 0}, "top_k: expected at least 1, got 0"),
        ({"top_p": 0.0}, "top_p: expected more than 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p: expected"),
    ],
)
def test_a_choice_out_of_range_is_refused_by_name(choices, message):
    with pytest.raises(ValueError, match=message):
        sampling_probabilities(HAND, **choices)


def test_nothing_is_drawn_with_dropout():
    with pytest.raises(ValueError, match="model: expected evaluation mode"):
        sample_decode(tiny_model().train(), ids(1, 1, 3), 3, generator(1))
