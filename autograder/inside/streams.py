"""The models that chapter 13's exercises hand over, and what is set up around an answer that gets one.

An answer may hang hooks on a model or ask its parameters for their device, so it is made where the answer runs. Nobody
trained these. `SmallBlock` and `SmallGPT` stand in the notebook word for word.
"""

# A notebook's class names its parameters in a loop, and so without types.
# pyright: reportOperatorIssue=false

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.inside.calling import answered


class Teller(nn.Module):
    """A model whose next token depends on all that it is shown, and on where each token stands in what is shown.

    In training mode it says other things, as dropout would have it. It is shown at most `context` tokens.
    """

    def __init__(self, vocabulary: int, context: int, sharp: float, seed: int) -> None:
        super().__init__()
        self.vocabulary, self.context, self.seed = vocabulary, context, seed
        self.sharp = nn.Parameter(torch.tensor(sharp), requires_grad=False)  # how far apart the logits lie

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, target, vocabulary) of the token after each of those that are shown, ids (batch, target)."""
        if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.is_floating_point():
            form = f"a tensor of shape {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
            raise ValueError(f"ids: expected a tensor of ids (B, T), got {form}")
        if not 1 <= ids.shape[1] <= self.context:
            raise ValueError(f"ids: expected 1 to {self.context} tokens, got {ids.shape[1]}")
        places = torch.arange(ids.shape[1], device=ids.device)  # (target,)
        said = ((ids + 2) * (places * places + 3 * places + 5)).cumsum(dim=1) + 7 * places  # (batch, target)
        turn = said[..., None].double() * (1.7 + 0.3 * self.training)  # (batch, target, 1)
        tokens = torch.arange(self.vocabulary, dtype=torch.float64)
        return (torch.cos(turn + tokens * (2.3 + self.seed % 97 / 50)) * self.sharp).float()


class Writing:
    """Calls an answer with a model, and says in which mode it left it."""

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (what `Teller` takes, and "training"; the rest as it takes it) -> ..."""

        def staged(given: dict[str, Any], *arguments: Any) -> dict[str, Any]:
            model = Teller(*(given[name] for name in ("vocabulary", "context", "sharp", "seed")))
            model.train(given["training"])
            ids = answered(function, model, *arguments)
            return {"ids": ids, "training": model.training}

        return staged


class Tracing:
    """Calls an answer twice with one model, and says what it left there."""

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (what `SmallGPT` takes, with a seed; ids) -> what came back the second time.

        "hooks": how many are left on the model; "kept": whether both calls gave one and the same list; "training":
        whether the model, which came in training mode, is in it still.
        """

        def staged(given: dict[str, Any], ids: Tensor) -> dict[str, Any]:
            g = torch.Generator().manual_seed(given["seed"])
            model = SmallGPT(given["vocabulary"], given["D"], given["layers"], g)
            first = answered(function, model, ids)
            trace = answered(function, model, ids)
            hooks = sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())
            kept = isinstance(trace, list) and trace is first
            return {"trace": trace, "hooks": hooks, "kept": kept, "training": model.training}

        return staged


STREAMS = {"writing": Writing, "tracing": Tracing}


class SmallBlock(nn.Module):
    """A block of a GPT with one head: attention and feed-forward network, each with its norm before it."""

    def __init__(self, D, g):
        super().__init__()
        for name in ("W_q", "W_k", "W_v", "W_o", "F_1", "F_2"):
            setattr(self, name, nn.Parameter(torch.randn(D, D, generator=g) / D**0.5))

    def forward(self, x):
        """The stream (B, T, D) with what the block adds to it."""
        seen = F.layer_norm(x, x.shape[-1:])
        scores = seen @ self.W_q @ (seen @ self.W_k).transpose(-2, -1) / x.shape[-1] ** 0.5  # (B, T, T)
        later = torch.ones_like(scores[0], dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        x = x + weights @ (seen @ self.W_v) @ self.W_o
        return x + torch.relu(F.layer_norm(x, x.shape[-1:]) @ self.F_1) @ self.F_2


class SmallGPT(nn.Module):
    """A GPT with weights drawn at random; nobody trained it, and the arithmetic is all there."""

    def __init__(self, vocabulary, D, layers, g):
        super().__init__()
        self.words = nn.Parameter(torch.randn(vocabulary, D, generator=g))
        self.places = nn.Parameter(torch.randn(64, D, generator=g))
        self.blocks = nn.ModuleList(SmallBlock(D, g) for _ in range(layers))

    def embed(self, ids):
        """Words and where they stand: ids (B, T) -> (B, T, D)."""
        return self.words[ids] + self.places[: ids.shape[1]]

    def norm(self, x):
        """The last norm: (B, T, D) -> (B, T, D)."""
        return F.layer_norm(x, x.shape[-1:])

    def head(self, x):
        """Logits: (B, T, D) -> (B, T, V)."""
        return x @ self.words.T

    def forward(self, ids):
        """Ids (B, T) -> logits (B, T, V)."""
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
