"""The length limit of a translation: how many tokens a decoder may generate after bos, eos included.

Each sentence has its own limit, so that its translation does not depend on the other sentences of its batch.
"""

from collections.abc import Sequence

from torch import Tensor

from transformer_ref.config import DecodingConfig


def limits_by_source(sources: Sequence[Sequence[int]], config: DecodingConfig, positions: int) -> list[int]:
    """Return the limit of each source: `config.extra_length` tokens more than it has, eos included, and at most the
    model's number of positions (Vaswani et al. 2017, section 6.1)."""
    return [min(len(source) + config.extra_length, positions) for source in sources]


def length_limits(source_ids: Tensor, max_length: int | Sequence[int]) -> list[int]:
    """Return the limit for each row of source_ids, (batch, source).

    max_length: one number for every row, or one number per row. Raises ValueError for another count of numbers and for
    one below 1.
    """
    if isinstance(max_length, int):
        if max_length < 1:
            raise ValueError(f"max_length: expected at least 1, got {max_length}")
        return [max_length] * len(source_ids)
    limits = [int(limit) for limit in max_length]
    if len(limits) != len(source_ids):
        raise ValueError(f"max_length: expected one for each of {len(source_ids)} sources, got {len(limits)}")
    if any(limit < 1 for limit in limits):
        raise ValueError(f"max_length: expected at least 1 for each source, got {min(limits)}")
    return limits
