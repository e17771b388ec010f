"""The state of a model, whatever it is wrapped in: torch.compile, data parallel, an average of weights.

A wrapper puts a prefix before every name (`_orig_mod.`, `module.`). Saved under such names, a model is of no use
without the same wrapper, so everything that saves, loads, copies or exports a model looks through it here.
"""

import copy
from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

COMPILED = "_orig_mod"  # where torch.compile keeps the module
AROUND = "module"  # where DataParallel, DistributedDataParallel and AveragedModel keep it
COUNT = "n_averaged"  # what an AveragedModel saves besides


def unwrapped(model: object) -> Any:
    """Return the module inside any wrappers, or, if only parts are wrapped, a view of the same tensors.

    Anything but an nn.Module is returned unchanged.
    """
    if not isinstance(model, nn.Module):
        return model
    if any(_inside(module) is not None for module in model.modules()):
        return _without_wrappers(model, {})
    return model


def _inside(module: nn.Module) -> nn.Module | None:
    """Return the module inside a wrapper, None for any other module."""
    if COMPILED in module._modules:
        return module._modules[COMPILED]
    parallel = (nn.DataParallel, nn.parallel.DistributedDataParallel, AveragedModel)
    return module._modules[AROUND] if isinstance(module, parallel) else None


def _without_wrappers(module: nn.Module, known: dict[int, nn.Module]) -> nn.Module:
    while (inner := _inside(module)) is not None:
        module = inner
    if id(module) not in known:
        if not any(_inside(each) is not None for each in module.modules()):
            known[id(module)] = module
            return module
        twin = known[id(module)] = copy.copy(module)  # the same parameters, buffers and attributes
        twin._modules = {
            name: None if part is None else _without_wrappers(part, known) for name, part in module._modules.items()
        }
    return known[id(module)]


def plain_names(tensors: Mapping[str, Tensor], expected: Collection[str]) -> dict[str, Tensor]:
    """Return saved tensors under the names of an unwrapped model.

    expected: the names of the model that will be loaded. A file that was written with wrapped names is accepted; a
    prefix that the model itself has stays.
    """
    expected = set(expected)
    plain = {
        name if name in expected else ".".join(part for part in name.split(".") if part != COMPILED): tensor
        for name, tensor in tensors.items()
    }
    while not expected & set(plain) and plain:
        inner = {name: tensor for name, tensor in plain.items() if name != COUNT}
        if not all(name.startswith(AROUND + ".") for name in inner):
            break
        plain = {name.removeprefix(AROUND + "."): tensor for name, tensor in inner.items()}
    return plain


def parameters_of(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters by their names in the unwrapped model, each once: tied tables are one parameter."""
    return dict(unwrapped(model).named_parameters())


def buffers_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the buffers that are part of a model's state, by their names in the unwrapped model.

    Buffers with `persistent=False` are not among them.
    """
    found = {}
    for prefix, module in unwrapped(model).named_modules():
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set:
                found[f"{prefix}.{name}" if prefix else name] = buffer
    return found


def set_buffer(model: nn.Module, name: str, value: Tensor) -> None:
    """Replace a buffer by a copy of a tensor, on its device; the size may differ, as for a table that grows."""
    path, _, last = name.rpartition(".")
    module = unwrapped(model).get_submodule(path)
    module._buffers[last] = value.detach().clone().to(module._buffers[last].device)
