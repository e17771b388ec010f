"""Values across a socket between the process that holds a learner's code and the process that judges it.

A message is a length-prefixed JSON header followed by the raw bytes of its tensors. Nothing is ever unpickled, so
neither side can make the other run code; every size is checked before it is believed.
"""

import json
import math
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

MAX_HEADER_BYTES = 4 << 20
MAX_BODY_BYTES = 64 << 20
MAX_DEPTH = 8
MAX_AXES = 8
MAX_TEXT = 20_000
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

Proxy = Callable[..., Any]


class WireError(Exception):
    """A message that is malformed, too large, or of a kind that does not travel."""


class Opaque:
    """Stands for a value that cannot travel; only its description arrives."""

    def __init__(self, description: str) -> None:
        self.description = description[:200]

    def __repr__(self) -> str:
        return f"<{self.description}>"


def encode(value: Any, proxies: list[Proxy] | None = None) -> bytes:
    """Bytes of one message. Callables become numbered proxies when `proxies` is a list to collect them in.

    Raises WireError when the value is nested too deeply or is too large.
    """
    buffers: list[bytes] = []
    tree = _encode_node(value, buffers, proxies, 0)
    header = json.dumps([tree, [len(buffer) for buffer in buffers]]).encode()
    body = b"".join(buffers)
    if len(header) > MAX_HEADER_BYTES or len(body) > MAX_BODY_BYTES:
        raise WireError(
            f"message: expected at most {MAX_BODY_BYTES >> 20} MiB, got {(len(header) + len(body)) >> 20} MiB"
        )
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
    return _decode_node(tree, buffers, make_proxy, 0)


def copy(value: Any, proxies: list[Proxy] | None = None, make_proxy: Callable[[int], Proxy] | None = None) -> Any:
    """The value as it would arrive at the other end, so that judging in one process equals judging across two."""
    message = encode(value, proxies)
    header_length, _ = struct.unpack("<II", message[:8])
    return decode(message[8 : 8 + header_length], message[8 + header_length :], make_proxy)


class Channel:
    """Messages over a connected stream socket.

    watch: called about every `PATIENCE` seconds while the peer keeps this side waiting; what it raises ends the wait.
    Without it a wait has no end.
    """

    def __init__(self, connection: socket.socket, watch: Callable[[], None] | None = None) -> None:
        self._socket, self._watch, self._looked = connection, watch, time.monotonic()
        connection.settimeout(PATIENCE if watch else None)

    def send(self, value: Any, proxies: list[Proxy] | None = None) -> None:
        """Send one message. Raises WireError when it does not travel, OSError when the peer is gone."""
        message = memoryview(encode(value, proxies))
        sent = 0
        while sent < len(message):
            sent += self._waiting(partial(self._socket.send, message[sent:]))

    def receive(self, make_proxy: Callable[[int], Proxy] | None = None) -> Any:
        """The next message. Raises WireError when it is malformed, EOFError when the peer is gone."""
        header_length, body_length = struct.unpack("<II", self._read(8))
        if header_length > MAX_HEADER_BYTES or body_length > MAX_BODY_BYTES:
            raise WireError("message: larger than allowed")
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


def _encode_node(value: Any, buffers: list[bytes], proxies: list[Proxy] | None, depth: int) -> dict:
    if depth > MAX_DEPTH:
        raise WireError(f"value: expected at most {MAX_DEPTH} levels of nesting")
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value, buffers)
    if isinstance(value, torch.Generator):
        return {"generator": _encode_tensor(value.get_state(), buffers)}
    if value is None or isinstance(value, bool):
        return {"value": value}
    if isinstance(value, bytes):
        buffers.append(value)
        return {"bytes": len(buffers) - 1}
    if isinstance(value, str):
        return {"value": str.__str__(value)[:MAX_TEXT]}
    if isinstance(value, int):
        return {"value": int(value)} if abs(value) < 1 << 63 else {"opaque": "an integer beyond 64 bits"}
    if isinstance(value, float):
        return {"float": float(value).hex() if math.isfinite(value) else repr(float(value))}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encode_node(item, buffers, proxies, depth + 1) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), _encode_node(item, buffers, proxies, depth + 1)] for key, item in value.items()]}
    if proxies is not None and callable(value):
        proxies.append(value)
        return {"proxy": len(proxies) - 1}
    return {"opaque": f"{type(value).__module__}.{type(value).__qualname__}"}


def _encode_tensor(tensor: torch.Tensor, buffers: list[bytes]) -> dict:
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return {"opaque": "an uninitialized parameter"}
    with torch._C.DisableTorchFunctionSubclass():  # a subclass may answer anything about itself
        tensor = torch.Tensor.detach(tensor).as_subclass(torch.Tensor)
    if tensor.is_nested or tensor.is_meta:
        return {"opaque": f"a {'nested' if tensor.is_nested else 'meta'} tensor"}
    if tensor.dtype not in DTYPE_NAMES or tensor.layout is not torch.strided or tensor.dim() > MAX_AXES:
        return {"opaque": f"a tensor of dtype {tensor.dtype}, layout {tensor.layout}"}
    tensor = tensor.cpu().resolve_neg()
    # A transposed tensor travels as such, so a probe can hand over a non-contiguous input.
    turned = tensor.dim() >= 2 and not tensor.is_contiguous() and tensor.mT.is_contiguous()
    stored = (tensor.mT if turned else tensor).contiguous()
    buffers.append(stored.reshape(-1).view(torch.uint8).numpy().tobytes() if stored.numel() else b"")
    return {"tensor": [DTYPE_NAMES[tensor.dtype], list(stored.shape), len(buffers) - 1, turned]}


def _decode_node(node: Any, buffers: list[bytes], make_proxy: Callable[[int], Proxy] | None, depth: int) -> Any:
    if depth > MAX_DEPTH or not isinstance(node, dict) or len(node) != 1:
        raise WireError("message: malformed value")
    ((kind, content),) = node.items()
    if kind == "tensor":
        return _decode_tensor(content, buffers)
    if kind == "bytes" and type(content) is int and 0 <= content < len(buffers):
        return buffers[content]
    if kind == "generator" and isinstance(content, dict) and set(content) == {"tensor"}:
        return _decode_generator(_decode_tensor(content["tensor"], buffers))
    if kind == "value" and isinstance(content, str):
        return printable(content)
    if kind == "value" and (content is None or isinstance(content, (bool, int))):
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
        return {printable(str(key)): _decode_node(item, buffers, make_proxy, depth + 1) for key, item in content}
    if kind == "proxy" and make_proxy is not None and type(content) is int:
        return make_proxy(content)
    if kind == "opaque" and isinstance(content, str):
        return Opaque(printable(content))
    raise WireError(f"message: unknown kind of value {str(kind)[:20]!r}")


def printable(text: str) -> str:
    """The text with halves of surrogate pairs replaced, which no file could hold."""
    return text.encode("utf-8", "replace").decode()


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
