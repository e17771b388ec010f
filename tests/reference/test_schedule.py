"""Warm-up ends where the decay begins; the ends are where they should be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.training.schedule import FINAL_FACTOR, cosine_factor, inverse_sqrt_factor, linear_factor, noam_rate

warm_ups = st.integers(2, 5_000)


@given(st.integers(1, 2_048), warm_ups)
def test_noam_warm_up_ends_where_the_decay_begins(d_model, warmup_steps):
    peak = noam_rate(warmup_steps, d_model, warmup_steps)
    assert peak == pytest.approx((d_model * warmup_steps) ** -0.5)
    assert (
        noam_rate(warmup_steps - 1, d_model, warmup_steps) < peak > noam_rate(warmup_steps + 1, d_model, warmup_steps)
    )


@given(st.integers(1, 2_048), warm_ups, st.floats(0, 1))
def test_noam_grows_linearly(d_model, warmup_steps, share):
    step = max(1, int(share * warmup_steps))
    assert noam_rate(step, d_model, warmup_steps) == pytest.approx(step * noam_rate(1, d_model, warmup_steps))


def test_noam_worked_example_of_the_chapter():
    assert noam_rate(4_000, 512, 4_000) == pytest.approx(6.99e-4, abs=5e-7)
    assert noam_rate(1, 512, 4_000) == pytest.approx(1.75e-7, abs=5e-10)


@given(st.integers(1, 20_000), st.integers(1, 2_048), warm_ups)
def test_the_inverse_square_root_is_noam_s_rate_over_its_peak(step, d_model, warmup_steps):
    expected = noam_rate(step, d_model, warmup_steps) / noam_rate(warmup_steps, d_model, warmup_steps)
    assert inverse_sqrt_factor(step, warmup_steps) == pytest.approx(expected)


@pytest.mark.parametrize("factor", [cosine_factor, linear_factor])
@given(warm_ups, st.floats(0, 1), st.floats(0, 1))
def test_the_rate_never_grows_after_the_warm_up(factor, warmup_steps, one, other):
    early, late = sorted((one, other))
    assert factor(warmup_steps, warmup_steps, early) >= factor(warmup_steps, warmup_steps, late)


@given(warm_ups)
def test_cosine_starts_small_passes_its_middle_and_ends_at_its_floor(warmup_steps):
    assert cosine_factor(1, warmup_steps, 0) == pytest.approx(1 / warmup_steps)
    assert cosine_factor(warmup_steps, warmup_steps, 0) == pytest.approx(1)
    assert cosine_factor(warmup_steps, warmup_steps, 0.5) == pytest.approx((1 + FINAL_FACTOR) / 2)
    assert cosine_factor(warmup_steps, warmup_steps, 1) == pytest.approx(FINAL_FACTOR)


@given(warm_ups, st.floats(0, 1))
def test_the_line_starts_small_and_reaches_zero_at_an_even_pace(warmup_steps, progress):
    assert linear_factor(1, warmup_steps, 0) == pytest.approx(1 / warmup_steps)
    assert linear_factor(warmup_steps, warmup_steps, progress) == pytest.approx(1 - progress)


@pytest.mark.parametrize(
    "rate",
    [
        lambda step: noam_rate(step, 8, 4),
        lambda step: cosine_factor(step, 4, 0),
        lambda step: linear_factor(step, 4, 0),
        lambda step: inverse_sqrt_factor(step, 4),
    ],
)
def test_step_zero_is_refused(rate):
    with pytest.raises(ValueError, match="step: expected at least 1, got 0"):
        rate(0)
