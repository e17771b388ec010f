"""Whatever an answer returns, its process lives: a value or words arrive, for every layout, dtype and container."""

import enum
import math
from collections import OrderedDict, UserList, defaultdict
from dataclasses import dataclass

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.inside import wire

ALL_DTYPES = sorted({each for each in vars(torch).values() if isinstance(each, torch.dtype)}, key=str)
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged")


@st.composite
def strided(draw):
    """A view of any strides into a small storage, of any size between nothing and astronomical where a stride is 0."""
    axes = draw(st.integers(0, 4))
    strides = draw(st.lists(st.integers(0, 7), min_size=axes, max_size=axes))
    shape = [draw(st.integers(0, 3)) for _ in strides]
    if 0 in strides and draw(st.booleans()):
        shape[strides.index(0)] = 10**10
    storage = torch.arange(64) % 5 - 2
    return storage, shape, strides, draw(st.integers(0, 3))


@settings(derandomize=True, deadline=None, max_examples=400)
@given(strided(), st.sampled_from(sorted(wire.DTYPES)))
def test_a_view_of_any_strides_arrives_with_its_values(view, dtype):
    storage, shape, strides, offset = view
    tensor = storage.to(wire.DTYPES[dtype]).as_strided(shape, strides, offset)
    arrived = wire.copy(tensor)
    if tensor.numel() * tensor.itemsize > wire.MAX_BODY_BYTES or max(shape, default=0) > wire.MAX_BODY_BYTES:
        assert isinstance(arrived, wire.Opaque) and "tensor" in arrived.description
    else:
        assert (arrived.dtype, arrived.shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(arrived, tensor.clone())


@pytest.mark.parametrize("axes", range(1, 5))
@pytest.mark.parametrize("dtype", sorted(wire.DTYPES))
def test_one_number_with_any_stride_arrives(axes, dtype):
    tensor = torch.ones(64, dtype=wire.DTYPES[dtype]).as_strided([1] * axes, list(range(3, 3 + axes)))
    assert torch.equal(wire.copy(tensor), tensor)


def test_the_first_column_of_one_row_arrives():
    assert torch.equal(wire.copy(torch.arange(5).reshape(1, 5).sort(dim=1).values[:, 0]), torch.tensor([0]))


def of_layout(layout: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    ones = torch.ones(shape, dtype=dtype)
    if layout == "jagged":
        return torch.nested.nested_tensor([ones, ones], layout=torch.jagged)
    if layout == "_mkldnn":
        return ones.to_mkldnn()
    sizes = {"blocksize": (1, 1)} if "bs" in layout else {}
    return ones.to_sparse(layout=getattr(torch, layout), **sizes) if layout.startswith("sparse") else ones


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.sampled_from(LAYOUTS),
    st.sampled_from(ALL_DTYPES),
    st.sampled_from([(), (0,), (1,), (3, 1), (1, 1), (2, 3), (2, 2, 2)]),
)
def test_every_layout_and_dtype_arrives_as_a_value_or_as_words(layout, dtype, shape):
    try:
        tensor = of_layout(layout, dtype, shape)
    except (RuntimeError, NotImplementedError, TypeError, IndexError):
        return  # torch makes no such tensor
    arrived = wire.copy({"result": tensor, "after": 1})
    assert arrived["after"] == 1
    if layout == "strided" and dtype in wire.DTYPE_NAMES:
        assert torch.equal(arrived["result"], tensor)
    else:
        assert isinstance(arrived["result"], wire.Opaque)
        assert "tensor" in arrived["result"].description


def by_message(value):
    message = wire.encode(value)
    length = int.from_bytes(message[:4], "little")
    return wire.decode(message[8 : 8 + length], message[8 + length :])


def same(one, other) -> bool:
    """Equal to the last bit, the type and the stride."""
    if isinstance(one, torch.Tensor):
        alike = type(one) is type(other) and (one.dtype, one.shape, one.stride()) == (
            other.dtype,
            other.shape,
            other.stride(),
        )
        return alike and torch.equal(one.nan_to_num(3), other.nan_to_num(3))
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and repr(one) == repr(other)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(strided(), st.sampled_from(sorted(wire.DTYPES)), st.booleans())
def test_a_copy_is_what_a_message_would_bring(view, dtype, turned):
    storage, shape, strides, offset = view
    tensor = storage.to(wire.DTYPES[dtype]).as_strided(shape, strides, offset)
    tensor = tensor.mT if turned and tensor.dim() > 1 else tensor
    value = {"with": (tensor, [1, True, None, "a\ud800", math.nan, -0.0, 2**63, {"b": tensor}])}
    assert same(wire.copy(value), by_message(value))


def leaked(transform):
    kept = []
    transform(lambda x: (kept.append(x), x.sum())[1])(torch.ones(3, 2))
    return kept[0]


def in_inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(2) * 3


class Unspeakable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise SystemExit("nothing is said")


class Elsewhere(torch.Tensor):
    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (2, 3))

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("nowhere")


TENSORS = {
    "negated": lambda: torch._neg_view(torch.ones(3)),
    "conjugated": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "imaginary part": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
    "meta": lambda: torch.ones(3, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "of vmap": lambda: leaked(torch.vmap),
    "of grad": lambda: leaked(torch.func.grad),
    "of inference": in_inference,
    "with gradient": lambda: torch.ones(3, requires_grad=True) * 2,
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "uninitialized": lambda: torch.nn.UninitializedParameter(),
    "twelve axes": lambda: torch.ones([1] * 12),
    "hostile subclass": lambda: torch.ones(2).as_subclass(Unspeakable),
    "wrapper subclass": lambda: Elsewhere(),
    "expanded": lambda: torch.ones(1).expand(10**10),
    "freed": lambda: (lambda tensor: (tensor.untyped_storage().resize_(0), tensor)[1])(torch.ones(4)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", TENSORS)
def test_a_strange_tensor_arrives_as_a_value_or_as_words(kind):
    tensor = TENSORS[kind]()
    arrived = wire.copy({"result": tensor, "after": 1})
    assert arrived["after"] == 1
    assert isinstance(arrived["result"], (torch.Tensor, wire.Opaque))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("negated", [-1, -1, -1]),
        ("imaginary part", [0, 0, 0]),
        ("of inference", [3, 3]),
        ("with gradient", [2, 2, 2]),
        ("a parameter", [1, 1]),
        ("hostile subclass", [1, 1]),
    ],
)
def test_a_tensor_of_plain_numbers_keeps_them(kind, values):
    assert wire.copy(TENSORS[kind]()).tolist() == values


@dataclass
class Pair:
    first: int
    second: int


class Raising:
    def __getattribute__(self, name):
        raise SystemExit(name)


class Disguised:
    __class__ = torch.Tensor


class OddMeta(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)


class OddType(metaclass=OddMeta):
    pass


def hostile(base: type, *content) -> object:
    """A value of a built-in type that exits from every method that Python lets it have."""

    def leave(self, *_):
        raise SystemExit("gone")

    names = (
        "__len__ __iter__ __getitem__ __contains__ items keys values __str__ __repr__ __int__ __index__ __float__ hex"
    )
    names += " __eq__ __bool__ __add__ __reversed__ __abs__ __lt__ __gt__ __hash__ encode __format__"
    return type("Hostile", (base,), dict.fromkeys(names.split(), leave))(*content)


def endless() -> list:
    value: list = []
    value.extend([value] * 12)
    return value


class Color(enum.IntEnum):
    RED = 3


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "another"


VALUES = {
    "a hostile list": (lambda: hostile(list, [1, 2]), [1, 2]),
    "a hostile tuple": (lambda: hostile(tuple, (1, 2)), (1, 2)),
    "a hostile dict": (lambda: hostile(dict, {"a": 1}), {"a": 1}),
    "a hostile text": (lambda: hostile(str, "text"), "text"),
    "a hostile int": (lambda: hostile(int, 5), 5),
    "a hostile float": (lambda: hostile(float, 0.5), 0.5),
    "a hostile bytes": (lambda: hostile(bytes, b"ab"), b"ab"),
    "an ordered dict": (lambda: OrderedDict(a=1), {"a": 1}),
    "a default dict": (lambda: defaultdict(int, a=1), {"a": 1}),
    "an enumeration": (lambda: Color.RED, 3),
    "a text that lies": (lambda: Name("itself"), "itself"),
    "a NumPy bool": (lambda: numpy.bool_(True), True),
    "a NumPy int64": (lambda: numpy.int64(7), 7),
    "a NumPy float64": (lambda: numpy.float64(0.25), 0.25),
    "infinity": (lambda: -math.inf, -math.inf),
    "half a pair": (lambda: "a\ud800", "a?"),
    "keys of other types": (lambda: {1 << 70: 1, ((),): 2, b"a": 3}, {str(1 << 70): 1, "((),)": 2, "b'a'": 3}),
    "a raising key": (lambda: {type("Key", (), {"__str__": lambda self: 1 / 0})(): 2}, None),
    "a NumPy array": (lambda: numpy.ones(3), None),
    "a NumPy float32": (lambda: numpy.float32(1), None),
    "a NumPy object array": (lambda: numpy.array([object()]), None),
    "a dataclass": (lambda: Pair(1, 2), None),
    "a generator": (lambda: (i for i in iter(int, 1)), None),
    "a user's list": (lambda: UserList([1]), None),
    "a set": (lambda: {1, 2}, None),
    "a huge int": (lambda: 10**5000, None),
    "the edge of 64 bits": (lambda: 1 << 63, None),
    "a complex number": (lambda: 1j, None),
    "one that raises": (Raising, None),
    "a disguise": (Disguised, None),
    "an odd type": (lambda: object.__new__(OddType), None),
    "a module": (lambda: torch.nn.Linear(2, 2), None),
    "a function": (lambda: len, None),
    "a million numbers": (lambda: list(range(1_000_000)), None),
    "a huge tensor": (lambda: torch.zeros(wire.MAX_BODY_BYTES + 1, dtype=torch.uint8), None),
    "huge bytes": (lambda: bytes(wire.MAX_BODY_BYTES + 1), None),
    "many tensors": (lambda: [torch.zeros(1 << 22)] * 6, None),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_strange_value_arrives_as_it_is_or_as_words(kind):
    make, wanted = VALUES[kind]
    arrived = wire.copy({"result": make(), "after": 1})
    assert arrived["after"] == 1
    if wanted is not None:
        assert arrived["result"] == wanted and type(arrived["result"]) is type(wanted)
    else:
        inside = arrived["result"]
        while isinstance(inside, (dict, list)):
            inside = next(iter(inside)) if isinstance(inside, dict) else inside[-1]
        assert isinstance(inside, (wire.Opaque, str))


def test_a_list_that_holds_itself_arrives_as_words():
    arrived = wire.copy({"before": [1], "result": endless(), "after": torch.ones(2)})
    assert arrived["before"] == [1] and arrived["after"].tolist() == [1, 1]
    assert isinstance(arrived["result"], wire.Opaque)


def test_a_list_that_holds_itself_once_arrives_down_to_some_depth():
    value: list = [1]
    value.append(value)
    arrived = wire.copy(value)
    for _ in range(wire.MAX_DEPTH):
        assert arrived[0] == 1
        arrived = arrived[1]
    arrived = arrived[0]
    assert isinstance(arrived, wire.Opaque) and "levels deep" in arrived.description


def test_a_value_too_large_leaves_room_for_what_comes_after():
    arrived = wire.copy({"inputs": (list(range(1_000_000)),), "result": torch.ones(2)})
    assert arrived["result"].tolist() == [1, 1]


def test_a_key_press_while_a_value_is_looked_at_is_not_swallowed():
    def press(self):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wire.encode({type("Key", (), {"__str__": press})(): 1})


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.lists(st.text(max_size=40) | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats() | st.binary(max_size=9)))
def test_no_message_is_larger_than_its_header_says_it_may_be(values):
    value = [values] * 3_000
    message = wire.encode({"result": value, "tensors": [torch.ones(1, 1, 1)] * 3_000})
    header, body = (int.from_bytes(message[at : at + 4], "little") for at in (0, 4))
    assert header <= wire.MAX_HEADER_BYTES and body <= wire.MAX_BODY_BYTES
    wire.decode(message[8 : 8 + header], message[8 + header :])
