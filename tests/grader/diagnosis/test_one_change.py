"""Where one small change repairs an answer that no known mistake explains, its own check names the place."""

import ast
import functools
import os
import random
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from autograder import catalogue
from autograder.diagnosis import explain, one_change
from autograder.diagnosis import mutations as mutations_of
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import TWO, namespace_of
from autograder.diagnosis.mutations import Program, mutations
from autograder.diagnosis.one_change import WORDS
from autograder.feedback import render
from autograder.feedback.messages import explanation
from autograder.feedback.report import as_text, report
from autograder.inside.line_limit import MOST_LINES
from autograder.judging.observe import EndpointGone, LocalEndpoint
from autograder.notebook import own_check

KEY = b"a key of thirty-two bytes ......"
HEADS = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h, bias=True):
        super().__init__()
        if h % d_model:
            raise ValueError("d_model must be a multiple of h")
        self.h, self.d_k = h, d_model // h
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = (each.unflatten(-1, (self.h, self.d_k)).transpose(1, 2)
                   for each in (self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)))
        scores = q @ k.transpose(-2, -1) / self.d_k ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        self.last_weights = torch.softmax(scores, dim=-1)
        return self.W_o((self.last_weights @ v).transpose(1, 2).flatten(2))
"""
SOFTMAX = """
def softmax(x, dim):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / (e.sum(dim, keepdim=True) + {})
"""
ANSWERS = {  # a wrong answer that no entry holds -> the kind of its slip, and the code that is named
    "causal-mask": (
        "def causal_mask(T, cached=0):\n"
        "    i = torch.arange(T)[:, None]\n"
        "    j = torch.arange(T + cached)[None]\n"
        "    return j * 3 <= i * 3 + cached * 4\n",
        ("constant", "4"),
    ),
    "softmax": (SOFTMAX.format(0.25), ("side", "e.sum(dim, keepdim=True) + 0.25")),
    "multi-head-attention": (HEADS, ("operands", "h % d_model")),
}


@pytest.fixture(autouse=True)
def _as_long_as_it_takes(monkeypatch):
    monkeypatch.setattr(one_change, "MOST_SECONDS", 200.0)


@functools.cache
def checked(exercise_id: str, source: str, **given):
    endpoint = LocalEndpoint(namespace_of(source))
    return judge_and_explain(catalogue.find(exercise_id), endpoint, KEY, source=source, **{"disclosed": True, **given})


@pytest.mark.parametrize("exercise_id", ANSWERS)
def test_the_place_of_a_slip_is_named_and_the_right_code_is_not(exercise_id):
    source, (kind, code) = ANSWERS[exercise_id]
    found = checked(exercise_id, source).one_change
    assert (found.kind, found.code) == (kind, code)
    assert found.source == source.splitlines()[found.line - 1].strip() and code in found.source
    assert found.checks == len(catalogue.find(exercise_id).probes)


def test_the_report_quotes_the_line_in_text_in_html_and_in_one_sentence():
    verdict = checked("softmax", ANSWERS["softmax"][0])
    line = "return e / (e.sum(dim, keepdim=True) + 0.25)"
    checks = len(catalogue.find("softmax").probes)
    said = f"One change makes all {checks} checks pass: only one of the two sides of `e.sum(dim, keepdim=True) + 0.25`."
    assert said in " ".join(as_text(verdict).split()) and f"at your line 4:  {line}" in as_text(verdict)
    page = render.as_html(report(verdict), "")
    assert "sides of <code" in page and "e.sum(dim, keepdim=True) + 0.25</code>." in page and line in page
    assert said in explanation(verdict) and explanation(verdict).endswith(f"It is line 4: {line}")
    assert "not one of the known mistakes" not in as_text(verdict)


QUOTED = {  # a long call with a slip -> what is quoted of it
    "def f(q, k):\n    return torch.softmax(q @ k.transpose(1, 2) / 8, dim=-1).detach()\n": (
        "method too many", "leaving out `.detach()`", "",
    ),
    "def f(q, k):\n    return (q[:, None].square() - k[None].square()).abs().max(dim=1).values.sum()\n": (
        "function", "another function where `.sum` stands", "",
    ),
    "def f(c, t):\n    return torch.ones(c, t + c, dtype=torch.bool).tril(c)\n": (
        "name", "another name where `c` stands", "`.tril(c)`",
    ),
    "def f(x):\n    return nn.Linear(4, 4)(x)\n": (
        "call too many", "only the argument of `nn.Linear(4, 4)(x)`, without the call", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", QUOTED)
def test_of_a_long_call_the_part_that_is_changed_is_quoted(source):
    kind, words, around = QUOTED[source]
    program = Program(source)
    changes = [each for each in program.changes() if each.kind == kind]
    told = [(WORDS[kind].format(code=f"`{program.code(each)}`"), f"`{program.around(each)}`") for each in changes]
    assert any(each[0] == words and around in ("", each[1]) for each in told), told
    assert all(program.code(each) in source for each in changes)


def test_a_known_mistake_a_right_answer_and_a_blank_one_need_no_search(monkeypatch):
    monkeypatch.setattr(explain, "one_change", lambda *given: pytest.fail("searched"))
    exercise = catalogue.find("softmax")
    for source in (
        exercise.mistakes[0].source,
        exercise.correct[0].source,
        "def softmax(x, dim):\n    raise NotImplementedError",
    ):
        assert checked.__wrapped__("softmax", source).one_change is None


def test_nothing_is_tried_on_hidden_checks_of_a_graded_answer():
    source = ANSWERS["softmax"][0]
    assert checked("softmax", source, disclosed=False).one_change is None
    assert checked("softmax", source, disclosed=False).points == checked("softmax", source).points


def test_where_only_visible_checks_run_the_sentence_says_so():
    source, exercise = ANSWERS["softmax"][0], catalogue.find("softmax")
    endpoint = LocalEndpoint(namespace_of(source))
    told = judge_and_explain(exercise, endpoint, None, source=source).one_change.say()
    assert told.startswith(f"One change makes all {len(exercise.visible)} visible checks pass: only one of the two")


def test_an_answer_that_needs_two_changes_gets_none():
    source = SOFTMAX.format(0.25).replace("torch.exp(x", "1.5 * torch.exp(2 * x")
    assert checked("softmax", source).one_change is None


def test_the_original_is_asked_again_afterwards():
    source = ANSWERS["softmax"][0]
    namespace = namespace_of(source)
    before, endpoint = dict(namespace), LocalEndpoint(namespace)
    verdict = judge_and_explain(catalogue.find("softmax"), endpoint, KEY, disclosed=True, source=source)
    again = judge_and_explain(catalogue.find("softmax"), endpoint, KEY, disclosed=True)
    assert verdict.one_change is not None and again.points == verdict.points < verdict.possible
    assert namespace == before


def test_a_changed_answer_prints_nothing_and_ends(capfd):
    source = """
def path_length(kind, i, j, w=1):
    print("at work")
    steps, at = 0, i
    while at < j:
        at = at + 2
        steps += 1
    return steps + 5
"""
    verdict = checked("path-length", source)
    printed = capfd.readouterr().out.count("at work")
    assert verdict.one_change is None and 0 < printed < 400  # by the checks of the original alone


def test_statements_beside_the_definitions_do_not_run_again():
    marks = []
    source = (
        f"{ANSWERS['softmax'][0]}\nmarks.append(softmax(torch.ones(2), 0))\nfor _ in range(3):\n    marks.append(1)\n"
    )
    namespace = {"marks": marks, **namespace_of("import torch")}
    exec(source, namespace)
    verdict = judge_and_explain(catalogue.find("softmax"), LocalEndpoint(namespace), KEY, disclosed=True, source=source)
    assert verdict.one_change.line == 4 and len(marks) == 4


def test_a_source_that_is_not_what_was_judged_or_no_python_is_not_searched():
    wrong, right = ANSWERS["softmax"][0], SOFTMAX.format(0)
    for source in (right, f"%matplotlib inline\n{wrong}", ""):
        endpoint = LocalEndpoint(namespace_of(wrong))
        verdict = judge_and_explain(catalogue.find("softmax"), endpoint, KEY, disclosed=True, source=source)
        assert verdict.one_change is None and not verdict.failed_explanation


def test_two_mistakes_are_not_claimed_where_one_change_repairs_the_answer(monkeypatch):
    source = ANSWERS["softmax"][0]
    known = catalogue.find("softmax").mistakes[0]
    pair = explain.replace(known, message=f"{TWO} One and the other.")
    monkeypatch.setattr(explain, "diagnose", lambda *given: (pair, None))
    verdict = checked.__wrapped__("softmax", source)
    assert verdict.one_change is not None and verdict.diagnosis is None and "two mistakes" not in as_text(verdict)


def test_a_lost_process_ends_the_search_and_keeps_the_verdict():
    class Lost(LocalEndpoint):
        def ask(self, request):
            if request["do"] == "vary":
                raise EndpointGone("it ended")
            return super().ask(request)

    source = ANSWERS["softmax"][0]
    verdict = judge_and_explain(
        catalogue.find("softmax"), Lost(namespace_of(source)), KEY, disclosed=True, source=source
    )
    assert verdict.one_change is None and verdict.counterexample is not None and not verdict.passed


def test_a_notebooks_own_check_finds_the_cell(monkeypatch, tmp_path):
    source = ANSWERS["softmax"][0]
    cell = tmp_path / "cell.py"
    cell.write_text(source)
    namespace = {"__name__": "__main__", **namespace_of("import torch")}
    exec(compile(source, str(cell), "exec"), namespace)
    assert own_check._cell_of(["softmax"], namespace) == source
    shown = own_check.judge_in_notebook("softmax", namespace)
    assert "only one of the two sides of `e.sum(dim, keepdim=True) + 0.25`" in " ".join(shown["text"].split())
    assert own_check._cell_of(["softmax", "torch"], namespace) == "" == own_check._cell_of(["missing"], namespace)


def test_every_kind_of_change_has_its_words():
    source = (
        HEADS.replace("self.W_v(x_kv)", "x_kv")
        + """
def every(x, *, flag=True):
    if not flag and x[1:].sum() < 0.5:
        x = x.max()
        x = F.softmax(x, dim=-1)
    for i in range(3):
        x = x if flag else -x
        x = x & 3
    return x.any()
"""
    )
    kinds = {change.kind for change in Program(source).changes()}
    assert kinds == WORDS.keys()


def test_the_simplest_changes_come_first_and_those_of_one_effort_in_the_order_of_the_source():
    program = Program(HEADS)

    def known(changes):
        return [(each.kind, each.effort, each.line, id(each._node), [*each._values]) for each in changes]

    expected = sorted(program.changes(), key=lambda change: change.effort)
    assert len(expected) > 500 and known(program.simplest_first()) == known(expected)


def test_a_long_source_has_a_million_changes_and_only_those_that_are_tried_are_made(monkeypatch):
    made, make = [0], mutations_of.Change.__init__

    def counted(change, *values):
        made[0] += 1
        make(change, *values)

    monkeypatch.setattr(mutations_of.Change, "__init__", counted)
    lines = "".join(f"    x{number + 1} = x + x{number}\n" for number in range(800))
    source = f"def softmax(x, dim):\n    x0 = x\n{lines}    return x\n"
    monkeypatch.setattr(one_change, "_passes", lambda *given: False)
    assert one_change._repairs(None, None, (), Program(source)) == []
    assert made[0] <= 2 * one_change.MOST_CHANGES


def test_a_search_ends_in_time_where_no_change_can_be_written(monkeypatch):
    monkeypatch.setattr(one_change, "_passes", lambda *given: False)
    monkeypatch.setattr(one_change, "MOST_SECONDS", 0.0)
    tried = []
    monkeypatch.setattr(Program, "changed", lambda program, change: tried.append(change) or "")
    assert one_change._repairs(None, None, (), Program(HEADS)) == [] and len(tried) <= 1


def test_a_nested_source_is_searched_for_nothing():
    deep = f"def softmax(x, dim):\n    return {'-' * 4_000}x\n"
    assert one_change._searched(catalogue.find("softmax"), None, (), deep) is None


def test_a_change_is_one_place_of_one_function():
    program = Program(HEADS)
    lines = ast.unparse(ast.parse(HEADS)).splitlines()
    for change in random.Random(0).sample(program.changes(), 150):
        text = program.changed(change)
        if text:
            changed = ast.unparse(ast.parse(text)).splitlines()
            common = len([line for line in changed if line in lines])
            assert len(changed) - common <= 6, (change.kind, text)
    assert program.changed(program.changes()[0]) == program.changed(program.changes()[0])


def test_no_mutation_is_given_twice_or_is_the_source_itself():
    found = [text for _, text in mutations(SOFTMAX.format(1), random.Random(0))]
    assert len(found) == len(set(found)) > 50 and ast.unparse(ast.parse(SOFTMAX.format(1))) not in found


def test_a_looping_change_stops_after_a_number_of_lines():
    namespace = namespace_of("def forever(x):\n    return x")
    endpoint = LocalEndpoint(namespace)
    loop = "def forever(x):\n    while True:\n        x = x + 1\n"
    assert endpoint.ask({"do": "vary", "with": {"source": loop}}).get("error") is None
    reply = endpoint.ask({"do": "call", "with": {"name": "forever", "arguments": (1,)}})
    assert reply["error"]["type"] == "TooManyLines" and MOST_LINES < 10**6 and sys.gettrace() is None
    assert endpoint.ask({"do": "vary", "with": {"source": "while True:\n    x = 1"}})["error"]["type"] == "TooManyLines"
    endpoint.ask({"do": "vary", "with": {"source": ""}})
    assert endpoint.ask({"do": "call", "with": {"name": "forever", "arguments": (1,)}})["result"] == 1


def test_a_change_that_crashes_ends_the_search_alone(monkeypatch):
    monkeypatch.setattr(one_change, "_repairs", lambda *given: os.abort())
    verdict = checked.__wrapped__("softmax", ANSWERS["softmax"][0])
    assert verdict.one_change is None and verdict.counterexample is not None and not verdict.failed_explanation


def test_without_a_child_process_nothing_is_changed(monkeypatch):
    monkeypatch.delattr(os, "fork")
    assert checked.__wrapped__("softmax", ANSWERS["softmax"][0]).one_change is None


def test_in_a_kernel_with_threads_and_gradients_the_search_ends_and_the_kernel_goes_on():
    cells = [
        "import torch\nfrom autograder.check import check\nx = torch.randn(300, 300, requires_grad=True)",
        "torch.set_num_threads(2)\n(x @ x).sum().backward()",
        ANSWERS["softmax"][0],
        "from autograder.diagnosis import one_change\none_change.MOST_SECONDS = 100.0\ncheck('softmax')",
        "print(torch.get_num_threads(), float((x @ x.detach()).sum().isfinite()))",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    told = next(each["data"]["text/plain"] for each in notebook.cells[3].outputs if "data" in each)
    assert "One change" in told and "at your line 3" in told, told  # IPython strips the empty line
    assert notebook.cells[4].outputs[0]["text"] == "2 1.0\n"
