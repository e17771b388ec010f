"""A learner at their desk, in real JupyterLab and a browser: what is there and what is not, a wrong answer, a right
one, and what the end shows."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_server import PATIENCE, ROOT, desk
from playwright.sync_api import Browser, Locator, Page, expect

from autograder import catalogue
from autograder.catalogue.exercise import Assignment

NOTEBOOK = "05_self_attention/self_attention.ipynb"

WRONG = """
def attention_weights(Q, K):
    return torch.softmax(Q @ K.transpose(-2, -1), dim=-1)
"""
RIGHT = """
def attention_weights(Q, K):
    scores = Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5
    unnormalized = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return unnormalized / unnormalized.sum(dim=-1, keepdim=True)
"""

pytestmark = [pytest.mark.browser, pytest.mark.slow]


class LabNotebook:
    """One notebook open in JupyterLab, its cells found by their id."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.cells = json.loads(path.read_text(encoding="utf-8"))["cells"]

    def cell(self, cell_id: str) -> Locator:
        place = [cell["id"] for cell in self.cells].index(cell_id)
        return self.page.locator(".jp-Notebook .jp-Cell").nth(place)

    def write(self, cell_id: str, source: str) -> None:
        """Replaces a cell's source, as selecting all and typing does."""
        editor = self.cell(cell_id).locator(".cm-content")
        editor.click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(source.strip())
        expect(editor).to_contain_text(source.strip().splitlines()[-1].strip())

    def run(self, cell_id: str) -> str:
        """Runs a cell with Ctrl-Enter, waits until its number appears, returns the text below it."""
        cell = self.cell(cell_id)
        prompt = cell.locator(".jp-InputArea-prompt")
        before = prompt.inner_text()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        expect(prompt).not_to_have_text(before, timeout=PATIENCE)
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=PATIENCE)
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())


def code_cells_before(path: Path, cell_id: str) -> list[str]:
    """Ids of the code cells that come before a cell and are nobody's answer or check."""
    ids = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["id"] == cell_id:
            return ids
        graded = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code" and not graded.get("solution") and not graded.get("grade"):
            ids.append(cell["id"])
    raise AssertionError(f"{path.name} has no cell {cell_id}")


def look_around(page: Page) -> None:
    """What a newcomer meets: the notebook, and none of a teacher's tools, of solutions, of the news."""
    expect(page.locator(".jp-DirListing-item")).to_have_count(1, timeout=PATIENCE)
    expect(page.locator(".lm-MenuBar-itemLabel").filter(has_text="Help")).to_be_visible(timeout=PATIENCE)
    everything = page.locator("body").inner_text() + page.locator("body").inner_html()
    for word in ("nbgrader", "Nbgrader", "Formgrader", "Create Assignment", "Validate", "Jupyter news"):
        assert word not in everything, word
    page.locator(".jp-BreadCrumbs-home").click()
    expect(page.locator(".jp-DirListing-item")).to_have_count(len(catalogue.ASSIGNMENTS), timeout=PATIENCE)
    assert "solutions" not in page.locator(".jp-DirListing").inner_text()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str], Path]]:
    """A learner's desk. Yields the address that it prints, all that it prints, and the folder of notebooks."""
    home = tmp_path_factory.mktemp("lab")
    with desk(home, home / "mine") as (address, said):
        yield address, said, home / "mine"


@pytest.fixture(scope="module")
def notebook(lab: tuple[str, list[str], Path], browser: Browser) -> Iterator[LabNotebook]:
    """The notebook, open with a kernel that the tests share."""
    address, _, work = lab
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(address, timeout=PATIENCE)
    expect(page.locator(".jp-Notebook h1").first).to_contain_text("00 Start here", timeout=PATIENCE)
    look_around(page)
    page.goto(address.replace("00_start_here/start_here.ipynb", NOTEBOOK) + "&reset", timeout=PATIENCE)
    expect(page.locator(".jp-Notebook h1").first).to_contain_text("05 Self-attention", timeout=PATIENCE)
    opened = LabNotebook(page, work / NOTEBOOK)
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(opened.cells), timeout=PATIENCE)
    # JupyterLab calls a notebook idle also before it has a kernel.
    expect(page.locator(".jp-Toolbar-kernelName")).to_contain_text("Python", timeout=PATIENCE)
    indicator = page.locator(".jp-Notebook-ExecutionIndicator")
    expect(indicator).to_have_attribute("data-status", "idle", timeout=PATIENCE)
    yield opened
    page.close()


def test_a_wrong_answer_is_diagnosed_and_a_right_one_praised(
    notebook: LabNotebook, lab: tuple[str, list[str], Path]
) -> None:
    for cell_id in code_cells_before(lab[2] / NOTEBOOK, "attention-weights"):
        printed = notebook.run(cell_id)
        assert "Error" not in printed

    notebook.write("attention-weights", WRONG)
    notebook.run("attention-weights")
    report = notebook.run("attention-weights-check")
    assert "✗" in report
    assert "square root of d_k" in report
    shown = notebook.cell("attention-weights-check")
    section = shown.get_by_role("link", name='05, "Scaled dot products: why divide?"')
    assert section.get_attribute("href") == "https://book.example/05_self_attention.html#sec-05-why-divide"
    ink = "element => getComputedStyle(element).color"
    assert section.evaluate(ink) != shown.locator("td").last.evaluate(ink)
    assert shown.locator("td").last.evaluate("element => getComputedStyle(element).fontWeight") == "700"

    notebook.write("attention-weights", RIGHT)
    notebook.run("attention-weights")
    report = notebook.run("attention-weights-check")
    assert "✗" not in report
    assert "✓" in report

    assert "Next: 05.1 attend." in notebook.run("self-attention-progress")
    notebook.page.keyboard.press("ControlOrMeta+S")
    stored = lab[2] / NOTEBOOK
    notebook.page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
    [output, *_] = next(
        cell["outputs"]
        for cell in json.loads(stored.read_text(encoding="utf-8"))["cells"]
        if cell["id"] == "attention-weights-check"
    )
    assert {"text/plain", "text/html"} == output["data"].keys()  # terminals and other viewers read the first
    assert not re.search("<|stderr", "".join(output["data"]["text/plain"]))
    assert json.loads((lab[2] / ".progress.json").read_text(encoding="utf-8"))["exercises"].keys() == {
        "attention-weights"
    }


def test_the_explorer_is_drawn_by_the_learner_s_function_and_a_key_changes_the_picture(
    notebook: LabNotebook, lab: tuple[str, list[str], Path]
) -> None:
    for cell_id in code_cells_before(lab[2] / NOTEBOOK, "attention-weights"):
        notebook.run(cell_id)
    notebook.write("attention-weights", RIGHT)
    notebook.run("attention-weights")
    notebook.run("self-attention-explorer")
    explorer = notebook.cell("self-attention-explorer")
    picture, words = explorer.locator("svg.drawing"), explorer.get_by_role("status")
    expect(words).to_contain_text("Your attention_weights: I looks most at", timeout=PATIENCE)
    first, said = picture.inner_html(), words.inner_text()

    head = explorer.get_by_role("slider")
    head.focus()
    notebook.page.keyboard.press("ArrowRight")
    expect(words).not_to_have_text(said, timeout=PATIENCE)
    assert picture.inner_html() != first

    sentence = explorer.get_by_role("textbox").and_(explorer.locator("input[type=text]"))
    sentence.fill("We closed the door.")
    expect(words).to_contain_text("We looks most at", timeout=PATIENCE)

    notebook.write("attention-weights", "def attention_weights(Q, K):\n    return Q / 0 @ K")
    notebook.run("attention-weights")
    head.focus()
    notebook.page.keyboard.press("ArrowLeft")
    expect(words).to_contain_text("Your attention_weights stopped with RuntimeError", timeout=PATIENCE)
    assert "Traceback" not in explorer.inner_text()

    assert "There is no class SelfAttention" in notebook.run("self-attention-translator")


def saved_when_run(page: Page, stored: Path) -> list[dict[str, Any]]:
    """The cells of a notebook that is running, as saved when the last of code has been run."""
    for _ in range(2 * PATIENCE // 1000):
        page.keyboard.press("ControlOrMeta+S")
        page.wait_for_timeout(1000)
        cells = json.loads(stored.read_text(encoding="utf-8"))["cells"]
        if [cell for cell in cells if cell["cell_type"] == "code"][-1]["execution_count"]:
            return cells
    raise AssertionError(f"{stored.name} did not come to its end")


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda assignment: assignment.id)
def test_a_solved_notebook_runs_whole_and_its_explorer_is_drawn(
    lab: tuple[str, list[str], Path], browser: Browser, assignment: Assignment
) -> None:
    """Last of all, since it writes over the learner's notebooks. The capstone learns for a few steps only, so what is
    asked of its translations fails."""
    address, _, work = lab
    name = f"{assignment.id}/{assignment.notebook}.ipynb"
    solved = (ROOT / "solutions" / name).read_text(encoding="utf-8")
    short = solved.replace("capstone.train(model, experiment)", "capstone.train(model, experiment, steps=20)")
    (work / name).write_text(short, encoding="utf-8")
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(address.replace("00_start_here/start_here.ipynb", name) + "&reset", timeout=PATIENCE)
    expect(page.locator(".jp-Notebook h1").first).to_contain_text(assignment.id[:2], timeout=PATIENCE)
    expect(page.locator(".jp-Toolbar-kernelName")).to_contain_text("Python", timeout=PATIENCE)
    expect(page.locator(".jp-Notebook-ExecutionIndicator")).to_have_attribute("data-status", "idle", timeout=PATIENCE)
    page.locator(".lm-MenuBar-itemLabel").filter(has_text="Run").click()
    page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
    cells = saved_when_run(page, work / name)
    for _ in range(4):  # the last cell is in sight, and cells far from it are not in the page
        page.keyboard.press("ArrowUp")
    explorer = page.locator(".jp-Notebook .jp-Cell").filter(has_text="explore(")
    expect(explorer.locator(".jp-OutputArea-output svg").first).to_be_visible(timeout=PATIENCE)
    outputs = [(cell["id"], output) for cell in cells for output in cell.get("outputs", ())]
    assert [(where, each["ename"]) for where, each in outputs if each["output_type"] == "error"] == []
    checks = [f"{exercise.id}-check" for exercise in assignment.exercises if not exercise.trained]
    told = [
        "".join(each.get("data", {}).get("text/plain", each.get("text", "")))
        for where, each in outputs
        if where in checks
    ]
    assert len(told) == len(checks)
    assert [text for text in told if "✗" in text or "✓" not in text] == []
    page.close()
