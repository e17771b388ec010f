"""Values across a socket between the process that holds a learner's code and the process that judges it.

A message is a length-prefixed JSON header followed by the raw bytes of its tensors. Nothing is ever unpickled, so
neither side can make the other run code; every size is checked before it is believed. What does not travel, for
whatever reason, arrives as an `Opaque` that says so: a learner's value may be anything, and must never end the process
that it is in.
"""

import json
import math
import socket
import struct
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy
import torch

from autograder.inside.escaping import escaped
from autograder.inside.model_proxy import ModelProxy, Proxy, in_mode, parts_of

MAX_HEADER_BYTES = 1 << 20  # a nested list of so many numbers already takes seconds to compare
MAX_BODY_BYTES = 8 << 20  # the largest right result of the catalogue has 7,000 numbers, the largest question 120,000
MAX_DEPTH = 8
MAX_AXES = 8
MAX_TEXT = 100_000  # characters: a whole cell travels
MAX_DESCRIPTION = 200
UNREAD = "something that a check cannot read"
OPAQUE = ("opaque", "layout", "large")  # what stands for a value that does not travel
ROOM, TENSOR_ROOM = 24, 256  # bytes of a header that a value needs in addition to its text, and at most for a tensor
RECORDS = {("transformer_ref.config", "ModelConfig")}  # classes whose fields travel: module and name
NUMPY_PLAIN = (numpy.bool_, numpy.int32, numpy.int64)  # travel as a bool and an int; a float64 is a float by itself
MAX_DIRECT = 4096  # numbers or items of what is copied without a message
PATIENCE = 0.1  # seconds between two looks at a peer that has not answered

DTYPES = {
    name: getattr(torch, name)
    for name in (
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
    )
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class WireError(Exception):
    """A message that is malformed, too large, or of a type that cannot be sent."""


class Opaque:
    """Placeholder for a value that cannot be sent; only its description arrives.

    kind: "layout" for a tensor that is not strided, "large" for a value that is too large, else "opaque".
    """

    def __init__(self, description: str, kind: str = "opaque") -> None:
        self.description, self.kind = description[:MAX_DESCRIPTION] or UNREAD, kind

    def __repr__(self) -> str:
        return f"<{self.description}>"


def encode(value: Any, proxies: list[Proxy] | None = None) -> bytes:
    """Bytes of one message. Callables and modules become numbered proxies when `proxies` is a list to collect them in.

    A value that is nested too deeply, too large, or of a type that cannot be sent is replaced by an `Opaque`. Raises
    nothing except a KeyboardInterrupt from outside.
    """
    encoder = _Encoder(proxies)
    tree = encoder.node(value, 0)
    header = json.dumps([tree, [len(buffer) for buffer in encoder.buffers]]).encode()
    body = b"".join(encoder.buffers)
    return struct.pack("<II", len(header), len(body)) + header + body


def decode(header: bytes, body: bytes, make_proxy: Callable[[int], Proxy] | None = None) -> Any:
    """The value of one message. Raises WireError for anything that `encode` would not have written."""
    try:
        tree, lengths = json.loads(header)
    except (ValueError, TypeError, RecursionError) as error:
        raise WireError("message: header is not readable") from error
    if (
        not isinstance(lengths, list)
        or not all(type(n) is int and n >= 0 for n in lengths)
        or sum(lengths) != len(body)
    ):
        raise WireError("message: tensor sizes do not add up")
    buffers, start = [], 0
    for length in lengths:
        buffers.append(body[start : start + length])
        start += length
    try:
        return _decode_node(tree, buffers, make_proxy, 0)
    except WireError:
        raise
    except Exception as error:  # a form that none of the checks foresaw, such as a shape whose product overflows
        raise WireError(f"message: cannot be decoded ({type(error).__name__})") from error


def copy(value: Any, proxies: list[Proxy] | None = None, make_proxy: Callable[[int], Proxy] | None = None) -> Any:
    """The value as it would arrive at the other end, so that judging in one process equals judging in two."""
    try:
        return _copied(value, 0)
    except (_Indirect, RuntimeError):
        pass
    message = encode(value, proxies)
    header_length, _ = struct.unpack("<II", message[:8])
    return decode(message[8 : 8 + header_length], message[8 + header_length :], make_proxy)


PLAIN = {bool, float, type(None)}  # what is its own copy


class _Indirect(Exception):
    """The value is copied by encoding and decoding."""


def _copied(value: Any, depth: int) -> Any:
    """The result of `decode(encode(value))` without the message, for small values of exact built-in types."""
    kind = type(value)
    if value is None or kind is bool or kind is float or (kind is int and _is_small(value)):
        return value
    if kind is str and len(value) <= MAX_DESCRIPTION:
        return printable(value)
    if kind is torch.Tensor and value.layout is torch.strided and not value.is_nested and not value.is_meta:
        if value.dtype in DTYPE_NAMES and value.dim() <= MAX_AXES and max(value.numel(), *value.shape, 0) <= MAX_DIRECT:
            return _copied_tensor(value.detach())
    elif depth < MAX_DEPTH and kind in (list, tuple) and len(value) <= MAX_DIRECT:
        kinds = set(map(type, value))
        if kinds <= PLAIN or (kinds == {int} and -(1 << 63) < min(value) and max(value) < 1 << 63):
            return kind(value)
        return kind([_copied(item, depth + 1) for item in value])
    elif depth < MAX_DEPTH and kind is dict and len(value) <= MAX_DIRECT and all(map(_is_plain, value)):
        return {_copied(key, depth): _copied(item, depth + 1) for key, item in value.items()}
    raise _Indirect


def _copied_tensor(tensor: torch.Tensor) -> torch.Tensor:
    turned = tensor.dim() >= 2 and not tensor.is_contiguous() and tensor.mT.is_contiguous()
    stored = (tensor.mT if turned else tensor).resolve_neg()
    numbers = stored.view(torch.int16) if stored.dtype is torch.bfloat16 else stored
    made = torch.from_numpy(numbers.numpy().copy(order="C")).view(stored.dtype)
    return made.mT if turned else made


class Channel:
    """Messages over a connected stream socket.

    watch: called about every `PATIENCE` seconds while waiting for the peer; an exception that it raises ends the wait.
    Without it there is no time limit.
    """

    def __init__(self, connection: socket.socket, watch: Callable[[], None] | None = None) -> None:
        self._socket, self._watch, self._looked = connection, watch, time.monotonic()
        self.received = [0, 0]  # bytes of headers and of bodies
        connection.settimeout(PATIENCE if watch else None)

    def send(self, value: Any, proxies: list[Proxy] | None = None) -> None:
        """Send one message. Raises OSError if the peer has closed the connection."""
        message = memoryview(encode(value, proxies))
        sent = 0
        while sent < len(message):
            sent += self._waiting(partial(self._socket.send, message[sent:]))

    def receive(self, make_proxy: Callable[[int], Proxy] | None = None) -> Any:
        """The next message. Raises WireError if it is malformed, EOFError if the peer has closed the connection."""
        header_length, body_length = struct.unpack("<II", self._read(8))
        if header_length > MAX_HEADER_BYTES or body_length > MAX_BODY_BYTES:
            raise WireError("message: larger than allowed")
        self.received = [self.received[0] + header_length, self.received[1] + body_length]
        return decode(self._read(header_length), self._read(body_length), make_proxy)

    def close(self) -> None:
        self._socket.close()

    def _read(self, length: int) -> bytes:
        received = bytearray()
        while len(received) < length:
            part = self._waiting(partial(self._socket.recv, min(1 << 20, length - len(received))))
            if not part:
                raise EOFError("the other side closed the connection")
            received += part
        return bytes(received)

    def _waiting(self, step: Callable[[], Any]) -> Any:
        while True:
            if self._watch and time.monotonic() - self._looked >= PATIENCE:  # a busy peer is looked at too
                self._looked = time.monotonic()
                self._watch()
            try:
                return step()
            except TimeoutError:
                continue


class _Encoder:
    """Builds the tree of one message, within its size limit.

    A learner's value may misreport its type, raise from any method, or be infinite; only methods of the built-in types
    themselves are called on it.
    """

    def __init__(self, proxies: list[Proxy] | None) -> None:
        self.buffers: list[bytes] = []
        self._proxies = proxies
        self._header, self._body = MAX_HEADER_BYTES - 2 * TENSOR_ROOM, MAX_BODY_BYTES

    def node(self, value: Any, depth: int) -> dict:
        """The value as a tree of plain JSON; its bytes are added to `buffers`."""
        try:
            if depth > MAX_DEPTH:
                return self._opaque(f"a value nested more than {MAX_DEPTH} levels deep")
            return self._tensor(value) if isinstance(value, torch.Tensor) else self._plain(value, depth)
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a learner's object does when it is looked at
            return self._opaque(_type_name(value))

    def _plain(self, value: Any, depth: int) -> dict:
        kind = type(value)
        if value is None or kind is bool:
            return self._said("value", value)
        if any(kind is plain for plain in NUMPY_PLAIN):
            return self._said("value", value.item())
        if issubclass(kind, torch.Generator):
            return {"generator": self._tensor(torch.Generator.get_state(value))}
        if issubclass(kind, bytes):
            return self._bytes(bytes.__getitem__(value, slice(None)))
        if issubclass(kind, str):
            return self._said("value", str.__str__(value)[:MAX_TEXT])
        if issubclass(kind, int):
            number = int.__pos__(value)
            small = -(1 << 63) < number < 1 << 63
            return self._said("value", number) if small else self._opaque("an integer beyond 64 bits")
        if issubclass(kind, float):
            number = float.__pos__(value)
            return self._said("float", number.hex() if math.isfinite(number) else repr(number))
        if issubclass(kind, (list, tuple)):
            items = (tuple if issubclass(kind, tuple) else list).__iter__(value)
            return self._collection("tuple" if issubclass(kind, tuple) else "list", items, depth)
        if issubclass(kind, dict):
            return self._collection("dict", iter(list(dict.items(value))), depth)
        if kind is Opaque:
            return self._opaque(value.description, value.kind if value.kind in OPAQUE else OPAQUE[0])
        if kind is ModelProxy:
            return self._said("value", f"a model in {'training' if value.training else 'evaluation'} mode")
        if (kind.__module__, kind.__qualname__) in RECORDS:
            fields = self._collection("dict", iter(list(vars(value).items())), depth)
            return {"record": [kind.__module__, kind.__qualname__, fields]}
        if self._proxies is not None and issubclass(kind, torch.nn.Module):
            self._proxies.append(in_mode(value))
            number = len(self._proxies) - 1
            self._header -= ROOM
            return {"model": [number, value.training, self._collection("dict", iter(parts_of(value).items()), depth)]}
        if self._proxies is not None and callable(value):
            self._proxies.append(value)
            return self._said("proxy", len(self._proxies) - 1)
        return self._opaque(_type_name(value))

    def _collection(self, kind: str, items: Iterator[Any], depth: int) -> dict:
        sent: list[Any] = []
        before = self._header, self._body, len(self.buffers)
        self._header -= ROOM
        for item in items:
            if kind == "dict":
                sent.append([self._key(item[0], depth), self.node(item[1], depth + 1)])
            else:
                sent.append(self.node(item, depth + 1))
            if self._header < 0:
                if depth <= 1:  # a part of a message gives its room back; further down that could take for ever
                    self._header, self._body = before[:2]
                    del self.buffers[before[2] :]
                return self._opaque(f"a {kind} of more than a check reads", "large")
        return {kind: sent}

    def _key(self, key: Any, depth: int) -> Any:
        if type(key) is not str and _is_plain(key):
            return self.node(key, depth + 1)
        try:
            text = str.__str__(str(key))[:MAX_TEXT]
        except KeyboardInterrupt:
            raise
        except BaseException:  # a learner's class
            text = _type_name(key)
        return self._said("value", text).get("value", "")

    def _tensor(self, tensor: torch.Tensor) -> dict:
        if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
            return self._opaque("an uninitialized parameter")
        with torch._C.DisableTorchFunctionSubclass():  # a subclass may answer anything about itself
            tensor = torch.Tensor.detach(tensor)
            if type(tensor) is not torch.Tensor:
                tensor = tensor.as_subclass(torch.Tensor)
        if tensor.is_nested or tensor.is_meta:
            return self._opaque(f"a {'nested' if tensor.is_nested else 'meta'} tensor", "layout")
        if tensor.layout is not torch.strided:
            return self._opaque(f"a {str(tensor.layout).removeprefix('torch.').removeprefix('_')} tensor", "layout")
        if tensor.dtype not in DTYPE_NAMES:
            return self._opaque(f"a {str(tensor.dtype).removeprefix('torch.')} tensor")
        if tensor.dim() > MAX_AXES:
            return self._opaque(f"a tensor of {tensor.dim()} axes")
        size = tensor.numel() * tensor.itemsize
        if size > self._body:  # asked before it is laid out: an expanded tensor may say that it is of any size
            return self._opaque(f"a tensor of {size / (1 << 20):,.0f} MiB, which is more than a check reads", "large")
        if max(tensor.shape, default=0) > MAX_BODY_BYTES:
            return self._opaque(f"a tensor of shape {tuple(tensor.shape)}")
        # A transposed tensor travels as such, so a probe can hand over a non-contiguous input.
        turned = tensor.dim() >= 2 and not tensor.is_contiguous() and tensor.mT.is_contiguous()
        stored = tensor.mT if turned else tensor
        content = self._bytes(_laid_out(stored) if size else b"")
        return {"tensor": [DTYPE_NAMES[tensor.dtype], list(stored.shape), content["bytes"], turned]}

    def _bytes(self, content: bytes) -> dict:
        if len(content) > self._body:
            return self._opaque(f"{len(content) >> 20} MiB of bytes, which is more than a check reads", "large")
        self._body -= len(content)
        self._header -= TENSOR_ROOM
        self.buffers.append(content)
        return {"bytes": len(self.buffers) - 1}

    def _said(self, kind: str, content: Any) -> dict:
        self._header -= ROOM + len(json.dumps(content))
        return {kind: content} if self._header > 0 else {"opaque": ""}

    def _opaque(self, description: str, kind: str = "opaque") -> dict:
        return self._said(kind, description[:MAX_DESCRIPTION])


def _laid_out(tensor: torch.Tensor) -> bytes:
    """The numbers in order, whatever the strides; done by NumPy, since torch may return another order."""
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    return (tensor.view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor).numpy().tobytes()


def _type_name(value: Any) -> str:
    try:
        return f"{type(value).__module__}.{type(value).__qualname__}"
    except Exception:  # a metaclass of the learner's
        return "an object"


def _decode_node(node: Any, buffers: list[bytes], make_proxy: Callable[[int], Proxy] | None, depth: int) -> Any:
    if depth > MAX_DEPTH + 1 or not isinstance(node, dict) or len(node) != 1:
        raise WireError("message: malformed value")
    ((kind, content),) = node.items()
    if kind == "tensor":
        return _decode_tensor(content, buffers)
    if kind == "bytes" and type(content) is int and 0 <= content < len(buffers):
        return buffers[content]
    if kind == "generator" and isinstance(content, dict) and set(content) == {"tensor"}:
        return _decode_generator(_decode_tensor(content["tensor"], buffers))
    if kind == "value" and isinstance(content, str):
        return printable(content[:MAX_TEXT])
    if kind == "value" and (content is None or isinstance(content, bool) or _is_small(content)):
        return content
    if kind == "float" and isinstance(content, str):
        try:
            return float.fromhex(content)
        except (ValueError, OverflowError) as error:
            raise WireError("message: malformed number") from error
    if kind in ("tuple", "list") and isinstance(content, list):
        items = [_decode_node(item, buffers, make_proxy, depth + 1) for item in content]
        return tuple(items) if kind == "tuple" else items
    if (
        kind == "dict"
        and isinstance(content, list)
        and all(isinstance(pair, list) and len(pair) == 2 for pair in content)
    ):
        return {_decode_key(key, depth): _decode_node(item, buffers, make_proxy, depth + 1) for key, item in content}
    if kind == "proxy" and make_proxy is not None and type(content) is int:
        return make_proxy(content)
    if kind == "model" and make_proxy is not None and isinstance(content, list) and len(content) == 3:
        number, training, parts = content
        if type(number) is int and type(training) is bool:
            return ModelProxy(make_proxy(number), training, _decode_node(parts, buffers, make_proxy, depth))
    if kind == "record" and isinstance(content, list) and len(content) == 3:
        return _decode_record(*content, buffers, depth)
    if kind in OPAQUE and isinstance(content, str):
        return Opaque(escaped(printable(content[:MAX_DESCRIPTION])), kind)
    raise WireError("message: unknown kind of value")


def _decode_record(module: Any, name: Any, fields: Any, buffers: list[bytes], depth: int) -> Any:
    """Construct a value of a known class from its fields, which the class validates."""
    if not (isinstance(module, str) and isinstance(name, str) and (module, name) in RECORDS):
        raise WireError("message: unknown kind of record")
    values = _decode_node(fields, buffers, None, depth + 1)
    try:
        return getattr(import_module(module), name)(**values)
    except (TypeError, ValueError) as error:
        raise WireError("message: a record's fields do not fit it") from error


def _decode_key(key: Any, depth: int) -> Any:
    decoded = _decode_node(key, [], None, depth + 1) if isinstance(key, dict) else key
    return decoded if type(decoded) is not str and _is_plain(decoded) else printable(str(decoded)[:MAX_TEXT])


def _is_plain(key: Any) -> bool:
    """Whether the key of a dictionary is sent as it is, and not as its text; a tuple of a few such keys is, too."""
    if type(key) is tuple:
        return len(key) <= MAX_AXES and all(type(item) is not tuple and _is_plain(item) for item in key)
    return key is None or type(key) in (str, bool, float) or (type(key) is int and _is_small(key))


def _is_small(content: Any) -> bool:
    return isinstance(content, int) and -(1 << 63) < content < 1 << 63


def printable(text: str) -> str:
    """The text with lone surrogates replaced, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _decode_tensor(content: Any, buffers: list[bytes]) -> torch.Tensor:
    try:
        name, shape, index, turned = content
        dtype = DTYPES[name]
        sizes_fit = len(shape) <= MAX_AXES and all(type(size) is int and 0 <= size <= MAX_BODY_BYTES for size in shape)
        buffer = buffers[index] if type(index) is int and index >= 0 else None
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise WireError("message: malformed tensor") from error
    if buffer is None or not sizes_fit or math.prod(shape) * dtype.itemsize != len(buffer):
        raise WireError("message: a tensor's bytes do not fit its shape")
    if not buffer:
        return torch.empty(shape, dtype=dtype)
    raw = torch.frombuffer(bytearray(buffer), dtype=torch.uint8)
    # A bool is made from its byte, since a byte that is neither 0 nor 1 would be a bool that is neither.
    tensor = (raw.ne(0) if dtype is torch.bool else raw.view(dtype)).reshape(shape)
    return tensor.mT if turned is True and tensor.dim() >= 2 else tensor


def _decode_generator(state: torch.Tensor) -> torch.Generator:
    generator = torch.Generator()
    try:
        generator.set_state(state)
    except (RuntimeError, TypeError) as error:
        raise WireError("message: malformed state of a generator") from error
    return generator
