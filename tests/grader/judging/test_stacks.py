"""One parameter may hold several matrices or vectors, one after another along its first axis."""

import pytest
import torch

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.judge import judge
from autograder.judging.observe import LocalEndpoint
from autograder.judging.parameter_matching import stacks
from autograder.judging.parameter_matching.blocks import Parameters

ATTEND = """
def attend(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = (scores if mask is None else scores.masked_fill(~mask, float("-inf"))).softmax(-1)
    return weights @ v, weights


def in_heads(x, h):
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def normed(x, scale, shift):
    return F.layer_norm(x, x.shape[-1:], scale, shift)
"""
HEADS = (
    ATTEND
    + """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h, bias=True):
        super().__init__()
        if d_model % h:
            raise ValueError("d_model is no multiple of h")
        D, self.H, K = d_model, h, d_model // h
        self.W = nn.Parameter(torch.randn(MATRICES))
        self.b = nn.Parameter(torch.zeros(BIASES)) if bias else None
        self.out = nn.Linear(d_model, d_model, bias)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        H = self.H
        projected = PROJECTED
        mixed, self.last_weights = attend(*projected, mask)
        return self.out(mixed.transpose(1, 2).flatten(2))
"""
)
BIAS = "(0 if self.b is None else self.b[i].unsqueeze(-2))"
ITEMS = f"(in_heads(x @ self.W[i], H) + in_heads(0 * x + {BIAS}, H) for i, x in enumerate((x_q, x_kv, x_kv)))"
FIRST = f"(torch.einsum('btd,hdk->bhtk', x, self.W[i]) + {BIAS} for i, x in enumerate((x_q, x_kv, x_kv)))"
MIDDLE = f"(torch.einsum('btd,dhk->bhtk', x, self.W[:, i]) + {BIAS} for i, x in enumerate((x_q, x_kv, x_kv)))"


def heads(matrices: str, biases: str, projected: str) -> str:
    return HEADS.replace("MATRICES", matrices).replace("BIASES", biases).replace("PROJECTED", projected)


LAYER = (
    ATTEND
    + """
class EncoderLayer(nn.Module):
    def __init__(self, d, h, d_ff, dropout, norm_first):
        super().__init__()
        self.h, self.norm_first = h, norm_first
        self.W, self.b = nn.Parameter(torch.randn(4, d, d)), nn.Parameter(torch.zeros(4, d))
        self.scales, self.shifts = nn.Parameter(torch.ones(2, d)), nn.Parameter(torch.zeros(2, d))
        self.first, self.second, self.dropout = nn.Linear(d, d_ff), nn.Linear(d_ff, d), nn.Dropout(dropout)

    def attention(self, x, mask):
        parts = (in_heads(x @ self.W[i] + self.b[i], self.h) for i in range(3))
        return attend(*parts, mask)[0].transpose(1, 2).flatten(2) @ self.W[-1] + self.b[-1]

    def feed_forward(self, x, mask):
        return self.second(torch.relu(self.first(x)))

    def forward(self, x, mask=None):
        for i, part in enumerate((self.attention, self.feed_forward)):
            scale, shift = self.scales[i], self.shifts[i]
            if self.norm_first:
                x = x + self.dropout(part(normed(x, scale, shift), mask))
            else:
                x = normed(x + self.dropout(part(x, mask)), scale, shift)
        return x
"""
)
MODEL = (
    ATTEND
    + """
class GPT(nn.Module):
    def __init__(self, vocabulary, d_model, h, layers, d_ff, max_length, dropout=0.0):
        super().__init__()
        self.h, self.layers = h, layers
        self.words, self.places = nn.Embedding(vocabulary, d_model), nn.Embedding(max_length, d_model)
        D = d_model
        sizes = {"qkv": (D, 3 * D), "out": (D, D), "up": (D, d_ff), "down": (d_ff, D)}
        for name, (inputs, outputs) in sizes.items():
            setattr(self, name, nn.Parameter(torch.randn(layers, inputs, outputs)))
            setattr(self, f"{name}_b", nn.Parameter(torch.zeros(layers, outputs)))
        for place in "12":
            setattr(self, f"scale{place}", nn.Parameter(torch.ones(layers, d_model)))
            setattr(self, f"shift{place}", nn.Parameter(torch.zeros(layers, d_model)))
        self.last, self.dropout = nn.LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, ids):
        length = ids.shape[1]
        if length > self.places.num_embeddings:
            raise ValueError("too long")
        x = self.dropout(self.words(ids) + self.places.weight[:length])
        past = torch.ones(length, length, dtype=torch.bool).tril()
        for i in range(self.layers):
            y = normed(x, self.scale1[i], self.shift1[i]) @ self.qkv[i] + self.qkv_b[i]
            mixed, _ = attend(*(in_heads(part, self.h) for part in y.chunk(3, -1)), past)
            x = x + self.dropout(mixed.transpose(1, 2).flatten(2) @ self.out[i] + self.out_b[i])
            y = F.gelu(normed(x, self.scale2[i], self.shift2[i]) @ self.up[i] + self.up_b[i])
            x = x + self.dropout(y @ self.down[i] + self.down_b[i])
        return self.last(x) @ self.words.weight.T
"""
)
NORMS = "self.scales, self.shifts = nn.Parameter(torch.ones(2, d)), nn.Parameter(torch.zeros(2, d))"
TAKEN = "scale, shift = self.scales[i], self.shifts[i]"
LISTED = "torch.stack([torch.ones(2, d), torch.zeros(2, d)], AXIS)"


def with_norms(axis: int, taken: str) -> str:
    """The layer with scale and shift of both norms in one parameter, one after another along this axis."""
    made = f"self.norms = nn.Parameter({LISTED.replace('AXIS', str(axis))})"
    return LAYER.replace(NORMS, made).replace(TAKEN, taken)


def with_stacks(model: str) -> str:
    """The model with one parameter for the projections of all layers, one for their biases, one for all norms."""
    for name, inside in (("qkv", 3), ("out", 1)):
        model = model.replace(f'"{name}": (D, {inside} * D), ' if inside > 1 else f'"{name}": (D, D), ', "")
    norms = """for place in "12":
            setattr(self, f"scale{place}", nn.Parameter(torch.ones(layers, d_model)))
            setattr(self, f"shift{place}", nn.Parameter(torch.zeros(layers, d_model)))"""
    made = """self.W = nn.Parameter(torch.randn(layers, 4, D, D))
        self.b = nn.Parameter(torch.zeros(layers, 4, D))
        one, zero = torch.ones(layers, D), torch.zeros(layers, D)
        self.norms = nn.Parameter(torch.stack([one, zero, one, zero]))"""
    for old, new in (
        (norms, made),
        ("self.scale1[i], self.shift1[i]) @ self.qkv[i] + self.qkv_b[i]", "self.norms[0, i], self.norms[1, i])"),
        ("self.scale2[i], self.shift2[i])", "self.norms[2, i], self.norms[3, i])"),
        ("in_heads(part, self.h) for part in y.chunk(3, -1)",
         "in_heads(y @ self.W[i, j] + self.b[i, j], self.h) for j in range(3)"),
        ("@ self.out[i] + self.out_b[i]", "@ self.W[i, 3] + self.b[i, 3]"),
    ):  # fmt: skip
        assert old in model
        model = model.replace(old, new)
    return model


def with_heads(layer: str) -> str:
    """The layer with the matrices and biases of queries, keys and values in pieces, one for each head."""
    made = "self.W, self.b = nn.Parameter(torch.randn(4, d, d)), nn.Parameter(torch.zeros(4, d))"
    pieces = """D, K = d, d // h
        self.W, self.b = nn.Parameter(torch.randn(3, h, D, K)), nn.Parameter(torch.zeros(3, h, K))
        self.out, self.out_b = nn.Parameter(torch.randn(h, K, D)), nn.Parameter(torch.zeros(D))"""
    parts = "(in_heads(x @ self.W[i] + self.b[i], self.h) for i in range(3))"
    whole = "torch.einsum('btd,ihdk->ibhtk', x, self.W) + self.b[:, None, :, None, :]"
    joined = "return attend(*parts, mask)[0].transpose(1, 2).flatten(2) @ self.W[-1] + self.b[-1]"
    summed = "return torch.einsum('bhtk,hkd->btd', attend(*parts, mask)[0], self.out) + self.out_b"
    for old, new in ((made, pieces), (parts, whole), (joined, summed)):
        assert old in layer
        layer = layer.replace(old, new)
    return layer


TWO = (
    ATTEND
    + """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.both, self.values = nn.Parameter(torch.randn(2, d_model, d_k)), nn.Parameter(torch.randn(d_model, d_v))

    def forward(self, x):
        q, k = torch.einsum("btd,sdk->sbtk", x, self.both)
        return attend(q, k, x @ self.values)
"""
)
RIGHT = [
    ("multi-head-attention", heads("3, D, D", "3, D", ITEMS)),
    ("multi-head-attention", heads("3, h, D, K", "3, h, K", FIRST)),
    ("multi-head-attention", heads("D, 3, h, K", "3, h, K", MIDDLE)),
    ("encoder-layer", with_norms(1, "scale, shift = self.norms[i]")),
    ("encoder-layer", with_norms(0, "scale, shift = self.norms[0, i], self.norms[1, i]")),
    ("encoder-layer", with_norms(0, "scale, shift = self.norms[:, i]")),
    ("encoder-layer", LAYER),
    ("encoder-layer", with_heads(LAYER)),
    ("gpt", with_stacks(MODEL)),
    ("gpt", MODEL),
    ("self-attention", TWO),
]


@pytest.mark.parametrize(("exercise", "source"), RIGHT)
def test_stacked_parameters_earn_all_points(exercise, source):
    verdict = judge(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), b"key")
    assert verdict.points == verdict.possible and verdict.passed


@pytest.mark.parametrize(
    ("exercise", "right", "wrong", "words"),
    [
        ("multi-head-attention", "q.shape[-1] ** 0.5", "(q.shape[1] * q.shape[-1]) ** 0.5", "the root of d_model"),
        ("multi-head-attention", "(x_q, x_kv, x_kv)", "(x_kv, x_q, x_q)", "The two sentences are exchanged"),
        ("encoder-layer", "torch.relu(self.first(x))", "self.first(x)", "ReLU"),
        ("self-attention", "q.shape[-1] ** 0.5", "1", "the division by the square root of d_k is missing"),
    ],
)
def test_a_mistake_with_stacked_parameters_is_told_like_any_other(exercise, right, wrong, words):
    source = dict(reversed(RIGHT))[exercise]
    assert right in source
    endpoint = LocalEndpoint(namespace_of(source.replace(right, wrong)))
    told = explanation(judge_and_explain(catalogue.find(exercise), endpoint, b"key"))
    assert words in told and "cannot be read" not in told


def test_a_class_may_name_an_item():
    roles = '    roles = {"query": "both[1]", "key": "both[0]"}\n'
    source = TWO.replace("    def __init__", f"{roles}    def __init__", 1).replace("q, k = torch", "k, q = torch")
    verdict = judge(catalogue.find("self-attention"), LocalEndpoint(namespace_of(source)), b"key")
    assert verdict.passed


def test_items_are_put_together_and_taken_apart_again():
    parameters = Parameters({"both": (2, 6, 5), "values": (6, 7)})
    reading = stacks.readings(parameters, catalogue.find("self-attention").roles(6, 5, 7), {})[0]
    assert reading.stacks == {"both": 2}
    apart = {"both[0]": torch.randn(6, 5), "both[1]": torch.randn(6, 5), "values": torch.randn(6, 7)}
    together = reading.together(apart)
    assert {name: tuple(tensor.shape) for name, tensor in together.items()} == dict(parameters.shapes)
    assert all(torch.equal(tensor, apart[name]) for name, tensor in reading.apart(together).items())


def test_items_along_two_axes_are_put_together_and_taken_apart_again():
    wanted = catalogue.find("encoder-layer").roles(6, 3, 10, 0.0, True)
    shapes = {"W": (4, 6, 6), "b": (4, 6), "norms": (2, 2, 6), "W1": (6, 10), "b1": (10,), "W2": (10, 6), "b2": (6,)}
    ones = frozenset({"norms[0][0]", "norms[1][0]"})
    used = ("norms", "norms[0]", "W", "b", "norms", "norms[1]", "W1", "b1", "W2", "b2")
    reading = stacks.readings(Parameters(shapes, used, ones), wanted, {})[0]
    assert reading.assignment["norm 2.shift"].parameter == "norms[1][1]"
    apart = {name: torch.randn(shape) for name, shape in reading.shapes.items()}
    together = reading.together(apart)
    assert {name: tuple(tensor.shape) for name, tensor in together.items()} == shapes
    assert apart.keys() == reading.apart(together).keys()
    assert all(torch.equal(tensor, apart[name]) for name, tensor in reading.apart(together).items())


def test_a_reply_with_many_stacks_is_not_read_for_long(monkeypatch):
    asked = []
    monkeypatch.setattr(stacks.roles, "_matrices", lambda parameters, *_: asked.append(len(parameters)) or [])
    wanted = catalogue.find("multi-head-attention").roles(4, 2)
    assert stacks.readings(Parameters({f"W{i}": (32, 4, 4) for i in range(1_000)}), wanted, {}) == [] == asked
    assert stacks.readings(Parameters({f"W{i}": (2, 4, 4) for i in range(9)}), wanted, {}) == []
    assert max(asked) == 9  # 18 items are more than four for each of four projections


def test_what_a_reply_sends_instead_of_a_stack_is_left_alone():
    reading = stacks.ParameterReading({}, {}, {"W": 2})
    for sent in (None, torch.tensor(1.0), torch.ones(3, 2), "W"):
        assert reading.apart({"W": sent}).keys() <= {"W"}
