"""An encoder layer as exercise 09 specifies it: it returns only the tokens."""

from torch import Tensor

from transformer_ref.model import encoder


class EncoderLayer(encoder.EncoderLayer):
    """Self-attention and the feed-forward network, each with its residual and its norm (Vaswani et al. 2017, 3.1).

    d: width of the tokens, a multiple of h; h: heads; d_ff: inner width, with ReLU; dropout: on the output of each
    sub-layer; norm_first: pre-norm, else post-norm. Raises ValueError when d is not a multiple of h.
    """

    def __init__(self, d: int, h: int, d_ff: int, dropout: float, norm_first: bool) -> None:
        super().__init__(d, h, d_ff, dropout, norm_first)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output, (batch, length, d).

        x: (batch, length, d); mask: boolean, broadcastable to (batch, h, length, length), True = may attend.
        """
        return super().forward(x, mask).output
