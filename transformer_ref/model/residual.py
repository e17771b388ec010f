"""The residual stream: a sub-layer reads the tokens and writes a change to them (chapter 09).

post-norm (the paper):  LayerNorm(x + Sublayer(x))     Vaswani et al. 2017, section 3.1
pre-norm:               x + Sublayer(LayerNorm(x))     Xiong et al. 2020, figure 1
"""

from torch import Tensor, nn


class Residual(nn.Module):
    """The residual connection around a sub-layer, with its norm and its dropout."""

    def __init__(self, d_model: int, dropout: float, norm_first: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def read(self, x: Tensor) -> Tensor:
        """Return the input of the sub-layer for x, (batch, length, d_model)."""
        return self.norm(x) if self.norm_first else x

    def write(self, x: Tensor, change: Tensor) -> Tensor:
        """Return x with the sub-layer's output added; both (batch, length, d_model)."""
        updated = x + self.dropout(change)
        return updated if self.norm_first else self.norm(updated)
