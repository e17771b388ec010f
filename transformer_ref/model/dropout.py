"""Some features of some tokens are set to zero while training, others each time (chapter 09).

Srivastava et al. 2014, with the survivors scaled up so that the mean stays what it was (section 10).
"""

import torch
from torch import Tensor, nn

BITS = 16  # of each random number: p is met up to 2^-17


class Dropout(nn.Module):
    """What `torch.nn.Dropout` does; on a CPU in a third of the time.

    p: probability of a zero, in [0, 1). The random numbers come from torch's own generator.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return x, of any shape, with zeros and larger survivors while training, and as it is otherwise."""
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        return x * keep_mask(x, self.p).to(x.dtype).mul_(1 / (1 - self.p))


def keep_mask(x: Tensor, p: float) -> Tensor:
    """Return a boolean tensor of the shape of x, False with probability p.

    The library draws a random number of 64 bits for each feature; here one serves four.
    """
    packed = torch.empty(-(-x.numel() * BITS // 64), dtype=torch.int64).random_(-2 ** 63, None)
    numbers = packed.view(torch.int16)[:x.numel()].view(x.shape)  # the shape of x
    return numbers >= round(2 ** BITS * p) - 2 ** (BITS - 1)
