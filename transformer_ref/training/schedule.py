"""Learning rate schedules (chapter 10)."""

import math

from transformer_ref.config import TrainingConfig

FINAL_FACTOR = 0.02  # the share of the peak that the cosine ends at


def noam_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Return the learning rate of a step, counted from 1: linear growth, then 1 / sqrt(step).

    Source: Vaswani et al. 2017, equation 3. Raises ValueError for a step, d_model or warmup_steps below 1.
    """
    _expect_counted_from_one(step)
    for name, number in (("d_model", d_model), ("warmup_steps", warmup_steps)):
        if not number >= 1:
            raise ValueError(f"{name}: expected at least 1, got {number}")
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def cosine_factor(step: int, warmup_steps: int, progress: float) -> float:
    """Return the share of the peak learning rate: linear growth over `warmup_steps` steps, then half a cosine.

    step: counted from 1; progress: the completed share of the training, from 0 to 1, in steps or in time.
    Source of the cosine: Loshchilov and Hutter 2017, equation 5. Raises ValueError for a step below 1.
    """
    _expect_counted_from_one(step)
    fallen = (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0))) / 2
    return min(step / max(warmup_steps, 1), 1.0) * (FINAL_FACTOR + (1 - FINAL_FACTOR) * fallen)


def linear_factor(step: int, warmup_steps: int, progress: float) -> float:
    """Return the share of the peak learning rate: linear growth over `warmup_steps` steps, then a straight line to 0.

    step: counted from 1; progress: the completed share of the training, from 0 to 1, in steps or in time. Source:
    Bergsma et al. 2025, who find it better than a cosine. Raises ValueError for a step below 1.
    """
    _expect_counted_from_one(step)
    return min(step / max(warmup_steps, 1), 1.0) * (1 - min(max(progress, 0.0), 1.0))


def inverse_sqrt_factor(step: int, warmup_steps: int) -> float:
    """Return the share of the peak learning rate: `noam_rate` over its own peak, whatever the width.

    step: counted from 1. Raises ValueError for a step below 1.
    """
    _expect_counted_from_one(step)
    warmup_steps = max(warmup_steps, 1)
    return min(step / warmup_steps, math.sqrt(warmup_steps / step))


def rate_factor(config: TrainingConfig, step: int, progress: float) -> float:
    """Return the share of the peak learning rate that the config's schedule gives a step, counted from 1."""
    if config.schedule == "inverse_sqrt":
        return inverse_sqrt_factor(step, config.warmup_steps)
    falls = linear_factor if config.schedule == "linear" else cosine_factor
    return falls(step, config.warmup_steps, progress)


def _expect_counted_from_one(step: int) -> None:
    if step < 1:
        raise ValueError(f"step: expected at least 1, got {step}")
