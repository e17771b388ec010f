"""The ends of the notebooks: explorers around a learner's functions, their attention in a translator, the way on."""

import inspect
import math
import os
import re
import subprocess
import sys
from importlib import import_module

import pytest
import torch
from torch import nn

from autograder import catalogue, course, transplant
from transformer_ref.visualization import explore as explorers

ROOT = course.find_root()
by_assignment = pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda a: a.id)


def cells_of(assignment) -> dict[str, str]:
    notebook = course.read_notebook(course.notebook_path(ROOT, "solutions", assignment))
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


def shown(assignment, space: dict):
    """The explorer of a notebook whose cells have left these names."""
    space["explore"] = explorers.explore
    return eval(f"explore({assignment.notebook!r})", space)


def solved(assignment) -> dict:
    space: dict = {}
    notebook = course.read_notebook(course.notebook_path(ROOT, "solutions", assignment))
    for name, source, is_answer in course.code_cells(notebook):
        if is_answer or name.endswith("-set-up"):
            exec(source, space)
    return space


def words(panel) -> str:
    return re.sub("<.*?>", "", panel.children[-1].value)


@by_assignment
def test_a_notebook_ends_with_its_explorer_and_what_to_do_next(assignment):
    cells = cells_of(assignment)
    stem = assignment.notebook.replace("_", "-")
    assert list(cells)[-2:] == [f"{stem}-explorer", f"{stem}-next"]
    assert f'explore("{assignment.notebook}")' in cells[f"{stem}-explorer"]
    folder = course.notebook_path(ROOT, "exercises", assignment).parent
    for link in re.findall(r"\]\(((?!http)[^)#\s]+)\)", "\n".join(cells.values())):
        assert (folder / link).is_file(), link
    assert "Ctrl+S" in next(iter(cells.values())) and "Begin here" in next(iter(cells.values()))


@by_assignment
def test_a_link_to_the_book_names_a_page_and_a_section_that_it_has(assignment):
    links = re.findall(r"http://127\.0\.0\.1:8000/(\w+)\.html#([\w-]+)", "\n".join(cells_of(assignment).values()))
    assert len(links) >= len(assignment.exercises)
    for page, label in links:
        assert f"({label})=" in (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")


@by_assignment
def test_an_explorer_shows_the_learner_s_functions_and_follows_them_when_they_change(assignment):
    space = solved(assignment)
    panel = shown(assignment, space)
    assert "<svg" in panel.children[-2].value and "✗" not in words(panel)

    module = import_module(f"transformer_ref.visualization.explorers.{assignment.notebook}")
    name = next(iter(inspect.signature(module.explorer).parameters))  # one that the picture is made of

    def broken(*given):
        raise ZeroDivisionError("mine")

    def move():
        control = panel.children[-3]
        control.value = control.value % control.max + control.step

    space[name] = broken
    move()
    assert "ZeroDivisionError" in words(panel) and name in words(panel)
    for odd in (None, "text", torch.zeros(()), torch.full((7, 7), math.nan), float("nan"), {}, [[]]):
        space[name] = lambda *given, odd=odd: odd
        move()
        assert "Traceback" not in words(panel) and words(panel)
    del space[name]
    move()
    assert f"There is no {name} in this notebook yet" in words(panel)


def test_under_grading_an_explorer_and_the_translator_do_nothing_and_import_no_widgets():
    program = (
        "import sys\nfrom transformer_ref.visualization.explore import explore\n"
        "from autograder.transplant import translate_with_mine\n"
        "print(explore('softmax'), translate_with_mine(), sorted({'ipywidgets', 'torch'} & sys.modules.keys()))"
    )
    environment = os.environ | {explorers.GRADED: "1", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ran.stdout == "None None []\n", ran.stderr


class SelfAttention(nn.Module):
    """As a learner writes it."""

    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d, bias=False) for d in (d_k, d_k, d_v))

    def forward(self, x):
        Q, K, V = self.W_q(x), self.W_k(x), self.W_v(x)
        weights = torch.softmax(Q @ K.mT / math.sqrt(Q.shape[-1]), dim=-1)
        return weights @ V, weights


class Fused(nn.Module):
    """One parameter, values first, nothing said by its name."""

    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.table, self.d_k = nn.Parameter(torch.randn(d_model, 2 * d_k + d_v)), d_k

    def forward(self, x):
        V, K, Q = (x @ self.table).split(self.d_k, dim=-1)
        weights = torch.softmax(Q @ K.mT / math.sqrt(self.d_k), dim=-1)
        return weights @ V, weights


class Zeros(SelfAttention):
    def forward(self, x):
        return 0 * super().forward(x)[0], None


class Blank(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        raise NotImplementedError


class Unregistered(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.tables = [torch.randn(d_model, d_k)] * 3


class Wide(SelfAttention):
    def forward(self, x):
        return x


def said(own, capsys) -> str:
    space = {"SelfAttention": own, "translate": transplant.translate_with_mine}
    exec('translate("I bought new windows for my computer.")', space)
    return capsys.readouterr().out


@pytest.mark.parametrize("own", [SelfAttention, Fused])
def test_a_learner_s_attention_computes_inside_the_translator(own, capsys):
    printed = said(own, capsys)
    assert printed.count("Ho comprato un nuovo Windows per il mio computer.") == 2
    assert "8 copies" in printed and "✗" not in printed


def test_one_that_returns_zeros_loses_a_word_and_is_said_to_compute_something_else(capsys):
    printed = said(Zeros, capsys)
    assert "with yours   Ho comprato un nuovo computer." in printed
    assert "✗ Given the same weights" in printed


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (None, "There is no class SelfAttention"),
        (Blank, "not written yet"),
        (Unregistered, "no three projections"),
        (Wide, "returned the shape (1, 9, 129)"),
    ],
)
def test_one_that_cannot_take_its_place_gets_a_sentence(own, reason, capsys):
    printed = said(own, capsys)
    assert printed.startswith("✗") and reason in printed
