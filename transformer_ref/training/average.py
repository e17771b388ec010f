"""A running mean of the weights: smoother, and usually a little better, than the last ones (chapter 12)."""

import copy

import torch
from torch import nn

from transformer_ref.model_state import parameters_of, unwrapped


class WeightAverage:
    """An exponential moving average of a model's parameters.

    decay: the share kept at each update; early updates keep less, so that the initial weights are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.means = {name: parameter.detach().clone() for name, parameter in parameters_of(model).items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Move the average toward the model's weights."""
        self.updates += 1
        decay = min(self.decay, (self.updates + 1) / (self.updates + 10))
        parameters = parameters_of(model)
        # one call for all: on a GPU a few kernels instead of one a parameter
        torch._foreach_lerp_([self.means[name] for name in parameters], list(parameters.values()), 1 - decay)

    @torch.no_grad()
    def of(self, model: nn.Module) -> nn.Module:
        """Return a copy of the model with the averaged weights; the model itself is not changed.

        Its buffers are those of the model. A compiled model's copy is not compiled, since it is used only briefly.
        """
        averaged = copy.deepcopy(unwrapped(model))
        for name, parameter in averaged.named_parameters():
            parameter.copy_(self.means[name])
            parameter.grad = None
        return averaged
