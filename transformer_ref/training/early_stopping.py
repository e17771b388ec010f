"""When training stops early: after `patience` validations in a row without a smaller loss (`TrainingConfig.patience`).

A validation loss that rises while the training loss still falls means overfitting. So the model with the smallest
validation loss is the one that is kept. Losses are in nats per token; with patience 0 training never stops early.
"""

from collections.abc import Sequence

Validations = Sequence[tuple[int, float]]  # step, loss


def validations_since_best(validations: Validations) -> int:
    """Return how many validations there were after the one with the smallest loss; 0 without any validation."""
    losses = [loss for _, loss in validations]
    return len(losses) - 1 - losses.index(min(losses)) if losses else 0


def stops_early(validations: Validations, patience: int) -> bool:
    """Return whether the last `patience` validations brought no smaller loss."""
    return patience > 0 and validations_since_best(validations) >= patience
