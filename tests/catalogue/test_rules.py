"""Forbidden shortcuts are found however they are spelled, and honest code is left alone."""

import ast

import pytest

from autograder import catalogue, constants, rules

EXERCISE = catalogue.find("attention-weights")
ASSIGNMENT = catalogue.assignment_of(EXERCISE)
USE = "def attention_weights(Q, K):\n    return {}(Q, K, V)\n"


def found(*cells: str) -> list[str]:
    return rules.findings(cells, EXERCISE, ASSIGNMENT)


SHORTCUTS = [
    ["import torch.nn.functional as F\n" + USE.format("F.scaled_dot_product_attention")],
    ["from torch.nn.functional import scaled_dot_product_attention as s\n", USE.format("s")],
    [
        "from torch.nn.functional import scaled_dot_product_attention",
        "g = scaled_dot_product_attention",
        USE.format("g"),
    ],
    [USE.format('getattr(F, "scaled_dot_product_attention")')],
    ['name = "scaled_dot_" + "product_attention"', USE.format("getattr(F, name)")],
    [USE.format('vars(F)["scaled_dot_product_attention"]')],
    [USE.format('F.__dict__["_".join(["scaled", "dot", "product", "attention"])]')],
    [USE.format("torch.ops.aten.scaled_dot_product_attention")],
    ["def helper(Q, K, V):\n    return F.scaled_dot_product_attention(Q, K, V)\n", USE.format("helper")],
    ["class Tool:\n    f = staticmethod(F.scaled_dot_product_attention)\n", USE.format("Tool.f")],
    ["exec('def attention_weights(Q, K): return F.scaled_dot_product_attention(Q, K, K)')"],
    ["attention_weights = F.scaled_dot_product_attention"],
    [USE.format('getattr(F, "noitnetta_tcudorp_tod_delacs"[::-1])')],
    [USE.format('getattr(F, "".join(reversed("noitnetta_tcudorp_tod_delacs")))')],
    ["import base64", USE.format('getattr(F, base64.b64decode("c2NhbGVkX2RvdF9wcm9kdWN0X2F0dGVudGlvbg==").decode())')],
    ["import codecs", USE.format('getattr(F, codecs.decode("fpnyrq_qbg_cebqhpg_nggragvba", "rot13"))')],
    [USE.format('getattr(F, bytes.fromhex("7363616c65645f646f745f70726f647563745f617474656e74696f6e").decode())')],
    ["letters = [115, 99, 97, 108, 101, 100]", USE.format('getattr(F, "".join(chr(c) for c in letters) + "_dot_product_attention")')],
    [USE.format('getattr(F, "".join(map(chr, [115, 99, 97, 108, 101, 100])) + "_dot_product_attention")')],
    [USE.format('getattr(F, "{}_dot_product_{}".format("scaled", "attention"))')],
    [USE.format('getattr(F, "%s_dot_product_attention" % "scaled")')],
    [USE.format('getattr(F, "SCALED_DOT_PRODUCT_ATTENTION".lower())')],
    [USE.format('getattr(F, "scaled-dot-product-attention".replace("-", "_"))')],
    ["parts = ['scaled', 'dot', 'product', 'attention']", "name = '_'.join(parts)", USE.format("getattr(F, name)")],
    ["code = 'F.scaled_dot_product_attention'", USE.format("eval(code)")],
    ["f = getattr", USE.format('f(F, "scaled_dot_product_attention")')],
    ["import operator", USE.format('operator.attrgetter("scaled_dot_product_attention")(F)')],
    ["globals()['attention_weights'] = F.scaled_dot_product_attention"],
    ["if True:\n    def attention_weights(Q, K):\n        return F.scaled_dot_product_attention(Q, K, K)\n"],
    ["%matplotlib inline\n" + USE.format("F.scaled_dot_product_attention")],
    [
        "def attention_weights(Q, K):\n    from torch.nn.functional import scaled_dot_product_attention as s\n    return s(Q, K, K)\n"
    ],
]


@pytest.mark.parametrize("cells", SHORTCUTS)
def test_a_forbidden_function_is_found(cells):
    assert any("scaled_dot_product_attention" in finding for finding in found(*cells))


OWN_ANSWERS = [
    ["from transformer_ref.model.attention import attention_weights"],
    [
        "from transformer_ref.model import attention",
        "def attention_weights(Q, K):\n    return attention.attention_weights(Q, K)\n",
    ],
    ["import transformer_ref.model.attention as a", "attention_weights = a.attention_weights"],
    [
        "import transformer_ref.model.attention",
        "attention_weights = transformer_ref.model.attention.attention_weights",
    ],
    [
        "import importlib\ndef attention_weights(Q, K):\n    return importlib.import_module('transformer_ref.model.attention').attention_weights(Q, K)\n"
    ],
    [
        "import sys\ndef attention_weights(Q, K):\n    return sys.modules['transformer_ref.model.attention'].attention_weights(Q, K)\n"
    ],
    ["from autograder.catalogue.ch05 import attention_weights"],
    ["from transformer_ref.model.attention import *"],
]


@pytest.mark.parametrize("cells", OWN_ANSWERS)
def test_the_courses_own_answer_is_found(cells):
    assert any("part of the course" in finding for finding in found(*cells))


HONEST = [
    [
        "from transformer_ref.model.softmax import softmax",
        "def attention_weights(Q, K):\n    return softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)\n",
    ],
    [
        "def attention_weights(Q, K):\n    '''Not F.scaled_dot_product_attention.'''\n    return Q  # scaled_dot_product_attention\n"
    ],
    [
        "def attention_weights(Q, K):\n    return Q @ K.mT\n",
        "F.scaled_dot_product_attention(Q, K, V)  # to compare",
    ],
    [
        "def scaled_dot_product_attention(Q, K):\n    return Q @ K.mT\n",
        "def attention_weights(Q, K):\n    return scaled_dot_product_attention(Q, K)\n",
    ],
    ["def attention_weights(Q, K):\n    print('as scaled_dot_product_attention does')\n    return Q @ K.mT\n"],
    [
        "from autograder.check import check\ndef attention_weights(Q, K):\n    return Q @ K.mT\ncheck('attention-weights')\n"
    ],
    ["x = 'a' * 10", "y = 'b'[::-1] % ()", "def attention_weights(Q, K):\n    return Q[0][::-1]\n"],
    ["z = '9' * 10**9\nw = bytes(10**9)\nv = 9**9**9", "def attention_weights(Q, K):\n    return Q\n"],
    ["this is not python", "def attention_weights(Q, K):\n    return Q @ K.mT\n"],
]


@pytest.mark.parametrize("cells", HONEST)
def test_honest_code_is_left_alone(cells):
    assert found(*cells) == []


LONG = "'" + "a" * 15_000 + "'"
ENDLESS = [
    f"x = {LONG}.replace('a', {LONG})",
    f"x = [[c for d in {LONG}] for c in {LONG}]",
    "x = '{:>999999999}'.format('a')",
    "x = '%999999999s' % 'a'",
    "x = " + "+".join([LONG] * 5),
    "x = " + "(" * 80 + "'a'" + "[::-1])" * 80,
]


@pytest.mark.parametrize("cell", ENDLESS, ids=range(len(ENDLESS)))
def test_a_constant_that_would_take_long_is_not_worked_out(cell):
    assignment = ast.parse(cell).body[0]
    value = constants.value_of(assignment.value, {})
    assert value is constants.UNKNOWN or len(value) <= constants.MOST


def test_a_shortcut_in_another_exercises_cell_is_not_charged_here():
    assert (
        found(
            "def attend(W, V):\n    return F.scaled_dot_product_attention(W, V, V)\n",
            "def attention_weights(Q, K):\n    return Q\n",
        )
        == []
    )
