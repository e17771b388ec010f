"""Weights of a Marian model, such as one of OPUS-MT, in the Transformer that a learner wrote (chapters 09 and 15).

Four things differ, and none of them touches the learner's code. Marian has all sines before all cosines: the features
are reordered, in every matrix that reads or writes them. Its padding token begins a translation, and a learner's mask
hides padding: all ids move up by one, so that padding has an id of its own. Each token's logit has a number added: it
is added behind. And the feed-forward networks have SiLU where a learner has ReLU: while the learner's forward runs, one
replaces the other. At the end both models give the same output for random ids, or nothing is returned.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_ref.config import ModelConfig
from transformer_ref.learner.own_file import LearnersFile, OwnCodeError
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.learner.own_weights import MOST_READINGS, SAME, NotFound, gap, random_ids, readable, readings
from transformer_ref.model.transformer import Transformer

ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {"silu": F.silu, "gelu": F.gelu}
TABLES = ("source_embedding.weight", "target_embedding.weight", "output.weight")
READS = ("q_proj.weight", "k_proj.weight", "v_proj.weight", "fc1.weight", *TABLES)
WRITES = ("out_proj.weight", "out_proj.bias", "fc2.weight", "fc2.bias", "norm.weight", "norm.bias")


class InPlaceOfReLU(TorchDispatchMode):
    """Inside the `with`, every operation that computes ReLU computes another function instead."""

    def __init__(self, activation: Callable[[Tensor], Tensor] | None) -> None:
        super().__init__()
        self.activation = activation

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if self.activation is None or not _is_relu(function, args, kwargs):
            return function(*args, **kwargs)
        found = self.activation(args[0])
        return args[0].copy_(found) if function is torch.ops.aten.relu_.default else found


def _is_relu(function: Any, args: tuple, kwargs: dict) -> bool:
    aten = torch.ops.aten
    if function in (aten.relu.default, aten.relu_.default):
        return True
    if function in (aten.clamp.default, aten.clamp_min.default):
        bounds = {"min": None, "max": None} | dict(zip(("min", "max"), args[1:], strict=False)) | kwargs
        return bounds["min"] == 0 and bounds["max"] is None
    return function is aten.maximum.default and args[1].numel() == 1 and args[1].item() == 0


class Fitted(nn.Module):
    """A learner's Transformer with Marian's ids, activation and biases."""

    def __init__(self, own: nn.Module, config: ModelConfig) -> None:
        super().__init__()
        self.own, self.pad = own, config.pad
        self.activation = ACTIVATION.get(config.activation)
        self.register_buffer("bias", torch.zeros(config.target_vocabulary))

    def forward(self, source_ids: Tensor, target_input_ids: Tensor) -> Tensor:
        """Return logits (batch, target, vocabulary)."""
        source = (source_ids + 1).masked_fill(source_ids == self.pad, 0)  # padding is 0 now, and nothing else is
        with InPlaceOfReLU(self.activation):
            logits = self.own(source, target_input_ids + 1)  # (batch, target, 1 + vocabulary)
        return logits[..., 1:] + self.bias


class OwnMarian(OwnTransformer):
    """A learner's Transformer with Marian's weights and the interface of the package's model.

    Raises OwnCodeError if the learner's weights cannot be identified or the outputs differ.
    """

    def __init__(self, code: LearnersFile, model: Transformer) -> None:
        nn.Module.__init__(self)
        self.code, self.config = code, model.config
        inner = OwnTransformer(code, _config(model.config)).eval()
        self.own = Fitted(inner.own, model.config).eval()
        if model.output.bias is not None:
            self.own.bias.copy_(model.output.bias.detach())
        self.eval()
        source, target = random_ids(model.config)
        with torch.no_grad():
            wanted, least = model(source, target), math.inf
            with readable(code.name):
                for _ in _fillings(inner, _state(model)):
                    apart = gap(self(source, target), wanted)
                    if apart < SAME:
                        return
                    least = min(least, apart)
        raise OwnCodeError(
            f"{code.name}: Transformer: expected the arithmetic of the paper, whose weights these are, got logits that "
            f"differ by {least:.2g} of the largest; the checks of chapters 06 to 09 tell where"
        )

    def __deepcopy__(self, memory: dict) -> "OwnMarian":
        raise OwnCodeError(f"{self.code.name}: expected no training from here, since these weights are read only")


def _config(config: ModelConfig) -> ModelConfig:
    """Return the learner's config: padding has its own id, and the sinusoids are interleaved."""
    return dataclasses.replace(
        config,
        source_vocabulary=config.source_vocabulary + 1,
        target_vocabulary=config.target_vocabulary + 1,
        pad=0,
        bos=config.bos + 1,
        eos=config.eos + 1,
        dropout=0.0,
        layout="interleaved",
        tie_embeddings=config.tie_embeddings and config.scale_embedding,
        scale_embedding=True,
        output_bias=False,
    )


def _state(model: Transformer) -> dict[str, Tensor]:
    """Return the weights for a model of that config: features reordered, a row for the padding, embeddings scaled."""
    config, state = model.config, {}
    d_model = config.d_model
    sines = (d_model + 1) // 2
    order = torch.tensor([i // 2 if i % 2 == 0 else sines + i // 2 for i in range(d_model)])
    for name, parameter in model.state_dict().items():
        if name == "output.bias":
            continue
        tensor = parameter.float()
        if name.endswith(WRITES):
            tensor = tensor[order]
        elif name.endswith(READS):
            tensor = tensor[:, order]
        if name in TABLES:
            tensor = torch.cat([torch.zeros(1, d_model), tensor])
        if name.endswith("embedding.weight") and not config.scale_embedding:
            tensor = tensor / math.sqrt(d_model)  # every learner multiplies by it
        state[name] = tensor
    return state


def _fillings(inner: OwnTransformer, state: dict[str, Tensor]) -> Iterator[None]:
    """Fill the learner's parameters with the weights, for each possible assignment of roles.

    An assignment moves the learner's numbers to the package's places. So the gradient of (reading · weights) with
    respect to a number of the learner's is the weight that belongs there.
    """
    own = dict(inner.own.named_parameters())
    probes = {name: parameter.detach().float().cpu().requires_grad_() for name, parameter in own.items()}
    found = itertools.islice(readings(probes, inner.config), MOST_READINGS)
    while True:
        with torch.enable_grad():  # not around the yield, where it would be the caller's too
            reading = next(found, None)
            if reading is None:
                return
            weights = _pulled_back(reading, state, list(probes.values()))
        for parameter, each in zip(own.values(), weights, strict=True):
            if each is not None:
                parameter.copy_(each)
        yield


def _pulled_back(
    reading: dict[str, Tensor], state: dict[str, Tensor], probes: list[Tensor]
) -> tuple[Tensor | None, ...]:
    """Return the weights in the shapes of the learner's parameters, None for a parameter without a role."""
    total, done = torch.zeros(()), set()
    for name, read in reading.items():
        if not read.requires_grad and state[name].any():
            raise NotFound(f"no bias for {name}")
        if read.requires_grad and id(read) not in done:  # a tied table plays three roles
            total = total + (read * state[name]).sum()
            done.add(id(read))
    return torch.autograd.grad(total, probes, allow_unused=True)
