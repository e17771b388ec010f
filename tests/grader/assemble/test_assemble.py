"""A learner's notebooks become one file: what is in it, what does not and why, and that it is theirs that runs."""

import json
import runpy
import shutil
import subprocess
import sys

import pytest
import torch

from autograder import __main__ as command_line
from autograder import catalogue
from autograder.assemble import gather, write
from autograder.prepare import sample_class

ASSIGNMENTS = {assignment.id: assignment for assignment in catalogue.ASSIGNMENTS}


def code(name: str, source: str) -> dict:
    metadata = {"nbgrader": {"grade_id": name}} if name else {}
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": [], "execution_count": None}


def piece(exercise_id: str, *cells: tuple[str, str]) -> gather.Gathered:
    exercise = catalogue.find(exercise_id)
    return gather.answer_of([(*cell, False) for cell in cells], catalogue.assignment_of(exercise), exercise)


def run(*pieces: gather.Gathered) -> tuple[dict, str]:
    """The namespace of the file with these pieces after running it, and its text."""
    text = write.as_file(pieces, 32).text
    space: dict = {"__name__": "my_transformer"}
    exec(compile(text, "my_transformer.py", "exec"), space)
    return space, text


def test_two_helpers_of_one_name_stay_two_and_each_answer_calls_its_own():
    first = piece(
        "batch-matmul", ("batch-matmul", "def step(x):\n    return x + 1\ndef batch_matmul(a, b): return step(a)")
    )
    second = piece(
        "dot",
        (
            "dot",
            "def step(x):\n    return x * 10  # mine\n\ndef dot(a, b):\n    text = 'step'  # the step of dot\n"
            "    inner = lambda step: step + 5\n    return step(a) + inner(0), text",
        ),
    )
    space, text = run(first, second)
    assert space["batch_matmul"](1, None) == 2
    assert space["dot"](1, None) == (15, "step")
    assert "# mine" in text and "# the step of dot" in text
    assert write.as_file([first, second], 32).renamed == {"dot": {"step": "step_03"}}


def test_who_calls_a_renamed_helper_is_another_helper_too():
    cells = "def low(x):\n    return {}\ndef high(x):\n    return low(x) + 1\ndef {}(a, b):\n    return high(a)"
    first = piece("batch-matmul", ("batch-matmul", cells.format("x", "batch_matmul")))
    second = piece("dot", ("dot", cells.format("x * 100", "dot")))
    space, _ = run(first, second)
    assert (space["batch_matmul"](1, None), space["dot"](1, None)) == (2, 101)


def test_one_helper_of_two_answers_stands_there_once():
    body = "def half(x):\n    return x / 2\ndef {}(a, b):\n    return half(a)"
    _, text = run(
        piece("batch-matmul", ("batch-matmul", body.format("batch_matmul"))), piece("dot", ("dot", body.format("dot")))
    )
    assert text.count("def half") == 1


def test_imports_stand_on_top_once_and_only_where_they_are_needed():
    set_up = ("set-up", "import math, os\nfrom collections import Counter, deque\nimport torch")
    _, text = run(
        piece("batch-matmul", set_up, ("batch-matmul", "def batch_matmul(a, b):\n    return math.pi, Counter()")),
        piece("dot", set_up, ("dot", "import math\ndef dot(a, b):\n    return math.e")),
    )
    assert text.count("import math\n") == 1
    assert text.index("import math") < text.index("def batch_matmul")
    assert not any(word in text for word in ("import os", "deque", "import torch"))


def test_what_is_only_called_like_a_local_name_or_is_no_definition_stays_in_the_notebook():
    set_up = ("set-up", "words = ['I']\nscale = 3")
    answer = ("dot", "%timeit 1\nprint('tried')\ndef dot(a, b):\n    words = a\n    return words * scale\ndot(1, 2)")
    space, text = run(piece("dot", set_up, answer))
    assert space["dot"](2, None) == 6
    assert "['I']" not in text and "tried" not in text and "dot(1, 2)" not in text


def test_a_method_that_is_added_to_a_class_afterward_comes_along():
    cell = "class SelfAttention:\n    pass\ndef forward(self):\n    return 7\nSelfAttention.forward = forward"
    space, _ = run(piece("self-attention", ("self-attention", cell)))
    assert space["SelfAttention"]().forward() == 7


def test_of_two_definitions_in_one_notebook_the_last_before_the_check_counts():
    space, text = run(
        piece(
            "dot",
            ("dot", "def dot(a, b):\n    return help(a)"),
            ("", "def help(x): return 'first'"),
            ("", "def help(x): return 'last'"),
            ("dot-check", "check('dot')"),
            ("", "def help(x): return 'too late'"),
        )
    )
    assert space["dot"](1, 1) == "last"
    assert text.count("def help") == 1


@pytest.mark.parametrize(
    "taken", ['softmax = part("softmax")', "from transformer_ref.model.softmax import softmax"], ids=["part", "import"]
)
def test_what_is_taken_from_the_package_is_the_learner_s_own_where_the_file_has_it(taken):
    attention = piece(
        "attention-weights",
        ("set-up", f"from transformer_ref.learner.mine import part\n{taken}"),
        ("attention-weights", "def attention_weights(Q, K):\n    return softmax(Q, -1)"),
    )
    own = piece("softmax", ("softmax", "def softmax(x, dim):\n    return 'mine'"))
    assert run(own, attention)[0]["attention_weights"](None, None) == "mine"
    alone, text = run(attention)
    assert torch.equal(alone["attention_weights"](torch.zeros(2), None), torch.full((2,), 0.5))
    assert "from transformer_ref.model.softmax import softmax" in text and "transformer_ref.learner.mine" not in text


DEEP = ["y = " + "-" * 400 + "1", "y = " + " + ".join(["1"] * 2_900), "y = " + "-" * 4_000 + "1", "%pwd\n" * 3_000]


@pytest.mark.parametrize("deep", DEEP, ids=["nested", "a long sum", "nested further", "magics"])
def test_a_cell_that_cannot_be_read_costs_its_own_answer_alone(deep):
    whole = "def dot(a, b):\n    return a"
    assert run(piece("dot", ("", deep), ("dot", whole)))[0]["dot"](7, None) == 7
    with pytest.raises(gather.Unreadable, match="nested too deeply|too many magics"):
        piece("dot", ("dot", f"{deep}\n{whole}"))


def test_an_answer_with_a_form_feed_in_it_is_taken_whole():
    answer = piece("dot", ("dot", "mark = '''\x0c\u2028'''\ndef dot(a, b):\n    return mark\n# the end"))
    assert run(answer)[0]["dot"](1, 2) == "\x0c\u2028"


def test_an_answer_that_is_no_python_says_the_line():
    with pytest.raises(gather.Unreadable, match="line 2 of the cell"):
        piece("dot", ("dot", "def dot(a, b):\n    return (a"))


SOFTMAX = (
    "def softmax(x, dim):\n    p = torch.exp(x - x.amax(dim, keepdim=True))\n    return p / p.sum(dim, keepdim=True)"
)
ATTENTION = "def attention_weights(Q, K):\n    return softmax(Q @ K.mT / math.sqrt(Q.shape[-1]){})"
SET_UP = (
    "import math\nimport torch\nfrom torch import nn\n"
    "from transformer_ref.learner.mine import part\nsoftmax = part('softmax')"
)


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    """A learner's folder: two notebooks, some of it right, some wrong, some not begun, and what the command said."""
    folder = tmp_path_factory.mktemp("learner")
    todo = "def {}(*given):\n    raise NotImplementedError"
    notebooks = {
        "04_softmax/softmax": {
            "softmax": SOFTMAX,
            "linear-weights": "def linear_weights(x):\n    return x / x.sum(",
            "log-softmax": "def log_softmax(x, dim):\n    return softmax(x, dim).log()",
            "temperature": todo.format("temperature"),
        },
        "05_self_attention/self_attention": {
            "attention-weights": ATTENTION.format(
                ""
            ),  # the package's softmax knows the last axis by itself, theirs not
            "soft-lookup": "def soft_lookup(q, keys, values, beta):\n    return softmax(beta * keys @ q, -1) @ values",
            "self-attention": "class SelfAttention(nn.Module):\n"
            "    def __init__(self, d, k, v):\n        super().__init__()\n"
            "        self.q, self.k, self.v = nn.Linear(d, k), nn.Linear(d, k), nn.Linear(d, v)\n"
            "    def forward(self, x):\n        w = attention_weights(self.q(x), self.k(x))\n"
            "        return w @ self.v(x), w",
        },
    }
    for name, cells in notebooks.items():
        path = folder / f"{name}.ipynb"
        path.parent.mkdir()
        written = [code("set-up", SET_UP), *(code(*cell) for cell in cells.items())]
        path.write_text(json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), "utf-8")
    said = subprocess.run(
        [sys.executable, "-m", "autograder", "assemble", "--from", folder], capture_output=True, text=True, cwd=folder
    )
    assert said.returncode == 0, said.stderr
    return folder, said.stdout


def test_each_exercise_is_in_or_has_its_reason(learner):
    lines = {line.split()[2].strip(":,"): line for line in learner[1].splitlines() if line[:3] in ("  ✓", "  ✗", "  ·")}
    assert lines["softmax"].startswith("  ✓")
    assert lines["soft_lookup"].endswith("(with softmax: yours)")
    assert "not valid Python yet" in lines["linear_weights"]
    assert lines["log_softmax"].startswith("  ✗") and "log" in lines["log_softmax"]
    assert lines["temperature"] == "  · 04.4 temperature: not written yet"
    assert "its cell is not in the notebook" in lines["softmax_jacobian"]
    assert "not together with your other code" in lines["attention_weights"]
    assert "it uses attention-weights, which is not in the file" in lines["SelfAttention"]
    assert "02_text_to_vectors: no notebook here" in learner[1]


def test_the_file_runs_without_the_notebooks_and_holds_what_passed_alone(learner):
    space = runpy.run_path(str(learner[0] / "my_transformer.py"))
    own = {name for name, value in space.items() if getattr(value, "__module__", "") == "<run_path>"}
    assert own == {"softmax", "soft_lookup"}
    assert f"2 of {sum(len(each.exercise_ids) for each in ASSIGNMENTS.values())} exercises" in space["__doc__"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder in which 05's weights are wrong, what else is in 05 and 07 is right, and one answer may be
    filled."""
    folder = tmp_path_factory.mktemp("filled")
    answers = {name: str(catalogue.find(name).correct[0].source) for name in ("soft-lookup", "add-positions")}
    answers["soft-lookup"] = (
        "def soft_lookup(q, keys, values, beta):\n    return softmax(beta * (keys @ q), -1) @ values"
    )
    wrong = "def attention_weights(Q, K):\n    return softmax(Q @ K.mT)"
    module = (
        "class SelfAttention(nn.Module):\n    def __init__(self, d, k, v):\n        super().__init__()\n"
        "        self.q, self.k, self.v = nn.Linear(d, k), nn.Linear(d, k), nn.Linear(d, v)\n"
        "    def forward(self, x):\n        w = attention_weights(self.q(x), self.k(x))\n"
        "        return w @ self.v(x), w"
    )
    notebooks = {
        "self_attention": [
            ("attention-weights", wrong),
            ("soft-lookup", answers["soft-lookup"]),
            ("self-attention", module),
        ],
        "positional_encoding": [("add-positions", answers["add-positions"])],
    }
    for name, cells in notebooks.items():
        written = [code("set-up", SET_UP), *(code(*cell) for cell in cells)]
        text = json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        (folder / f"{name}.ipynb").write_text(text, "utf-8")
    command = [sys.executable, "-m", "autograder", "assemble", "--from", folder, "--fill", "attention-weights"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert said.returncode == 0, said.stderr
    return folder / "my_transformer.py", said.stdout


def test_a_wrong_answer_is_filled_where_that_was_asked_and_the_file_says_so_at_that_place(filled):
    path, said = filled
    space = runpy.run_path(str(path))
    assert space["NOT_MINE"] == ["attention_weights"]
    weights = space["SelfAttention"](4, 3, 2)(torch.randn(1, 5, 4))[1]
    assert torch.allclose(weights.sum(-1), torch.ones(1, 5))
    heading = " ".join(path.read_text("utf-8").partition("\n# 05.2")[2].partition("\ndef ")[0].split("\n# "))
    assert "the course's answer, since yours is not in" in heading
    assert "○ 05.2 attention_weights: the course's answer" in said
    assert "05.4 SelfAttention: the course's" not in said and "SelfAttention" in said


def test_what_a_chapter_may_not_import_while_it_is_graded_its_neighbor_in_the_file_may(filled):
    text = filled[0].read_text("utf-8")
    assert "from transformer_ref.model.softmax import softmax" in text  # 05's; 07 sees no module of the package
    assert "def add_positions" in text and "  ✓ 07.2 add_positions" in filled[1]


def test_an_exercise_to_fill_that_does_not_exist_is_named(tmp_path, learner, capsys):
    command = ["assemble", "--from", str(learner[0]), "--output", str(tmp_path / "x.py"), "--fill", "decoder"]
    assert command_line.main(command) == 2
    assert "fill: expected ids of exercises" in capsys.readouterr().err


def test_a_file_of_somebody_else_is_left_alone(learner, capsys):
    foreign = learner[0] / "thesis.py"
    foreign.write_text("x = 1\n", "utf-8")
    assert command_line.main(["assemble", "--from", str(learner[0]), "--output", str(foreign)]) == 2
    assert "was not written by this command" in capsys.readouterr().err
    assert foreign.read_text("utf-8") == "x = 1\n"


def test_a_folder_without_notebooks_says_which_argument_names_another(tmp_path, capsys):
    assert command_line.main(["assemble", "--from", str(tmp_path)]) == 2
    assert "--from FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize(
    "body",
    [
        "    scores = a / b ** 0.5  # why the root?\n    return scores",
        "    return (a\n            % b) / b ** 0.5",
        "    text = '''\n%not a magic\n!nor this\nwhat is this?\n'''\n    return len(text) * a / b",
        "    # is this right?\n    return a * 2",
    ],
)
def test_a_line_that_only_looks_like_a_magic_stays(body):
    source = f"def dot(a, b):\n{body}"
    plain = {}
    exec(source, plain)
    space, _ = run(piece("dot", ("dot", source)))
    assert space["dot"](7, 4) == plain["dot"](7, 4)
    marked, _ = run(piece("dot", ("dot", f"%matplotlib inline\n{source}\n!ls\nhelp?\n%timeit dot(1, 2)")))
    assert marked["dot"](7, 4) == plain["dot"](7, 4)


@pytest.mark.parametrize("magic", ["%time b", "!ls", "names = !ls", "b?", "%%time\nb"])
def test_a_magic_inside_an_answer_or_alone_in_a_cell_is_left_out(magic):
    answer = (
        f"def dot(a, b):\n    if b:\n        {magic}\n    return a"
        if "%%" not in magic
        else "def dot(a, b):\n    return a"
    )
    space, text = run(piece("dot", ("", magic), ("dot", answer)))
    assert space["dot"](3, 1) == 3
    assert "get_ipython" not in text and "!" not in text


BINDING = {  # statements of a function of `a` that bind the name `help` locally, and return a through it
    "nonlocal": """
        help = 0
        def deeper():
            nonlocal help
            help += a
        deeper()
        return help""",
    "except": """
        try:
            raise ValueError(a)
        except ValueError as help:
            return help.args[0]""",
    "case": """
        match [a, 0]:
            case [help, *_]:
                return help""",
    "case as": """
        match a:
            case int() as help:
                return help""",
    "star": """
        match [0, a]:
            case [_, *help]:
                return help[0]""",
    "rest": """
        match {"k": 0, "r": a}:
            case {"k": _, **help}:
                return help["r"]""",
    "with": """
        with __import__("contextlib").nullcontext(a) as help:
            return help""",
    "loop": """
        for help in [a]:
            return help""",
    "walrus": """
        return (help := a)""",
}


@pytest.mark.parametrize("binding", BINDING)
def test_a_renamed_helper_is_renamed_wherever_python_binds_its_name(binding):
    def answer(name, factor):
        inner = f"    def inner(a):{BINDING[binding]}\n"
        return f"def help(x):\n    return x * {factor}\ndef {name}(a, b):\n{inner}    return help(a), inner(a)"

    first = piece("batch-matmul", ("batch-matmul", answer("batch_matmul", 10)))
    second = piece("dot", ("dot", answer("dot", 100)))
    space, _ = run(first, second)
    assert space["batch_matmul"](5, None) == (50, 5)
    assert space["dot"](5, None) == (500, 5)


def test_untouched_notebooks_are_told_apart_from_wrong_ones(tmp_path, monkeypatch, capsys):
    released = sample_class.ROOT / "exercises" / "04_softmax"
    shutil.copytree(released, tmp_path / "exercises" / released.name)
    monkeypatch.chdir(tmp_path)
    assert command_line.main(["assemble"]) == 1
    shown = capsys.readouterr()
    assert f"notebooks in {tmp_path / 'exercises'}" in shown.err
    assert f"No answer is written in {tmp_path / 'exercises'}" in shown.out and "autograder learn" in shown.out
