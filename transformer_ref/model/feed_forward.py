"""Two linear maps for each token separately (chapter 09)."""

from torch import Tensor, nn

from transformer_ref.config import Activation


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position (Vaswani et al. 2017, eq. 2).

    activation: another function than max(0, x), by its name in `torch.nn.functional`.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.activation = getattr(nn.functional, activation)
        self.fc1 = nn.Linear(d_model, d_ff)  # W_1, b_1
        self.fc2 = nn.Linear(d_ff, d_model)  # W_2, b_2

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, length, d_model) for x of the same shape."""
        return self.fc2(self.activation(self.fc1(x)))  # d_model -> d_ff -> d_model
