"""Multi-head attention as exercise 06 specifies it: it returns only the result, and the weights stay on the module."""

from torch import Tensor

from transformer_ref.model import multi_head_attention


class MultiHeadAttention(multi_head_attention.MultiHeadAttention):
    """Project, split, attend, merge, project; after each call `last_weights` holds every head's weights.

    d_model: width of the tokens, a multiple of h; h: heads; bias: whether the four projections add one. Raises
    ValueError when d_model is not a multiple of h.
    """

    def __init__(self, d_model: int, h: int, bias: bool = True) -> None:
        super().__init__(d_model, h, bias=bias)
        self.last_weights: Tensor | None = None

    def forward(self, x_q: Tensor, x_kv: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Return the output, (batch, query, d_model).

        x_q: (batch, query, d_model), for queries; x_kv: (batch, key, d_model), for keys and values, None: x_q itself;
        mask: boolean, broadcastable to (batch, heads, query, key), True = may attend, None: all.
        """
        attended, self.last_weights = super().forward(x_q, x_kv, mask, need_weights=True)
        return attended
