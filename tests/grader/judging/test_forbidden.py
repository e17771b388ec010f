"""What is found by reading: the course's own answers, and what would put the recorder out of work. At a bounded
cost."""

import re

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder import catalogue, course
from autograder.ipython_syntax import Budget, TooMuchToRead, as_python, without_magics
from autograder.judging import forbidden

EXERCISE = catalogue.find("attention-weights")
ASSIGNMENT = catalogue.assignment_of(EXERCISE)
OWN = "transformer_ref.model.attention.attention_weights"
WRITTEN = "def attention_weights(Q, K):\n    weights = torch.softmax(Q @ K.mT, -1)\n    return weights\n"


def found(*cells: str) -> list[str]:
    return forbidden.findings(cells, EXERCISE, ASSIGNMENT)


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
        "import importlib\ndef attention_weights(Q, K):\n"
        "    return importlib.import_module('transformer_ref.model.attention').attention_weights(Q, K)\n"
    ],
    [
        "import sys\ndef attention_weights(Q, K):\n"
        "    return sys.modules['transformer_ref.model.attention'].attention_weights(Q, K)\n"
    ],
    ["from autograder.catalogue.ch05_self_attention.attention_weights import attention_weights"],
    ["from transformer_ref.model.attention import *"],
    ["_ = %pwd\nfrom transformer_ref.model.attention import attention_weights"],
    ["import transformer_ref.model.attention as a", "%time g = a.attention_weights", "attention_weights = g"],
    ["exec('from transformer_ref.model.attention import attention_weights')"],
    [f"import __main__, transformer_ref.model.attention\n__main__.attention_weights = {OWN}"],
    [f"import transformer_ref.model.attention\nglobals()['attention_weights'] = {OWN}"],
    [f"import transformer_ref.model.attention\nglobals().update(attention_weights={OWN})"],
    [f"def prepare():\n    global g\n    g = {OWN}\n", "def attention_weights(Q, K):\n    return g(Q, K)\n"],
    [f"match {OWN}:\n    case g:\n        pass\n", "attention_weights = g"],
    [f"def attention_weights(Q, K, f={OWN}):\n    return f(Q, K)\n"],
    ["from autograder import recorder", "def attention_weights(Q, K):\n    recorder._watch = None\n    return Q\n"],
]


@pytest.mark.parametrize("cells", OWN_ANSWERS)
def test_the_courses_own_answer_is_found(cells):
    assert any("part of the course" in finding for finding in found(*cells))


HONEST = [
    ["from transformer_ref.model.softmax import softmax", WRITTEN.replace("torch.softmax", "softmax")],
    ["import transformer_ref.model.softmax", WRITTEN.replace("torch.", "transformer_ref.model.softmax.")],
    [WRITTEN, f"import transformer_ref.model.attention\nweights = {OWN}(x, x)"],
    [f"import transformer_ref.model.attention\nQ = K = weights = {OWN}(x, x)", WRITTEN],
    [f"def compare(x):\n    return {OWN}(x, x) - attention_weights(x, x)\n", WRITTEN],
    [f"class Compared:\n    def run(self, x):\n        self.attention_weights = {OWN}(x, x)\n", WRITTEN],
    [f"seen = {{}}\nseen['attention_weights'] = {OWN}", WRITTEN],
    ["from autograder.check import check", WRITTEN + "check('attention-weights')"],
    ["this is not python", WRITTEN],
    [WRITTEN.replace("):\n", "):\n    'See transformer_ref.model.attention for a faster one.'\n")],
    ["def attention_weights(Q, K):\n    values = [Q for Q in K]\n    return [K for values in Q]\n", f"values = {OWN}"],
]


@pytest.mark.parametrize("cells", HONEST)
def test_honest_code_is_left_alone(cells):
    assert found(*cells) == []


IMPORTED = re.compile(r"^from (transformer_ref\.[\w.]+) import (.+)$", re.MULTILINE)
SHOWN_ONLY = ("transformer_ref.visualization.explore",)  # what these cells show has no use in an answer


@pytest.mark.parametrize("assignment", [pytest.param(each, id=each.id) for each in catalogue.ASSIGNMENTS])
def test_an_answer_may_use_whatever_the_notebook_imports_before_it(assignment):
    for exercise in assignment.exercises:
        cells = course.set_up_cells(course.find_root(), assignment, exercise, training=True)
        lines = [found for cell in cells for found in IMPORTED.findall(cell) if found[0] not in SHOWN_ONLY]
        names = ", ".join(name for _, names in lines for name in names.split(", "))
        answer = f"def {exercise.names[0]}(*given):\n    return given, {names or None}\n"
        assert forbidden.findings([*cells, answer], exercise, assignment) == []


def test_what_switches_the_recorder_off_is_named():
    cell = "from torch.utils._python_dispatch import _disable_current_modes as d\n"
    (sentence,) = found(cell, "def attention_weights(Q, K):\n    with d():\n        return Q\n")
    assert sentence.startswith("_disable_current_modes switches off")


@pytest.mark.parametrize(
    "cell", ["off = torch.utils._python_dispatch._disable_current_modes", "from autograder.inside import recorder as r"]
)
def test_what_switches_the_recorder_off_is_named_in_whatever_cell_it_stands(cell):
    assert len(found(cell, WRITTEN)) == 1
    exercise = catalogue.find("attend")
    assert forbidden.findings([cell, WRITTEN], exercise, ASSIGNMENT) == []  # it forbids nothing


def test_where_nothing_is_forbidden_the_recorder_may_be_switched_off():
    exercise = catalogue.find("attend")
    cell = "def attend(W, V):\n    with torch._C.DisableTorchFunction():\n        return W @ V\n"
    assert not exercise.forbidden and forbidden.findings([cell], exercise, ASSIGNMENT) == []


LONG = "s = '" + "x" * 15_000 + "'\n"
HOSTILE = {
    "a text spelled out, a thousand times": LONG + "a = [ord(c) for c in s]\n" * 1_000,
    "four thousand answers": "attention_weights = 1\n" * 4_000,
    "a thousand magics": "x = %pwd\n" * 4_000,
    "a thousand magics in brackets": "(\n" * 90 + "x = %pwd\n!ls\n" * 2_000,
    "a thousand questions": "torch?\n" * 5_000,
    "a thousand calls by a slash": "/f x\n" * 450 + "x = [\n" + "1,1,1,1,1\n" * 2_000 + "]\n",
    "a thousand calls by a comma": ",f x\n;f x\n" * 450,
    "magics behind prompts": ">>> %pwd\n" * 4_000,
    "commas that grow": "," * 2_000 + "f" + " a" * 2_000,
    "blanks": "x" + " " * 90_000 + "$",
    "a long word before a question": "a" * 90_000 + " b?",
    "escaped quotes": "'\\" * 45_000,
    "lambdas in lambdas": "f = " + "lambda a: " * 3_000 + "a",
    "functions in functions": "".join("  " * n + f"def f{n}(a{n}):\n" for n in range(95)) + "  " * 95 + "pass\n",
    "a long sum": "f = " + "+".join(["a"] * 15_000),
    "a long chain": "f = a" + ".b" * 15_000,
    "a chain of names": "".join(f"g{n} = g{n + 1}\n" for n in range(3_000)) + "attention_weights = g0\n",
    "texts in texts": "exec(" * 50 + "'1'" + ")" * 50,
    "brackets": "(" * 30_000,
    "open brackets of all kinds": "f(**{" * 7_000,
}


@pytest.mark.parametrize("cell", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_read_in_bounded_work(cell, monkeypatch):
    """Counted in statements and nodes that are looked at, since a clock says little on a loaded machine."""
    looked, look = [0], forbidden._mentions
    parsed, parse = [0], forbidden._parse
    transformed, transform = [0], TransformerManager.do_one_token_transform

    def counted(node):
        looked[0] += 1
        return look(node)

    def measured(source):
        parsed[0] += len(source)
        return parse(source)

    def weighed(reader, lines):
        transformed[0] += sum(map(len, lines))
        return transform(reader, lines)

    forbidden._read.cache_clear()
    monkeypatch.setattr(TransformerManager, "do_one_token_transform", weighed)
    monkeypatch.setattr(forbidden, "_mentions", counted)
    monkeypatch.setattr(forbidden, "_parse", measured)
    for exercise in ASSIGNMENT.exercises:
        forbidden.findings([cell, WRITTEN], exercise, ASSIGNMENT)
    assert looked[0] <= 2 * forbidden.MOST_NODES
    assert parsed[0] <= 3 * forbidden.MOST_LETTERS
    assert transformed[0] <= forbidden.MOST_TRANSFORMED


@pytest.mark.parametrize("what", ["blanks", "a long word before a question", "escaped quotes"])
def test_a_run_that_takes_the_square_of_its_length_is_not_read(what):
    with pytest.raises(TooMuchToRead):
        as_python(HOSTILE[what], Budget(forbidden.MOST_TRANSFORMED))


def test_statements_are_compared_with_no_other_statements(monkeypatch):
    """Of thousands that bind the answer's name, each was compared with all of those before it."""
    monkeypatch.setattr(forbidden._Statement, "__eq__", lambda *_: pytest.fail("compared"))
    cell = "".join(f"attention_weights = a{number}\n" for number in range(1_000))
    assert found(cell) == [] and EXERCISE.forbidden


ODD = ["=%'''", "x =%'''", "x = 1\nx = %'''"]


@pytest.mark.parametrize("cell", ODD)
def test_a_cell_at_which_ipython_itself_fails_is_none_that_runs(cell, monkeypatch):
    assert found(cell, WRITTEN) == []

    def broken(*_):
        raise IndexError

    monkeypatch.setattr(TransformerManager, "do_one_token_transform", broken)  # however it fails in another version
    assert as_python(cell) == "" and without_magics(cell) == cell


NESTED = "deep = " + "-" * 4_000 + "1"


def test_a_nested_cell_that_a_higher_limit_of_recursion_lets_run_is_a_finding():
    hiding = f"from transformer_ref.model.attention import attention_weights\n{NESTED}"
    assert found("import sys\nsys.setrecursionlimit(100_000)", hiding)
    assert found(f"exec({hiding!r})")


def test_a_notebook_is_read_once_for_all_of_its_exercises(monkeypatch):
    parsed, parse = [], forbidden._parse
    monkeypatch.setattr(forbidden, "_parse", lambda source: parsed.append(source) or parse(source))
    for exercise in ASSIGNMENT.exercises:
        forbidden.findings(["once = 1", WRITTEN], exercise, ASSIGNMENT)
    assert parsed.count("once = 1") == 1


IMPORT = "from transformer_ref.model.attention import attention_weights"
SWITCH = "import torch\ntorch._C._DisableTorchDispatch()"


@pytest.mark.parametrize(
    "cells",
    [
        ("#" * (forbidden.MOST_LETTERS + 1), IMPORT),
        ("#" * (forbidden.MOST_LETTERS + 1) + f"\n{IMPORT}",),
        ("x = %pwd\n" * 4_000 + IMPORT,),
        ("x = 1\n" * 60_000 + IMPORT,),
        ("#" * 99_000 + "\n%pwd\n" * 3 + SWITCH,),
    ],
)
def test_what_is_not_read_is_a_finding_itself_and_hides_nothing(cells):
    assert found(*cells)


@pytest.mark.parametrize(
    "honest", ["# " + "100 % " * 300 + f"\n%pwd\n{WRITTEN}", f"%matplotlib inline\n{WRITTEN}\n!ls"]
)
def test_a_comment_full_of_marks_costs_nothing(honest):
    assert not found(honest)
    assert found(f"{honest}\n{SWITCH}")


def test_a_switch_is_a_finding_where_something_is_set_up_around_the_answer_too():
    staged = [each for assignment in catalogue.ASSIGNMENTS for each in assignment.exercises if each.harness]
    assert any(not exercise.forbidden for exercise in staged)
    for exercise in staged:
        assert forbidden.findings([SWITCH], exercise, catalogue.assignment_of(exercise)), exercise.id
