"""Properties of right results, shown as lines of their own in a report."""

import torch

from autograder.catalogue.exercise import Law


def sums_to_one(text: str, part: int | None = None) -> Law:
    """Every row of the result, or of a part of it, sums to 1."""

    def holds(got) -> bool:
        table = got if part is None else got[part]
        return torch.allclose(table.sum(-1), torch.ones((), dtype=table.dtype), atol=1e-4)

    return Law(text, holds)


ROWS_SUM_TO_ONE = sums_to_one("every query's weights sum to 1")
