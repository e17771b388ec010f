"""What the exercises of chapter 05 share."""

import torch

from autograder.catalogue.exercise import Law
from autograder.catalogue.sections import of_chapter

WORDS = ("I", "closed", "the", "windows")
EMBEDDINGS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])


FUSED = ("scaled_dot_product_attention", "MultiheadAttention", "flex_attention")  # what they mean: recorder.MEANINGS
SUMS_TO_ONE = Law("every query's weights sum to 1", lambda got: torch.allclose(got.sum(-1), torch.ones(()), atol=1e-4))
PAIR_SUMS_TO_ONE = Law(
    "every query's weights sum to 1", lambda got: torch.allclose(got[1].sum(-1), torch.ones(()), atol=1e-4)
)

sections = of_chapter("05")
