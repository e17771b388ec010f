"""The learner's side in an environment with the wheel and nothing of this repository, on any system.

    build/oldest/bin/python tests/repository/learner_side.py              `make test-oldest`: all chapters, in order
    python tests/repository/learner_side.py 05 13 --folder "Zoë 学生"     these chapters, in a folder of this name
    python tests/repository/learner_side.py none                          no chapter, only the commands

The notebooks are copied as `learn` does it, and the solved ones put in their place; `assemble` gathers their answers
into `my_transformer.py`. A kernel runs each notebook from its first cell to its last, explorers too; it takes from
earlier chapters what the learner wrote. Every check must say that all is right, and nothing may be on stderr. A model
is trained for a few steps, translates lines from one pipe to another, and is exported as a page. Texts go through
pipes in the code page of the environment (PYTHONIOENCODING), as they do on Windows.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import nbformat
import torch
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
SECONDS_A_CELL = 900  # the capstone trains
# The least where a training run decides, of 20 points: it is by AdamW, since Muon came with torch 2.9, and 500
# steps of that miss one or two.
ENOUGH = {'check("translate")': 16.0}
PROGRESS = "Judging up to "  # what `assemble` says on stderr while it works
NAMED = (
    "torch",
    "numpy",
    "tokenizers",
    "safetensors",
    "sacrebleu",
    "matplotlib",
    "jupyterlab",
    "ipykernel",
    "ipywidgets",
)


def main() -> int:
    """Run the chapters, print a line for each, and return 1 where one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="beginnings of names")
    parser.add_argument("--folder", default="desk", help="the name of the folder to work in, within a temporary one")
    arguments = parser.parse_args()
    wanted = tuple(arguments.chapters) or ("",)
    print(f"Python {sys.version.split()[0]}", *(f"{name} {version(name)}" for name in NAMED), sep=", ", flush=True)
    failed = passed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows keeps what is open somewhere
        desk = Path(folder, arguments.folder)
        desk.parent.mkdir(parents=True, exist_ok=True)
        copy = f"from autograder.learn import notebooks as n; n.copy(n.Path({str(desk)!r}), '')"
        ran = alone("-c", copy, folder=desk.parent)
        assert ran.returncode == 0, ran.stderr
        notebooks = sorted((ROOT / "solutions").glob("[0-9]*/*.ipynb"))
        assert [f"{each.parent.name}/{each.name}" for each in notebooks] == laid_out(desk)
        for solved in notebooks:
            (desk / solved.parent.name / solved.name).write_bytes(solved.read_bytes())
        for name, attempt in [
            ("assemble", assemble),
            ("train", train),
            *((each.parent.name, run) for each in notebooks if each.parent.name.startswith(wanted)),
        ]:
            began = time.monotonic()
            wrong = attempt(desk / name)
            print(f"{name:26} {time.monotonic() - began:5.0f} s  {'; '.join(wrong) or 'right'}", flush=True)
            failed, passed = failed + bool(wrong), passed + (not wrong)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


def laid_out(desk: Path) -> list[str]:
    """The notebooks at a desk."""
    return sorted(path.relative_to(desk).as_posix() for path in desk.glob("[0-9]*/*.ipynb"))


def assemble(target: Path) -> list[str]:
    """Gather the answers, and return what went wrong."""
    ran = alone("-m", "autograder", "assemble", "--from", str(target.parent), folder=target.parent)
    unexpected = [line for line in ran.stderr.splitlines() if not line.startswith(PROGRESS)]
    return [f"{ran.stdout[-1500:]}{ran.stderr[-1500:]}"] if ran.returncode or unexpected else []


def train(model: Path) -> list[str]:
    """Train a small model, translate with it from pipe to pipe, and export it as a page; return what went wrong."""
    sizes = ["--d-model", "16", "--heads", "2", "--encoder-layers", "1", "--decoder-layers", "1", "--d-ff", "32"]
    if not hasattr(torch.optim, "Muon"):
        sizes += ["--muon-rate", "0"]
    page = model.with_name("translator.html")
    for arguments, needed in [
        (["train", *sizes, "--steps", "5", "--num-validations", "1", "--output", str(model)], model / "run.md"),
        (["translate", "--checkpoint", str(model)], model),
        (["export", "--format", "page", str(model), "-o", str(page)], page),
    ]:
        ran = alone("-m", "transformer_ref", *arguments, folder=model.parent, given="the cat sees the dog.\n")
        if ran.returncode or not needed.exists():
            return [f"{arguments[0]}: {ran.returncode}\n{ran.stdout[-1500:]}{ran.stderr[-1500:]}"]
        if arguments[0] == "translate" and len(ran.stdout.splitlines()) != 1:
            return [f"translate: expected one line, got {ran.stdout!r}"]
    return []


def run(chapter: Path) -> list[str]:
    """Run a chapter's notebook as the learner, and return the errors."""
    [path] = chapter.glob("*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("USE_MINE = False", "USE_MINE = True")
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    client = NotebookClient(notebook, timeout=SECONDS_A_CELL, resources={"metadata": {"path": str(chapter)}})
    try:
        client.execute(env=environment())
    except CellExecutionError as stopped:
        return [f"{stopped.ename}: {stopped.evalue}\n{stopped.traceback[-1500:]}"]
    checks = [cell for cell in cells if cell.source.startswith("check(")]
    wrong = [f"{cell.source}: {shown(cell)}" for cell in checks if not is_right(cell)]
    wrong += [f"stderr: {each.text}" for cell in cells for each in cell.outputs if each.get("name") == "stderr"]
    return wrong if checks else [*wrong, "no check was found"]


def is_right(cell) -> bool:
    """Whether a check has returned None, as for a correct answer, or enough points."""
    points = [float(each.data["text/plain"]) for each in cell.outputs if each.output_type == "execute_result"]
    return not points or points[0] >= ENOUGH.get(cell.source, float("inf"))


def shown(cell) -> str:
    """What a cell shows, as text."""
    return "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def environment() -> dict[str, str]:
    """This one's, without what leads to another environment's packages or kernels."""
    others = ("PYTHON", "JUPYTER", "VIRTUAL_ENV", "USE_MINE")
    letters = ("PYTHONIOENCODING", "PYTHONUTF8")
    kept = {name: value for name, value in os.environ.items() if name in letters or not name.startswith(others)}
    return kept | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # else each kernel says something of a debugger


def alone(*arguments: str, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run this Python in a folder."""
    variables = environment()
    letters = variables.get("PYTHONIOENCODING", "utf-8")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONIOENCODING": letters, **variables},
        input=given,
        capture_output=True,
        text=True,
        encoding=letters,
        errors="replace",
    )


if __name__ == "__main__":
    sys.exit(main())
