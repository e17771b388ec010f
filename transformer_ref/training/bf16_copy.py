"""Computing in bf16 while the weights stay in fp32 (chapter 10).

A bf16 number has 8 bits of precision: a step of a learning rate's size would often round away, so the weights,
the optimizer's memory and the running mean live in fp32 (Micikevicius et al. 2018, section 3.1). Only the forward
and the backward pass see a copy in bf16, which has fp32's range: nothing overflows and no loss needs scaling.
`device.choose_precision` decides between the two, by the measurement in `machine.faster_precision`.
"""

import copy

import torch
from torch import nn

from transformer_ref.model_state import buffers_of, set_buffer


class BF16Copy:
    """A bf16 copy of a model, on which a training step runs.

    model: the one that is trained, in fp32. Each step refreshes the copy, runs it forward and backward, and adds its
    gradients to the model's; the copy has no state that a checkpoint would need.
    """

    def __init__(self, model: nn.Module) -> None:
        self._copy = copy.deepcopy(model).to(torch.bfloat16).train()
        self._parameters, self._trained = list(self._copy.parameters()), list(model.parameters())
        self._model = model if buffers_of(model) else None  # the package's own model has no such buffers
        self._buffers: dict[str, torch.Tensor] = {}  # as the copy had them before the step

    @torch.no_grad()
    def refreshed(self) -> nn.Module:
        """Return the copy, in training mode, with the model's current weights."""
        torch._foreach_copy_(self._parameters, self._trained)  # one call for all: on a GPU a few kernels
        for parameter in self._parameters:
            parameter.grad = None
        if self._model is not None:
            for name, buffer in buffers_of(self._model).items():
                self._buffers[name] = buffer.to(torch.bfloat16) if buffer.is_floating_point() else buffer.clone()
                set_buffer(self._copy, name, self._buffers[name])
        return self._copy

    @torch.no_grad()
    def hand_over_gradients(self) -> None:
        """Add the copy's gradients to the model's, in fp32, and remove them here.

        A change of a buffer in the forward pass, such as that of a running mean, is added to the model's buffer.
        """
        pairs = zip(self._parameters, self._trained, strict=True)
        moving = [(parameter, trained) for parameter, trained in pairs if parameter.grad is not None]
        gradients = [torch.empty_like(trained) for _, trained in moving]
        if moving:
            torch._foreach_copy_(gradients, [parameter.grad for parameter, _ in moving])
        for (parameter, trained), gradient in zip(moving, gradients, strict=True):
            trained.grad = gradient if trained.grad is None else trained.grad.add_(gradient)
            parameter.grad = None
        if self._model is not None:
            moved, trained = buffers_of(self._copy), buffers_of(self._model)
            for name, before in self._buffers.items():
                if before.is_floating_point() and before.shape == moved[name].shape:
                    trained[name].add_(moved[name].to(trained[name].dtype) - before.to(trained[name].dtype))
                else:
                    set_buffer(self._model, name, moved[name].to(trained[name].dtype))
