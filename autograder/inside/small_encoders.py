"""Stages that hand over a small encoder of chapter 15: to freeze parts of it, or to load weights into it.

The models are those of `transformer_ref.beyond.small_encoder`, which a notebook sees too.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from autograder.inside import wire
from autograder.inside.calling import answered

HOME = "transformer_ref.beyond.small_encoder"
VOCABULARY, D_MODEL, D_FF, LONGEST, CLASSES = 7, 4, 5, 3, 2  # of the model that is frozen
RATE, DECAY = 0.5, 0.1  # of the step that follows: what has a gradient moves by a twentieth of itself at least
MOST = 200  # names that are told of what came back
REFUSALS = (ValueError, KeyError, RuntimeError)  # by which weights are refused


class Freezing:
    """Calls an answer with a model, then takes a step with an optimizer that has held all parameters from the start."""

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (what the model is, names) -> what became of the model.

        given: "layers" of the encoder (0: a plain stack of layers in its place), "seed" of its weights, "training": its
        mode, "frozen": names of parameters that come frozen, "stale": what all gradients are before. Names of
        parameters come back for all that is asked.
        """

        def staged(given: dict[str, Any], names: list[str]) -> dict[str, Any]:
            with torch.random.fork_rng(devices=[]):
                model = _classifier(given["layers"]) if given["layers"] else _Stack()
            generator = torch.Generator().manual_seed(given["seed"])
            parameters = dict(model.named_parameters())
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator) + 0.2)
                    parameter.requires_grad_(name not in given["frozen"])
                    parameter.grad = torch.full_like(parameter, given["stale"]) if given["stale"] else None
            model.train(given["training"])
            modes = {name: module.training for name, module in model.named_modules()}
            optimizer = torch.optim.SGD(list(parameters.values()), lr=RATE, weight_decay=DECAY)
            came = _values(parameters)
            returned = answered(function, model, names)
            after = _values(parameters)
            told = {
                "what came back": _as_names(returned),
                "what learns": [name for name, parameter in parameters.items() if parameter.requires_grad],
                "what is there": [
                    name for name, parameter in model.named_parameters() if parameter is parameters.get(name)
                ],
                "changed by the call": _changed(came, after),
                "flags on modules": [name for name, module in model.named_modules() if "requires_grad" in vars(module)],
                "other mode": [name for name, module in model.named_modules() if module.training != modes.get(name)],
            }
            inputs = torch.randint(VOCABULARY, (4, LONGEST), generator=generator)
            with torch.enable_grad():
                loss = model(inputs).square().sum()
            if loss.requires_grad:
                loss.backward()
            optimizer.step()
            return {**told, "moved by a step": _changed(after, _values(parameters))}

        return staged


class Loading:
    """Calls an answer with weights under foreign names and a model, and says what the model holds then."""

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (weights, what the model is) -> what the model holds, or whether it was refused.

        given: "sizes" of a SmallEncoder, its "dtype", and "start", which all its weights are before. With "damage"
        (names to be left out, entries to be put in) it is asked a second time, of a new model, with damaged weights.
        """

        def staged(sd: dict[str, Tensor], given: dict[str, Any]) -> dict[str, Any]:
            model = _encoder(given)
            parameters = dict(model.named_parameters())
            answered(function, sd, model)
            now = dict(model.named_parameters())
            if "damage" in given:
                return _refused(function, _damaged(sd, **given["damage"]), _encoder(given))
            lies = {tensor.untyped_storage().data_ptr() for tensor in sd.values()}
            return {
                "weights": _values(now),
                "replaced": [name for name, parameter in parameters.items() if now.get(name) is not parameter],
                "shared": [name for name, parameter in now.items() if parameter.untyped_storage().data_ptr() in lies],
                "frozen": [name for name, parameter in now.items() if not parameter.requires_grad],
            }

        return staged


def _refused(function: Callable, sd: dict[str, Tensor], model: nn.Module) -> dict[str, Any]:
    """Whether damaged weights were refused; any other exception goes on its way."""
    try:
        answered(function, sd, model)
    except NotImplementedError:
        raise
    except REFUSALS:
        return {"refused": True}
    return {"refused": False}


def _damaged(sd: dict[str, Tensor], without: Iterable[str], put: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in sd.items() if name not in without} | put


def _classifier(layers: int) -> nn.Module:
    home = import_module(HOME)
    return home.SmallClassifier(home.SmallEncoder(VOCABULARY, D_MODEL, D_FF, layers, LONGEST), CLASSES)


class _Stack(nn.Sequential):
    """Layers that have numbers for names, from 0 to 10, and beside them a parameter that belongs to no layer."""

    def __init__(self) -> None:
        layers = [nn.Linear(D_MODEL, D_MODEL) if place % 2 else nn.LayerNorm(D_MODEL) for place in range(10)]
        super().__init__(nn.Embedding(VOCABULARY, D_MODEL), *layers)
        self.factor = nn.Parameter(torch.ones(D_MODEL))

    def forward(self, input: Tensor) -> Tensor:
        """ids (B, T) -> (B, D)."""
        return (super().forward(input) * self.factor).mean(dim=1)


def _encoder(given: dict[str, Any]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        model = import_module(HOME).SmallEncoder(*given["sizes"]).to(wire.DTYPES[given["dtype"]])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(given["start"])
    return model


def _values(parameters: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in parameters.items()}


def _changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> list[str]:
    return [
        name
        for name, value in before.items()
        if value.dtype != after[name].dtype or not torch.equal(value, after[name])
    ]


def _as_names(returned: Any) -> Any:
    """A collection of texts as a list of them; anything else as it is."""
    if isinstance(returned, (str, bytes, dict, Tensor, nn.Module)) or not isinstance(returned, Iterable):
        return returned
    return [name for name, _ in zip(returned, range(MOST), strict=False)]


MODEL_STAGES = {"freezing": Freezing, "loading": Loading}
