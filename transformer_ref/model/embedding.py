"""Ids become vectors (chapter 02)."""

import math

import torch
from torch import Tensor, nn

from transformer_ref.shapes import expect_ids


class Embedding(nn.Module):
    """One learned vector for each id, multiplied by sqrt(d_model) (Vaswani et al. 2017, section 3.4).

    The table is initialized with variance 1 / d_model: times sqrt(d_model) the vectors enter the model with variance 1,
    the size of the positions added to them, and as an output table it gives logits of that size.
    scaled: False omits the multiplication, as some pretrained models do.
    """

    def __init__(self, vocabulary: int, d_model: int, scaled: bool = True) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model) if scaled else 1.0
        self.weight = nn.Parameter(torch.empty(vocabulary, d_model))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialize the table again, from `generator` if there is one."""
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5, generator=generator)

    def forward(self, ids: Tensor) -> Tensor:
        """Return (batch, length, d_model) for ids (batch, length); IndexError for an id beyond the table."""
        expect_ids("ids", ids, "batch", "length")
        return nn.functional.embedding(ids, self.weight) * self.scale  # (batch, length, d_model)
