"""What the exercises of chapter 05 share."""

import torch

from autograder.catalogue.sections import of_chapter

WORDS = ("I", "closed", "the", "windows")
EMBEDDINGS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])

FUSED = ("scaled_dot_product_attention", "MultiheadAttention", "flex_attention")  # what they mean: recorder.MEANINGS

sections = of_chapter("05")
