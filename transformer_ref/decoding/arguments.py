"""What every way to decode asks of its arguments."""

from torch import nn

from transformer_ref.config import LARGEST_EXPONENT


def expect_ready(model: nn.Module, max_length: int) -> None:
    """Return nothing if a model can decode up to max_length tokens.

    Raises ValueError when it is in training mode, where dropout would make the answer random, or max_length is below 1.
    """
    if model.training:
        raise ValueError("model: expected evaluation mode (model.eval()), got training mode")
    if max_length < 1:
        raise ValueError(f"max_length: expected at least 1, got {max_length}")


def expect_length_exponent(length_exponent: float) -> None:
    """Return nothing for an exponent that ranks hypotheses; raise ValueError for NaN and what is out of range."""
    if not 0 <= length_exponent <= LARGEST_EXPONENT:
        raise ValueError(f"length_exponent: expected a number from 0 to {LARGEST_EXPONENT}, got {length_exponent:g}")
