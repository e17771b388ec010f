"""Each token thinks for itself (chapter 09)."""

from torch import Tensor, nn


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position (Vaswani et al. 2017, eq. 2)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.widen = nn.Linear(d_model, d_ff)  # W_1, b_1
        self.narrow = nn.Linear(d_ff, d_model)  # W_2, b_2

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, length, d_model) for x of the same shape."""
        return self.narrow(self.widen(x).relu())  # d_model -> d_ff -> d_model
