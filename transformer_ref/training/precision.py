"""Computing in bf16 while the weights stay in fp32 (chapter 10).

A bf16 number has 8 bits of precision: a step of a learning rate's size would often round away, so the weights,
the optimizer's memory and the running mean live in fp32 (Micikevicius et al. 2018, section 3.1). Only the forward
and the backward pass see a copy in bf16, which has fp32's range: nothing overflows and no loss needs scaling.
"""

import copy

import torch
from torch import nn


class BF16Copy:
    """A bf16 copy of a model, to run a step on.

    model: the one that is trained, in fp32. Each step refreshes the copy, runs it forward and backward, and hands
    its gradients over; between steps the copy holds nothing that a checkpoint would need.
    """

    def __init__(self, model: nn.Module) -> None:
        self._copy = copy.deepcopy(model).to(torch.bfloat16).train()
        self._pairs = list(zip(self._copy.parameters(), model.parameters(), strict=True))

    @torch.no_grad()
    def refreshed(self) -> nn.Module:
        """Return the copy, in training mode, with the weights the model has now."""
        for parameter, trained in self._pairs:
            parameter.copy_(trained)
            parameter.grad = None
        return self._copy

    def hand_over_gradients(self) -> None:
        """Add the copy's gradients to the model's, in fp32, and forget them here."""
        for parameter, trained in self._pairs:
            if parameter.grad is not None:
                gradient = parameter.grad.to(trained.dtype)
                trained.grad = gradient if trained.grad is None else trained.grad.add_(gradient)
                parameter.grad = None
