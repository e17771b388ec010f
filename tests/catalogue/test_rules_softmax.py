"""torch's softmax is found under every name; a learner's own function, method or class of that name is theirs."""

import linecache

import pytest

from autograder import catalogue, judge, rules

EXERCISE, LOGARITHM = catalogue.find("softmax"), catalogue.find("log-softmax")
ASSIGNMENT = catalogue.assignment_of(EXERCISE)
WRITTEN = "def softmax(x, dim):\n    e = (x - x.amax(dim, True)).exp()\n    return e / e.sum(dim, True)\n"

LIBRARY = {
    "function": ["def softmax(x, dim):\n    return torch.softmax(x, dim)\n"],
    "method": ["def softmax(x, dim):\n    return x.softmax(dim)\n"],
    "functional": ["def softmax(x, dim):\n    return F.softmax(x, dim)\n"],
    "module": ["def softmax(x, dim):\n    return nn.Softmax(dim)(x)\n"],
    "logarithm": ["def softmax(x, dim):\n    return nn.LogSoftmax(dim)(x).exp()\n"],
    "opposite": ["def softmax(x, dim):\n    return F.softmin(-x, dim)\n"],
    "special": ["def softmax(x, dim):\n    return torch.special.softmax(x, dim)\n"],
    "unbound method": ["def softmax(x, dim):\n    return torch.Tensor.softmax(x, dim)\n"],
    "assignment": ["softmax = torch.softmax"],
    "alias": ["from torch.nn.functional import softmax as s", "def softmax(x, dim):\n    return s(x, dim)\n"],
    "star": ["from torch.nn.functional import *\nf = softmax", "def softmax(x, dim):\n    return f(x, dim)\n"],
    "star, as a default": [
        "from torch.nn.functional import *",
        "def softmax(x, dim, f=softmax):\n    return f(x, dim)\n",
    ],
    "x named self": ["def softmax(self, dim):\n    return self.softmax(dim)\n"],
    "torch named self": ["self = torch", "def softmax(x, dim):\n    return self.softmax(x, dim)\n"],
    "lambda": ["softmax = lambda self, dim: self.softmax(dim)"],
    "subclass": ["class S(nn.Softmax):\n    pass\n", "def softmax(x, dim):\n    return S(dim)(x)\n"],
    "super": [
        "class S(torch.Tensor):\n    def softmax(self, dim):\n        return super().softmax(dim)\n",
        "def softmax(x, dim):\n    return S(x).softmax(dim)\n",
    ],
    "by its name": ["import operator\ndef softmax(x, dim):\n    return operator.methodcaller('softmax', dim)(x)\n"],
    "inside attention": ["def softmax(x, dim):\n    return F.scaled_dot_product_attention(x, x, x)\n"],
}

OWN = {
    "definition": [WRITTEN],
    "recursion": ["def softmax(x, dim):\n    return x if x.dim() == 1 else torch.stack([softmax(r, 0) for r in x])\n"],
    "lambda": ["softmax = lambda x, dim: (x - x.logsumexp(dim, keepdim=True)).exp()"],
    "method": [
        "class S:\n    def softmax(self, x):\n        return x\n    def go(self, x):\n        return self.softmax(x)\n",
        "def softmax(x, dim):\n    return S().go(x)\n",
    ],
    "static method": [
        "class S:\n    @staticmethod\n    def softmax(x):\n        return x\n",
        "def softmax(x, dim):\n    return S.softmax(x)\n",
    ],
    "inherited": [
        "class A:\n    def softmax(self, x):\n        return x\n",
        "class B(A):\n    def go(self, x):\n        return self.softmax(x)\n",
        "def softmax(x, dim):\n    return B().go(x)\n",
    ],
    "own class": ["class Softmax:\n    pass\n", "def softmax(x, dim):\n    return Softmax()(x)\n"],
    "local variable": ["def softmax(x, dim):\n    softmax = x / x.sum()\n    return softmax\n"],
    "its check": [WRITTEN, 'check("softmax")'],
    "comparing": [WRITTEN, "expected = torch.softmax(x, dim=-1)\nassert torch.allclose(softmax(x, -1), expected)"],
    "warning": ["import warnings\ndef softmax(x, dim):\n    warnings.warn('softmax')\n    return x\n"],
}


@pytest.mark.parametrize("cells", LIBRARY.values(), ids=LIBRARY)
def test_the_librarys_softmax_is_found(cells):
    assert rules.findings(cells, EXERCISE, ASSIGNMENT)


@pytest.mark.parametrize("cells", OWN.values(), ids=OWN)
def test_a_learners_own_softmax_is_left_alone(cells):
    assert rules.findings(cells, EXERCISE, ASSIGNMENT) == []


def test_a_learners_own_softmax_may_be_called_in_the_next_exercise():
    use = "def log_softmax(x, dim):\n    return torch.log(softmax(x, dim))\n"
    assert rules.findings([WRITTEN, use], LOGARITHM, ASSIGNMENT) == []


@pytest.fixture
def notebook():
    """Runs cells as Jupyter does: each has a file name by which its source can be found again."""
    namespace = {"__name__": "__main__"}

    def run(*cells: str) -> dict:
        for number, source in enumerate(cells):
            name = f"<cell {number}>"
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
            exec(compile(source, name, "exec"), namespace)
        return namespace

    return run


def test_in_the_notebook_too_an_own_softmax_is_no_shortcut(notebook):
    use = "import torch\ndef log_softmax(x, dim):\n    return torch.log(softmax(x, dim))\n"
    outcome = judge.judge_in_notebook("log-softmax", notebook(WRITTEN, use))
    assert outcome["passed"]  # the visible probes do not show the underflow


def test_in_the_notebook_a_shortcut_in_an_own_helper_is_found(notebook):
    helper = "import torch\ndef shares(x, dim):\n    return torch.softmax(x, dim)\n"
    outcome = judge.judge_in_notebook("softmax", notebook(helper, "def softmax(x, dim):\n    return shares(x, dim)\n"))
    assert outcome["earned"] == 0 and "not allowed" in outcome["text"]
