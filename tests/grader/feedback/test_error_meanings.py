"""What error messages of Python and torch mean. Each is raised here, so a library that changes its words is noticed."""

import ast
import io
import json
import linecache
import math  # noqa: F401 - the statements below use it
import re
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch.nn.functional as F  # noqa: F401 - as above
from torch import nn

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.feedback import error_meanings, errors, messages, undefined_names
from autograder.feedback.error_meanings import meaning, rule_of_shapes
from autograder.judging.observation import Raised
from autograder.judging.observe import LocalEndpoint

ROOT = Path(__file__).resolve().parents[3]


class Halves:
    def alone():
        """Without self."""

    def of(self, number):
        return number / 2


def endless(n):
    return endless(n)


def nested():
    def work():
        """A function without arguments."""

    return work


def unanswered():
    with mock.patch("sys.stdin", io.StringIO("")):
        input()


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain, self.map = nn.Parameter(torch.ones(2)), nn.Linear(2, 2)


x, ids = torch.ones(2, 3), torch.tensor([1, 2])
small = Small()
leaf = torch.ones(2, requires_grad=True)
squares = (leaf * leaf).sum()
squares.backward()
NAMES = dict(globals())
MEANT = {
    "x = \u201cwords\u201d": "Curly quotes and the like",
    "x =\u00a01 + 2": "Curly quotes and the like",
    "x = 2ids": "Letters follow a number directly.",
    "if x is not None:\n    y = 1\n\ty = 2": "Indent with spaces only.",
    "torch.matmul(x)": 'The call leaves out "other".',
    "Halves().of()": "The call leaves out 'number'.",
    "Halves().alone()": error_meanings.NO_SELF,
    "Halves().of(1, 2)": error_meanings.TOO_MANY,
    "nested()(1)": error_meanings.TOO_MANY,
    "torch.stack([x], 0, 1)": error_meanings.TOO_MANY,
    "bytes([260])": "A byte is a whole number from 0 to 255",
    "torch.ones(ids, ids)": "torch.ones takes whole numbers as sizes.",
    "torch.zeros(2.0, 3)": "torch.zeros takes whole numbers as sizes.",
    "Halves().of(n=1)": "The function that is called has no argument named n.",
    "Halves().of(1, number=2)": "The call gives number twice",
    "torch.where(x > 0, x)": "where does not take arguments of these types together.",
    "x.sum(dim='rows')": "sum does not take arguments of these types together.",
    "torch.zeros(2, x)": "zeros expects whole numbers as its argument size, and one of them is of type Tensor.",
    "torch.empty((2.0, 3))": "empty expects whole numbers as its argument size, and one of them is of type float.",
    "torch.zeros(2.0)": "Look at what the line passes as size: was it meant for another argument of zeros?",
    "torch.softmax(x, x)": "Look at what the line passes as dim",
    "torch.cat(x, x)": "Look at what the line passes as tensors",
    "torch.stack([x, 1])": "A list of tensors is expected there, and one of its items is of type int.",
    "{[1]: 2}": "A list can be changed, so it cannot be the key",
    "{}[1:2]": "A dictionary has keys and no order of positions",
    "None[0]": error_meanings.NO_VALUE,
    "sum(None)": error_meanings.NO_VALUE,
    "_, _ = None": error_meanings.NO_VALUE,
    "1 < None": error_meanings.NO_VALUE,
    "None + 1": error_meanings.NO_VALUE,
    "max(3)": error_meanings.A_NUMBER,
    "_, _ = 3": error_meanings.A_NUMBER,
    "3[0]": "A single number has no entries",
    "endless[0]": error_meanings.ROUND,
    "x(0)": "The value before the round brackets is of type Tensor",
    "list(torch.tensor(1))": "This tensor is a single number",
    "len(torch.tensor(1))": "This tensor is a single number",
    "len(3)": "A value of type int has no length.",
    "range(2.0)": error_meanings.WHOLE,
    "[1][1.0]": error_meanings.WHOLE,
    "[1][:1.0]": error_meanings.WHOLE,
    "range('2')": "A whole number is needed there.",
    "[1]['2']": "A whole number is needed there.",
    "range(x)": error_meanings.ONE_NUMBER,
    "float(x)": error_meanings.ONE_NUMBER,
    "x.item()": error_meanings.ONE_NUMBER,
    "[1] + (2,)": "Only a list can be added to a list, and this is of type tuple.",
    "_, _ = [1]": error_meanings.EACH_NAME,
    "_, _ = x.sum(0)": error_meanings.EACH_NAME,
    "torch.tensor([[1], [1, 2]])": "torch.tensor needs rows of equal lengths.",
    "x.permute(0, 0)": "permute takes each axis of the tensor once.",
    "x.permute(0)": "permute takes each axis of the tensor once.",
    "[1][1]": "A list of length n",
    "[].pop()": "A list of length n",
    "F.embedding(torch.tensor([2]), x)": "An id is negative, or not below the number of rows",
    "F.one_hot(ids, 2)": "one_hot takes whole numbers",
    "F.one_hot(-ids, 2)": "one_hot takes whole numbers",
    "torch.block_diag([x, x])": "One of the items there is a list of its own.",
    "x.bool() & x": "torch has no such operation for this dtype.",
    "2 ^ 0.5": "^ is not the power operator in Python.",
    "torch.max(0, x)": "torch's max compares two tensors.",
    "1 - (ids > 1)": "torch can neither subtract nor negate booleans. ~ inverts a mask",
    "-(ids > 1)": "torch can neither subtract nor negate booleans. ~ inverts a mask",
    "x.shape ** 0.5": "A shape is all lengths at once.",
    "math.sqrt(x.shape)": "A shape is all lengths at once.",
    "x[2:, 3:] = torch.ones(2, 2)": "An axis of length 0 is to be filled: is it a slice that begins where the axis",
    "~x": "~ turns a boolean mask around",
    "x[{}]": error_meanings.AN_INDEX,
    "x.gather(1, x)": "gather takes whole numbers as its index.",
    "x.take_along_dim(x, 1)": "take_along_dim takes whole numbers as its index.",
    "x[x]": error_meanings.AN_INDEX,
    "ids.softmax(0)": error_meanings.FLOATS,
    "ids.mean()": error_meanings.FLOATS,
    "ids.div_(2)": "Numbers with a fraction would be written into a tensor of whole numbers.",
    "x.masked_fill(x, 0)": "A mask has to be boolean, like the result of a comparison. This one is of dtype float.",
    "torch.where(x, x, x)": "A mask has to be boolean, like the result of a comparison. This one is of dtype Float.",
    "1 / 0": "A divisor is 0 for this input.",
    "1 % 0": "A divisor is 0 for this input.",
    "math.log(0)": "math.log needs a number above 0",
    "math.exp(1000)": "The result is larger than any float.",
    "endless(1)": "The function calls itself without an end.",
    "torch.empty(1 << 50)": "More memory is asked for than there is.",
    "unanswered()": "Nobody answers input() during a check",
    "x.sum().backward()": error_meanings.NO_GRADIENT,
    "squares.backward()": "backward ran twice for one result.",
    "x.T.view(-1)": "view works only if the values are in memory in the new order",
    "torch.cat([x, x.T])": "Tensors that are joined along one axis",
    "x.reshape(4, 2)": "A new shape keeps all numbers: the product of its lengths has to be 6.",
    "x + x.T": error_meanings.OVER,
    "torch.where(x > 0, x, x.T)": error_meanings.OVER,
    "x[torch.tensor([True, False, True])]": "Each axis of a boolean mask is as long as the axis it selects from:",
    "torch.stack([x, x.T])": "Tensors that are stacked have equal shapes.",
    "F.cross_entropy(torch.ones(2, 3, 4), torch.ones(2, 3).long())": "cross_entropy expects the scores of all classes",
    "F.cross_entropy(x, torch.tensor([1]))": "cross_entropy needs one label for each row of scores.",
    "(x > 1).nonzero()[0]": "The index selects from an axis that is empty here.",
    "x[0, 0, 0]": "Square brackets take at most one index for each axis.",
    "x.shape(0)": "shape is not a method: it has no round brackets.",
    "[1] + [2].sort()": error_meanings.NO_VALUE,
    "[1] * [2]": "* repeats a list.",
    "torch.randn(2, 3, torch.Generator())": "randn takes a generator only by its name",
    "' '.join([1, 2])": "join puts texts together, and one of the items is of type int.",
    "[1, 2] / 2": "A list does not compute entry by entry, as a tensor does.",
    "2 - [1, 2]": "A list does not compute entry by entry, as a tensor does.",
    "1 + '2'": "A text does not count as a number",
    "(1, 2)[0] = 3": "No item of a tuple can be changed.",
    "y = 'ab'; y[0] = 'c'": "No item of a str can be changed.",
    "{'a', 'b'}['a']": "A set has neither keys nor an order of positions.",
    "'ab'['a']": "The value before [...] is a text",
    "'ab'[2]": "A text of length n has the indices 0 to n - 1",
    "y = {1: 2}\nfor each in y:\n    y[each + 1] = 3": "The loop goes over something whose items",
    "y = {1}\nfor each in y:\n    y.add(each + 1)": "The loop goes over something whose items",
    "[1].remove(2)": "remove and index stop with an error",
    "[1].index(2)": "remove and index stop with an error",
    "'ab'.index('c')": "remove and index stop with an error",
    "[*zip([1], [1, 2], strict=True)]": "zip goes through several sequences at once.",
    "x.shape + 1": "A shape is a tuple",
    "x.shape[2]": "A list of length n",
    "F.dropout(x, '.1')": "A value of type str and one of type float cannot be compared.",
    "float('x')": "This text is not a number.",
    "int('x')": "This text is not a number.",
    "torch.tensor(['x'])": "A text is given where torch expects numbers.",
    "x['x']": "A text is given where torch expects numbers.",
    "F.one_hot(x)": "one_hot takes whole numbers, of dtype long.",
    "torch.cat([])": error_meanings.EMPTY,
    "torch.stack([])": error_meanings.EMPTY,
    "max([])": error_meanings.EMPTY,
    "x[:0].max()": error_meanings.EMPTY,
    "x.view(-1, -1)": "At most one of the lengths may be -1.",
    "x.flatten(1, 0)": "The first axis that is flattened does not come after the last one.",
    "torch.ones(-1)": "A length is negative there.",
    "torch.linalg.inv(torch.zeros(2, 2))": "This matrix has no inverse",
    "torch.arange(1, 0)": "arange counts up to its second number",
    "torch.randint(3, 3, (1,))": "The range that is drawn from is empty.",
    "torch.multinomial(x, 4)": "Without replacement, at most as many are drawn",
    "F.embedding(x, x[0])": "embedding takes the ids first, and then the table.",
    "F.cross_entropy(x, ids + 2)": "A label is not among the classes",
    "F.cross_entropy(x, x.long())": "Labels that have the shape of the scores are taken for probabilities.",
    "torch.multinomial(-x, 1)": "A negative number, an infinity or NaN is among the probabilities.",
    "nn.Dropout(2)": "A probability is between 0 and 1.",
    "small.gain = x": "self.gain holds a parameter, and can hold nothing but another one.",
    "small.map = x": "self.map holds a child module, and can hold nothing but another one.",
    "nn.ModuleDict({'keys': small})": "A module has something else called keys",
    "nn.ModuleDict({'a.b': small})": "The name of a layer or a parameter contains no dot.",
    "nn.Sequential(torch.relu)": "Sequential, ModuleList and ModuleDict hold layers only.",
    "nn.ModuleList(small)": "A ModuleList is made from a list of layers.",
    "small.get_submodule('map.bias')": "get_submodule finds modules only, and bias is something else",
    "small.get_submodule('layers')": "No part of this module is called layers.",
    "nn.ModuleList([small])(x)": "A ModuleList only holds its layers and cannot be called.",
    "torch.optim.SGD([], lr=1)": "The model has no parameters",
    "torch.optim.SGD([leaf * 2], lr=1)": "An optimizer takes parameters, not what is computed from them.",
    "torch.optim.SGD(small.parameters, lr=1)": "A function or method is named there and not called",
    "small.parameters()[0]": "A generator has no positions.",
    "len(x.sum)": error_meanings.UNCALLED,
    "x / x.sum": error_meanings.UNCALLED,
    "1.0 - x.sum": error_meanings.UNCALLED,
    "import math; math.sqrt(x.numel)": error_meanings.UNCALLED,
    "torch.stack([x].reverse())": error_meanings.NO_VALUE,
    "torch.tensor([1, None])": error_meanings.NO_VALUE,
    "class A:\n    def __init__(self):\n        super.__init__()\nA()": "super needs round brackets of its own",
    "raise 'no row'": "raise takes an exception, such as ValueError",
    "y = torch.ones(1, 4); y[:, 1:] = y[:, :-1]": "What is read and what is written overlap in memory.",
    "nn.MultiheadAttention(5, 2)": "The number of features has to be a multiple of the number of heads.",
    "nn.MultiheadAttention(4, 2)(x, x, x)": "The layer was made for vectors with 4 features.",
    "from torch import nm": "There is no nm in torch. Check the spelling.",
    "import torhc": "torhc is not installed, and no exercise needs it.",
    "open('a/b/c')": "There is no such file.",
    "x.to('gpu')": "This device is not there.",
    "(leaf * 2).requires_grad_(False)": "requires_grad is set for parameters and inputs",
    "nn.Parameter(ids)": "Gradients exist for floats only.",
    "leaf.backward()": "backward starts from a single number",
    "torch.einsum('ij,jk', x)": "einsum expects one group of letters for each tensor",
    "torch.einsum('i->i', x)": "Each group of letters has one letter for each axis of its tensor.",
    "torch.einsum('ij,jk', x, x)": "The letter j stands for one length, wherever it occurs.",
    "torch.einsum('ij->k', x)": "The letter k occurs only after the arrow.",
    "x.gather(1, ids)": "gather and scatter need an index with as many axes as the tensor.",
    "x.split([1, 1], 1)": "The lengths of the pieces sum to the length of the axis.",
    "x.expand(3)": "expand takes a length for each axis",
    "x.expand(2, 5)": "Only an axis of length 1 is repeated until it fits.",
    "torch.cat([x, x[0]])": "cat joins tensors along an axis that all of them have; stack makes a new one.",
    "torch.cat([x.sum(), x.sum()])": "cat joins along an axis, and a single number has none.",
    "x.unflatten(1, (2, 2))": "The product of the new lengths",
    "F.layer_norm(x, (4,))": "The norm was made for another length of the last axis.",
    "F.pad(x, (1, 1, 1, 1, 1, 1))": "pad takes two numbers for each axis",
    "F.conv1d(torch.ones(1, 5, 2), torch.ones(2, 3, 1))": "Axis 1 of the input, the channels",
    "torch.bmm(x, x)": "bmm takes two tensors with three axes each.",
    "torch.mm(x[None], x)": "mm and addmm take matrices.",
    "x.dot(x)": error_meanings.TWO_VECTORS,
    "x[0].dot(ids * 1.0)": error_meanings.TWO_VECTORS,
    "torch.outer(x, x)": error_meanings.TWO_VECTORS,
    "x.repeat(2)": "repeat takes a number for each axis.",
    "x[0].tril()": "tril and triu take matrices.",
    "x.masked_fill(x > 0, x)": "masked_fill writes one number.",
    "import numpy; numpy.array([[1], [1, 2]])": "The rows of an array have equal lengths.",
}


def message_of(statement: str) -> str:
    kinds = (ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, OSError, RuntimeError)
    kinds += (SyntaxError, TypeError, ValueError)
    with pytest.raises(kinds) as raised:
        exec(compile(statement, "<a cell>", "exec", dont_inherit=True), dict(NAMES))
    return str(raised.value)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("statement", MEANT)
def test_a_message_is_explained(statement):
    message = message_of(statement)
    assert (meaning(message) or rule_of_shapes(message)).startswith(MEANT[statement]), message


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore:Using a non-tuple sequence")
def test_every_known_message_is_one_that_the_libraries_have():
    said = [message_of(statement) for statement in MEANT]
    known = [*error_meanings.MEANINGS, *error_meanings.RULES]
    assert [begins for begins in known if not any(re.match(begins, message) for message in said)] == []


def said_of(body: str, exercise: str = "attention-weights") -> str:
    """What a notebook's check says of an answer that ends with an error."""
    namespace, source = {"torch": torch, "nn": nn, "F": nn.functional}, body
    if exercise == "attention-weights":
        source = f"def attention_weights(Q, K):\n    {body}\n"
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)
    verdict = judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace), None)
    return " ".join(messages.explanation(verdict).split())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return {}['rows']", "Nothing is stored under the key 'rows'."),
        ("return torch.softmax([Q].append(K), -1)", "A function without a return gives None"),
        ("return nn.Linear(3, 2)(Q)", "The last axis of a linear layer's input is as long as the first size"),
        ("scores == Q", "scores == compares scores with something. A single = gives it a value."),
        ("return Q.reshape(Q.shape[1], -1).reshape(2, 2)", "The product of yours is 4, so a factor of 2 is missing."),
        ("return Q.reshape(4, 4)", "The product of yours is 16, which is 2 times that. Is an axis counted twice?"),
        ("return Q / torch.sqrt(2)", "torch.sqrt takes a tensor, and this is a plain number, of type int."),
        ("return rearrange(Q)", "is it misspelled, is its import missing, or does your argument"),
        ("return query", "No line that has run gives query a value: is it misspelled"),
        ("return matmul(Q, K.mT)", "is it misspelled, or is torch.matmul meant?"),
        ("return [0] * len(Q.sum)", "round brackets are missing"),
        ("return {1: Q}[torch.tensor(1)]", "Each tensor is a separate key, whatever number it holds"),
        ("return torch.stack([Q].reverse())", "A function without a return gives None"),
        ("return nn.Linear(2, 2).load_state_dict({})", 'Missing key(s) in state_dict: "weight", "bias".'),
        ("return scores", "No line that has run gives scores a value: is it misspelled"),
        ("return [Q].append(K).T", "A function without a return gives None"),
        ("return [later for _ in Q]; later = 1", "later is used before it has a value"),
        ("return np.matmul(Q, K)", "No exercise needs NumPy, and it is not imported."),
        ("return Counter(Q)", "No line that has run gives Counter a value"),
        ("return nn.functional.softmax(math.pi)", "math comes from the set-up cell at the top of the notebook"),
        ("return nn.linear(2, 3)(Q)", "torch.nn has no linear. Is Linear meant?"),
        ("return torch.softmaxx(Q, -1)", "torch has no softmaxx. Is softmax meant?"),
        ("return torch.whatever(Q)", "torch has no whatever. Is it spelled like that?"),
        ("return Q.tranpose(1, 2)", "has no tranpose. Is transpose meant?"),
        ("return [Q].appned(K)", "A value of type list has no appned. Is append meant?"),
        ("return torch.stack([Q.max(-1), K.max(-1)])", "max returns two tensors here, the values and their indices."),
        ("return Q.matmul(K.sort(-1))", "sort returns two tensors here, the values and their indices."),
        ("return Q.mT.contiguous.view(4)", "that is not called: round brackets are missing."),
        ("import math; return math.exp(Q)", "torch has functions of the same names"),
        ("return (Q, K).scores", "A tuple has no scores. Its items are unpacked"),
        ("return nn.Linear(3, 2)(Q @ K.mT @ Q)", "In A @ B the last axis of A must be"),
        ("return F.linear(Q, torch.ones(3, 3))", "F.linear takes its weight as (outputs, inputs)"),
        ("return [Q].shape", "A Tensor has: should the value before the dot be one"),
        ("return Q.append(K)", "A list has: should the value before the dot be one"),
        ("return Q.output", "A value of type Tensor has no output. What did you expect there?"),
        ("return Q.max(-1).exp()", "max returns two tensors here, the values and their indices."),
        ("return nn.ModuleDict({'keys': nn.Linear(2, 2)})", "A module has something else called keys"),
        ("return nn.Embedding(3, 2)(Q)", "A row of a table is selected by its id, a whole number"),
        ("from torch import nm", "cannot import name 'nm' from 'torch'. There is no nm in torch."),
        ("exit()", "exit() ends the whole program."),
        ("yield Q", "A function with a `yield` returns a generator"),
        ("raise KeyError('rows')", "Your own code raises this error"),
        ("raise TypeError('f() takes 0 positional arguments but 1 was given')", "Your own code raises this error"),
        (
            "import types, sys\n    raise ValueError('mine').with_traceback("
            "types.TracebackType(None, sys._getframe(), 1 << 30, 1))",
            "ValueError: mine.",
        ),
        ("assert Q is None, 'division by zero'", "Your own code raises this error"),
    ],
)
def test_an_error_is_explained_by_what_raised_it(body, words):
    said = said_of(body)
    assert words in said and said.count(". ") <= 4, said


CLASS = """class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.q, self.k = nn.Linear(d_model, d_k, bias=False), nn.Linear(d_model, d_k, bias=False)
        self.v = nn.Linear(d_model, d_v, bias=False)
    def forward(self, x):
        return self.q(x) @ self.k(x).mT @ self.v(x), self.v(x)
"""


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("return self.q(x)", "return self.queries(x)", "Your SelfAttention has no queries: is it set in __init__"),
        ("self.k(x).mT", "self.k.mT", "The value before the dot is a layer, nn.Linear, and no tensor."),
        ("(nn.Module)", "", "SelfAttention has to be a module: class SelfAttention(nn.Module)."),
        ("(self, x)", "(x)", "Is self missing, or one of the signature's?"),
        ("(self, d_model", "(d_model", "Is self missing, or one of the signature's?"),
        ("def __init__", "def _init_", "has no __init__ with arguments"),
        ("d_model, d_k, d_v)", "d_model, d_k)", "Is self missing, or one of the signature's?"),
        ("d_model, d_k, d_v)", "d_model)", "calls SelfAttention with the arguments of the signature"),
        ("forward", "forwards", "no method called forward"),
        ("        super().__init__()\n", "", "super().__init__() has to come first"),
        ("return self.q(x)", "return nn.ModuleList([self.q])(x)", "A ModuleList only holds its layers"),
    ],
)
def test_slips_in_a_class_are_named(right, wrong, words):
    assert right in CLASS
    said = said_of(CLASS.replace(right, wrong, 1), "self-attention")
    assert words in said, said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("H @ Ua.T", "In that line H is (2, 3) and Ua.T is (5, 4)."),
        ("(H + Ua) @ Ua.mT", "In that line H is (2, 3), Ua is (4, 5) and Ua.mT is (5, 4)."),
        ("H @ Ua.transpose(0, -1)", "In that line H is (2, 3) and Ua.transpose(0, -1) is (5, 4)."),
        ("H @ Ua.permute(1, 0)", "In that line H is (2, 3) and Ua.permute(1, 0) is (5, 4)."),
        ("H @ Ua.permute(1, 2)", "In that line H is (2, 3) and Ua is (4, 5)."),
        ("H @ self.Ua", "In that line H is (2, 3)."),
        ("H @ Ua.Test", "In that line H is (2, 3) and Ua is (4, 5)."),
    ],
)
def test_a_transposed_operand_is_named_as_it_is_written(line, words):
    error = Raised("RuntimeError", "mat1 and mat2 shapes", source=line, shapes=(("H", (2, 3)), ("Ua", (4, 5))))
    assert errors._shapes_that_met(error).startswith(words)


@pytest.mark.parametrize(
    ("statement", "of_shapes"),
    [
        ("x.T.view(-1)", False),
        ("torch.multinomial(x, 4)", False),
        ("x[x]", False),
        ("ids.softmax(0)", False),
        ("x + x.T", True),
        ("x[2]", True),
        ("x.view(4, 2)", True),
    ],
)
def test_an_error_about_memory_or_dtypes_is_none_of_shapes(statement, of_shapes):
    with pytest.raises((RuntimeError, IndexError)) as raised:
        eval(statement, dict(NAMES))
    error = Raised(raised.type.__name__, str(raised.value), source=statement, shapes=(("x", (2, 3)),))
    assert errors.may_be_of_shapes(error) is of_shapes


def test_the_meaning_is_not_taken_from_a_word_in_the_middle():
    assert meaning("no division by zero here") == "" and rule_of_shapes("x: too many indices for tensor") == ""


@pytest.mark.parametrize("assignment", [each.id for each in catalogue.ASSIGNMENTS if each.id[:2].isdigit()])
def test_the_names_of_a_set_up_cell_are_those_that_the_notebook_defines_there(assignment):
    [path] = (ROOT / "exercises" / assignment).glob("*.ipynb")
    sources = ("".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
    set_up = next(source for source in sources if "import torch\n" in source)
    code = ast.parse("\n".join(line for line in set_up.splitlines() if not line.startswith(("%", "!"))))
    imported = (node.names for node in ast.walk(code) if isinstance(node, (ast.Import, ast.ImportFrom)))
    bound = {name.asname or name.name for names in imported for name in names}
    bound |= {node.id for node in ast.walk(code) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    set_up = {name for name in undefined_names.SET_UP if undefined_names.is_set_up(assignment[:2], name)}
    assert set_up == bound & set(undefined_names.SET_UP)
