"""What crosses the socket arrives as it was sent, and nothing malformed does harm."""

import json
import socket
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.inside import wire
from autograder.intake import rebuild

SCALARS = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text(max_size=20)
KEYS = SCALARS | st.tuples(SCALARS, SCALARS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_plain_value_arrives_unchanged(value):
    assert wire.copy(value) == value


def test_the_longest_cell_that_is_taken_in_arrives_whole():
    cell = "x" * (rebuild.MAX_CELL - 1) + "y"
    assert wire.copy({"source": cell}) == {"source": cell}


@pytest.mark.parametrize("dtype", sorted(wire.DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 5)])
def test_a_tensor_arrives_with_dtype_shape_and_values(dtype, shape):
    tensor = (torch.arange(torch.Size(shape).numel()) % 2).reshape(shape).to(wire.DTYPES[dtype])
    arrived = wire.copy(tensor)
    assert (arrived.dtype, arrived.shape) == (tensor.dtype, tensor.shape)
    assert arrived.tolist() == tensor.tolist()


def test_nan_and_infinity_arrive():
    arrived = wire.copy(torch.tensor([float("nan"), float("inf"), float("-inf")]))
    assert arrived[0].isnan() and arrived[1:].tolist() == [float("inf"), float("-inf")]


def test_a_transposed_tensor_arrives_transposed():
    tensor = torch.arange(6.0).reshape(2, 3).mT
    arrived = wire.copy(tensor)
    assert not arrived.is_contiguous()
    assert torch.equal(arrived, tensor)


def test_tuples_and_lists_are_told_apart():
    assert wire.copy(((1, 2), [3])) == ((1, 2), [3])


def test_an_object_arrives_as_its_description_only():
    arrived = wire.copy(object())
    assert isinstance(arrived, wire.Opaque)
    assert "object" in repr(arrived)


def test_a_tensor_subclass_arrives_as_a_plain_tensor():
    class Liar(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return True

    arrived = wire.copy(torch.ones(2).as_subclass(Liar))
    assert type(arrived) is torch.Tensor
    assert arrived.tolist() == [1, 1]


def test_too_deep_a_value_arrives_as_words():
    value = 0
    for _ in range(wire.MAX_DEPTH + 2):
        value = [value]
    assert "levels deep" in repr(wire.copy(value))


def test_too_large_a_value_arrives_as_words():
    assert "MiB" in repr(wire.copy(torch.zeros(wire.MAX_BODY_BYTES + 1, dtype=torch.uint8)))


BAD_HEADERS = [
    "not json",
    "[]",
    '[{"tensor": ["float32", [4], 0, false]}, [3]]',
    '[{"tensor": ["float32", [-1], 0, false]}, []]',
    '[{"tensor": ["pickle", [1], 0, false]}, [4]]',
    '[{"tensor": ["float32", [1], 7, false]}, [4]]',
    '[{"tensor": ["float32", [1], -1, false]}, [4]]',
    '[{"proxy": 0}, []]',
    '[{"value": [1]}, []]',
    '[{"value": 1' + 60 * "0" + "}, []]",
    '[{"float": "import os"}, []]',
    '[{"dict": [["a"]]}, []]',
    '[{"a": 1, "b": 2}, []]',
    "[" * 100_000,
    '[{"value": 1}, [1000000000]]',
]


@pytest.mark.parametrize("header", BAD_HEADERS)
def test_a_malformed_message_is_refused(header):
    with pytest.raises(wire.WireError):
        wire.decode(header.encode(), b"\0" * 4)


@given(st.binary(max_size=60), st.binary(max_size=16))
def test_no_bytes_whatever_raise_anything_but_a_wire_error(header, body):
    try:
        value = wire.decode(header, body)
    except wire.WireError as refused:
        assert str(refused).startswith(("message: ", "value: "))
    else:
        assert wire.encode(value)


def test_a_message_that_claims_to_be_huge_is_refused_before_it_is_read():
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("<II", 1, wire.MAX_BODY_BYTES + 1))
    with pytest.raises(wire.WireError, match="larger"):
        wire.Channel(ours).receive()


def test_a_peer_that_hangs_up_is_noticed():
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("<II", 10, 0) + b"[")
    theirs.close()
    with pytest.raises(EOFError):
        wire.Channel(ours).receive()


def test_a_proxy_is_called_at_the_other_end():
    proxies = []
    message = wire.encode({"f": lambda x: x + 1}, proxies)
    (header_length, _), body = struct.unpack("<II", message[:8]), message[8:]
    arrived = wire.decode(body[:header_length], body[header_length:], lambda number: proxies[number])
    assert arrived["f"](1) == 2
    assert json.loads(body[:header_length])[0]["dict"][0] == ["f", {"proxy": 0}]


def test_a_generator_arrives_in_the_same_state():
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    arrived = wire.copy({"g": generator})["g"]
    assert torch.equal(torch.rand(4, generator=arrived), torch.rand(4, generator=generator))


class Doubling(torch.nn.Module):
    """Twice what goes in, and one more in training mode."""

    def forward(self, x):
        return 2 * x + int(self.training)


def handed(model: torch.nn.Module) -> wire.ModelProxy:
    """The model as an answer gets it."""
    proxies = []
    return wire.copy(model, proxies, lambda number: lambda *arguments: proxies[number](*arguments))


@pytest.mark.parametrize("training", [True, False])
def test_a_model_that_is_handed_over_answers_in_the_mode_that_it_is_put_into(training):
    model = Doubling().train(training)
    given_model = handed(model)
    assert given_model.training is training
    assert given_model.eval()(torch.tensor(3)).item() == 6
    assert given_model.train()(torch.tensor(3)).item() == 7
    assert model.training is training  # one answer's mode is not the next one's


def test_the_mode_in_which_a_model_is_left_can_be_seen():
    given_model = handed(Doubling().train())
    before = wire.copy((given_model,))
    assert wire.copy((given_model.eval(),)) != before
    assert wire.copy((given_model.train(),)) == before


@pytest.mark.parametrize("content", [3, [0], [0, 1], ["0", True], [0, True, 1]])
def test_a_malformed_model_is_refused(content):
    header = json.dumps([{"model": content}, []]).encode()
    with pytest.raises(wire.WireError):
        wire.decode(header, b"", lambda number: number)


@pytest.mark.parametrize(
    "tree",
    [
        {"tensor": ["float32", [0, 2**26, 2**26, 2**26], 0, False]},  # a product beyond 64 bits, of no bytes
        {"generator": {"tensor": ["uint8", [0, 2**26, 2**26, 2**26], 0, False]}},
        {"record": ["transformer_ref.decoding.beam_search", "Hypothesis", {"dict": 3}]},
    ],
)
def test_a_form_that_nobody_foresaw_is_malformed_and_raises_nothing_else(tree):
    header = json.dumps([tree, [0]]).encode()
    with pytest.raises(wire.WireError):
        wire.decode(header, b"")
