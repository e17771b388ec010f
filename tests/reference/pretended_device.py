"""A pretended CUDA device for machines without one: it shows which lines would fail or wait on a GPU.

    with pretended_device() as log:
        model.to("cuda") ...
    assert log.waits() == 0

A tensor of this device is a `DeviceTensor`, a wrapper around an ordinary tensor. Its `.device` is cuda:0. Every
operation on it passes `DeviceTensor.__torch_dispatch__`, which inspects it and then computes it on the CPU: the values
are real, so decoding ends where it should and training learns.

An operation that mixes the device with an ordinary tensor raises RuntimeError, as on CUDA. Allowed, as on CUDA, are a
tensor without axes, an index, and `copy_`. The log counts the rest, each with the line that asked for it:

    wait    the CPU must wait for the device: .item(), bool(), .tolist(), .cpu(), nonzero, an index by a boolean mask
    copy    the device is sent memory that is not page-locked, which waits as well; an index by a Python list is one,
            and so is a number written at an index of tensors, x[index] = 3
    kernel  an operation that a GPU would be sent; views are none
    mask    a call of `scaled_dot_product_attention` with a mask, for which the flash kernel cannot be chosen
"""

import collections
import contextlib
import os
import traceback
import weakref
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.nn.utils import clip_grad
from torch.optim import optimizer as torch_optimizer
from torch.overrides import TorchFunctionMode

from transformer_ref import machine

DEVICE = torch.device("cuda", 0)
PACKAGE = f"{os.sep}transformer_ref{os.sep}"
VIEWS = {
    *("view", "_unsafe_view", "_reshape_alias", "view_as", "alias", "detach", "lift_fresh", "as_strided"),
    *("transpose", "t", "mT", "permute", "expand", "unsqueeze", "squeeze", "diagonal", "unfold"),
    *("slice", "select", "narrow", "split", "split_with_sizes", "unbind", "_fused_sdp_choice"),
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"),
}
WAITING = {
    *("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "bincount"),
    *("unique_dim", "_unique2", "unique_consecutive", "repeat_interleave"),
    "multinomial",  # checks its probabilities first
}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
NOT_EVEN_A_NUMBER = {"index_select", "cat", "stack", "gather", "scatter", "mm", "bmm"}  # must not come from the CPU


class Log:
    """The log of a pretended device: each kind of event with the lines that caused it and their counts."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Clear the log."""
        self._lines: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.kernels: collections.Counter[str] = collections.Counter()

    def add(self, kind: str, what: str) -> None:
        """Count one more wait, copy or mask."""
        self._lines[kind][f"{what} in {asking_line()}"] += 1

    def waits(self) -> int:
        """How often the CPU waited for the device, copies included."""
        return self.count("wait") + self.count("copy")

    def count(self, kind: str) -> int:
        """How often something of one kind happened."""
        return sum(self._lines[kind].values())

    def __str__(self) -> str:
        counted = [f"{count} x {kind}: {line}" for kind, of in self._lines.items() for line, count in of.most_common()]
        return "\n".join([f"{sum(self.kernels.values())} kernels", *counted])


def asking_line() -> str:
    """Return the innermost line of the package that is being run, or "a test"."""
    frames = [frame for frame in traceback.extract_stack() if PACKAGE in frame.filename]
    return f"{frames[-1].filename.split(PACKAGE)[-1]}:{frames[-1].lineno}  {frames[-1].line}" if frames else "a test"


LOG = Log()


class DeviceTensor(torch.Tensor):
    """A tensor of the pretended device. raw: the ordinary tensor that holds its values."""

    raw: torch.Tensor
    device = property(lambda self: DEVICE)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> "DeviceTensor":
        assert type(raw) is torch.Tensor, f"raw: expected an ordinary tensor, got a {type(raw).__name__}"
        layout = dict(strides=raw.stride(), storage_offset=raw.storage_offset(), dtype=raw.dtype, device="cpu")
        self = torch.Tensor._make_wrapper_subclass(cls, raw.shape, requires_grad=False, **layout)
        self.raw = raw
        return self

    def __repr__(self) -> str:
        return f"DeviceTensor({self.raw!r})"

    def __deepcopy__(self, memory: dict) -> "DeviceTensor":
        if id(self) not in memory:
            copy = DeviceTensor(self.raw.detach().clone()).requires_grad_(self.requires_grad)
            if getattr(self, "_is_param", False):
                copy._is_param = True
            memory[id(self)] = copy
        return memory[id(self)]

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        named, name = named or {}, function._schema.name.split("::")[1]
        tensors: list[torch.Tensor] = []
        raw_arguments, raw_named = _unwrapped(arguments, tensors), _unwrapped(named, tensors)
        _inspect(name, arguments, named, [each for each in tensors if not isinstance(each, DeviceTensor)])
        if name not in VIEWS:
            LOG.kernels[name] += 1
        given = {id(each.raw if isinstance(each, DeviceTensor) else each): each for each in tensors}
        return _wrapped(function(*raw_arguments, **raw_named), given)


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, DeviceTensor)


def _unwrapped(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Return the arguments of an operation with ordinary tensors, and add those that were there to `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return value.raw if isinstance(value, DeviceTensor) else value
    if isinstance(value, (list, tuple)):
        return type(value)([_unwrapped(each, tensors) for each in value])
    return {name: _unwrapped(each, tensors) for name, each in value.items()} if isinstance(value, dict) else value


def _wrapped(value: Any, given: dict[int, torch.Tensor]) -> Any:
    """Return the result of an operation on the device; one in place returns the tensor that it was given."""
    if isinstance(value, torch.Tensor):
        return given[id(value)] if id(value) in given else DeviceTensor(value)
    return type(value)([_wrapped(each, given) for each in value]) if isinstance(value, (list, tuple)) else value


def _inspect(name: str, arguments: tuple, named: dict, from_cpu: list[torch.Tensor]) -> None:
    """Log what one operation costs; raise RuntimeError for ordinary tensors where the device allows none."""
    if name in WAITING:
        LOG.add("wait", name)
    if name in INDEXING:
        indices = [each for each in arguments[1] if each is not None]
        for each in indices:
            if each.dtype in (torch.bool, torch.uint8):
                LOG.add("wait", "an index by a boolean mask")
            elif not isinstance(each, DeviceTensor) and each.dim():
                LOG.add("copy", "an index from the CPU")
        if any(_is_plain(each) and not each.dim() for each in arguments[2:3]):
            LOG.add("copy", "a number from the CPU, written at an index")
        from_cpu = [each for each in from_cpu if all(each is not index for index in indices)]
        if not isinstance(arguments[0], DeviceTensor):
            _refuse(name, [arguments[0]])
    elif name == "copy_" and from_cpu:
        _log_copy(arguments, named)
        return
    elif name == "_to_copy":
        return
    if strange := [each for each in from_cpu if each.dim() or name in NOT_EVEN_A_NUMBER]:
        _refuse(name, strange)


def _log_copy(arguments: tuple, named: dict) -> None:
    """Log a `copy_` between CPU and device."""
    into, source = arguments[:2]
    is_async = bool(named.get("non_blocking") or arguments[2:3] == (True,))
    if not isinstance(into, DeviceTensor):
        LOG.add("wait", "copy_ to the CPU")
    elif not (is_async and is_page_locked(source)):
        LOG.add("copy", "copy_ to the device")


def _refuse(name: str, tensors: list[torch.Tensor]) -> None:
    shapes = ", ".join(str(tuple(each.shape)) for each in tensors)
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found cuda:0 and cpu: {name} with {shapes} of the CPU "
        f"in {asking_line()}"
    )


def is_page_locked(tensor: torch.Tensor) -> bool:
    """Whether a tensor came from `pin_memory`; a view of one counts as pageable."""
    return getattr(tensor, "pretends_to_be_page_locked", False)


_Generator = torch.Generator


class DeviceGenerator(_Generator):
    """Replaces `torch.Generator`: a generator of the pretended device, or an ordinary one."""

    device = property(lambda self: DEVICE)

    def __new__(cls, device: Any = "cpu") -> torch.Generator:
        return super().__new__(cls) if torch.device(device).type == "cuda" else _Generator(device)


class _MovedToDevice(torch.autograd.Function):
    """A copy to the device through which gradients come back."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        return DeviceTensor(x.detach().clone())

    @staticmethod
    def backward(ctx, gradient: DeviceTensor) -> torch.Tensor:
        return gradient.raw


class _PretendedDevice(TorchFunctionMode):
    """Intercepts torch's Python functions that name a device, and those that read a tensor's memory."""

    def __torch_function__(self, function, types, arguments=(), named=None):
        named, name = dict(named or {}), getattr(function, "__name__", "")
        first = arguments[0] if arguments else None
        if name in ("to", "cuda", "cpu") and isinstance(first, torch.Tensor):
            return _moved(name, first, arguments[1:], named)
        if isinstance(first, DeviceTensor) and name in ("tolist", "numpy", "__array__", "data_ptr"):
            return _read(name, first)
        if _is_plain(first) and name == "pin_memory":
            locked = first.clone()
            locked.pretends_to_be_page_locked = True
            return locked
        if name == "is_pinned" and _is_plain(first):
            return is_page_locked(first)
        if name == "scaled_dot_product_attention" and isinstance(first, DeviceTensor):
            if named.get("attn_mask") is not None or arguments[3:4] not in ((), (None,)):
                LOG.add("mask", name)
        if isinstance(first, DeviceTensor):
            _expect_device_generator(name, named)
        device = named.get("device")
        if device is None or name in ("manual_seed", "set_default_device"):
            return function(*arguments, **named)
        return _made(function, name, first, arguments, named)


def _made(function, name: str, first: Any, arguments: tuple, named: dict) -> Any:
    """Call a function that makes a tensor on a device."""
    wanted = torch.device(named["device"])
    if wanted.type == "cpu" and isinstance(first, DeviceTensor):
        return function(first.raw, *arguments[1:], **named)
    if wanted.type != "cuda":
        return function(*arguments, **named)
    if isinstance(first, DeviceTensor):  # such as zeros_like(x, device=...): it stays where x is
        return function(*arguments, **{**named, "device": None})
    _expect_device_generator(name, named)
    made = function(*arguments, **{**named, "device": "cpu"})
    if name in ("tensor", "as_tensor", "asarray"):
        LOG.add("copy", name)
    else:
        LOG.kernels[name] += 1
    return made if isinstance(made, DeviceTensor) else DeviceTensor(made.detach()).requires_grad_(made.requires_grad)


def _expect_device_generator(name: str, named: dict) -> None:
    if (generator := named.get("generator")) is not None and not isinstance(generator, DeviceGenerator):
        raise RuntimeError(f"Expected a 'cuda' device type for generator but found 'cpu' in {name}, {asking_line()}")


def _moved(name: str, x: torch.Tensor, arguments: tuple, named: dict) -> torch.Tensor:
    """Compute x.to(...), x.cuda() or x.cpu()."""
    named = dict(named)
    if name != "to":
        arguments, named["device"] = (), "cuda" if name == "cuda" else "cpu"
    device, dtype = named.get("device"), named.get("dtype")
    for each in arguments:
        if isinstance(each, torch.Tensor):  # x.to(other): where and what the other is
            device, dtype = "cuda" if isinstance(each, DeviceTensor) else "cpu", each.dtype
        elif isinstance(each, torch.dtype):
            dtype = each
        elif isinstance(each, (torch.device, str)):
            device = each
    wanted = None if device is None else torch.device(device).type
    if wanted == "cuda" and not isinstance(x, DeviceTensor):
        if not (named.get("non_blocking") and is_page_locked(x)):
            LOG.add("copy", "to(device)")
        x = _MovedToDevice.apply(x) if x.requires_grad else DeviceTensor(x.detach().clone())
    elif wanted == "cpu" and isinstance(x, DeviceTensor):
        LOG.add("wait", "to(cpu)")
        x = x.raw.detach().clone()
    copied = {"copy": True} if named.get("copy") else {}
    return x if dtype in (None, x.dtype) and not copied else torch.Tensor.to(x, dtype or x.dtype, **copied)


def _read(name: str, x: DeviceTensor) -> Any:
    """Call a function that reads the memory of a tensor without an operation of torch."""
    if name == "data_ptr":
        return x.raw.data_ptr()
    if name != "tolist":
        raise TypeError(f"can't convert cuda:0 device type tensor to numpy, in {asking_line()}. Use Tensor.cpu() first")
    LOG.add("wait", name)
    return x.raw.tolist()


# of each call of `module.to`, by the function that it hands to all modules: what it has moved, by the id of the old
_MOVED: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _apply(module: nn.Module, function, recurse: bool = True) -> nn.Module:
    """Replaces `nn.Module._apply`; parameters become new objects, a shared one becomes one new object."""
    moved = _MOVED.setdefault(function, {})
    for child in module.children() if recurse else ():
        child._apply(function)
    for name, old in module._parameters.items():
        if old is not None and id(old) not in moved:
            with torch.no_grad():
                new = function(old)
            moved[id(old)] = old, old if new is old else nn.Parameter(new.detach(), old.requires_grad)
        module._parameters[name] = None if old is None else moved[id(old)][1]
    for name, old in module._buffers.items():
        module._buffers[name] = None if old is None else function(old)
    return module


def _group_by_device_and_dtype(lists, with_indices: bool = False) -> dict:
    """Replaces the grouping that torch's optimizers and clipping do in C++."""
    groups: dict = {}
    for place, first in enumerate(lists[0]):
        of_group, places = groups.setdefault((first.device, first.dtype), ([[] for _ in lists], []))
        for group, given in zip(of_group, lists, strict=True):
            if given:
                group.append(given[place])
        places.append(place)
    return groups


_CHOICE = {name: machine.Choice(name, "fp32", "pretended") for name in ("precision", "muon")}


@contextlib.contextmanager
def pretended_device() -> Iterator[Log]:
    """A context in which the device "cuda" exists, with an empty log."""
    LOG.clear()
    patches = [
        mock.patch.object(nn.Module, "_apply", _apply),
        mock.patch.object(clip_grad, "_group_tensors_by_device_and_dtype", _group_by_device_and_dtype),
        mock.patch.object(clip_grad, "_has_foreach_support", lambda tensors, device: True),
        mock.patch.object(torch_optimizer, "_group_tensors_by_device_and_dtype", _group_by_device_and_dtype),
        mock.patch.object(torch, "Generator", DeviceGenerator),
        # a measurement multiplies matrices of a size for GPUs
        mock.patch.dict(machine._made, {(name, f"cuda{n}"): _CHOICE[name] for name in _CHOICE for n in ("", ":0")}),
        mock.patch.object(torch.cuda, "is_available", lambda: True),
        mock.patch.object(torch.cuda, "device_count", lambda: 1),
        mock.patch.object(torch.cuda, "get_device_name", lambda device=None: "pretended device"),
        # torch's optimizers would look for a graph that a true device records, where torch is built for one
        mock.patch.object(torch.accelerator, "current_accelerator", lambda check_available=False: None),
        mock.patch.object(torch.cuda, "synchronize", lambda device=None: LOG.add("wait", "synchronize")),
        # a wrapper cannot be made in inference mode; without gradients the values are the same
        mock.patch.object(torch.inference_mode, "__enter__", _enter_no_grad),
        mock.patch.object(torch.inference_mode, "__exit__", _exit_no_grad),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        stack.enter_context(_PretendedDevice())
        yield LOG


def _enter_no_grad(self) -> None:
    self.instead = torch.no_grad()
    self.instead.__enter__()


def _exit_no_grad(self, *error) -> None:
    self.instead.__exit__(*error)
