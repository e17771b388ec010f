"""The learner's side on the oldest versions that pyproject.toml admits, torch 2.2 among them: `make test-oldest`.

    build/oldest/bin/python tests/repository/oldest.py              all chapters, in their order
    build/oldest/bin/python tests/repository/oldest.py 05 13        these chapters

The Python that runs it holds those versions and the wheel, and nothing of a repository. At a desk as `learn` lays it
out, `assemble` gathers the answers of all solved notebooks into `my_transformer.py`. Then each notebook is run by a
kernel from its first cell to its last, explorers too; what it takes from earlier ones is the learner's. Every check
must say that all is right, and nothing may be on stderr.
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
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
SECONDS_A_CELL = 900  # the capstone trains
# What must be earned where a training decides, of 20 points: it is by AdamW, since Muon came with torch 2.9, and 500
# steps of that miss one or two.
ENOUGH = {'check("translate")': 16.0}
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
    wanted = tuple(parser.parse_args().chapters) or ("",)
    print(f"Python {sys.version.split()[0]}", *(f"{name} {version(name)}" for name in NAMED), sep=", ", flush=True)
    failed = passed = 0
    with tempfile.TemporaryDirectory() as folder:
        desk = Path(folder, "desk")
        ran = alone("-c", "from autograder.learn import notebooks as n; n.copy(n.Path('desk'), '')", folder=desk.parent)
        assert ran.returncode == 0, ran.stderr
        notebooks = sorted((ROOT / "solutions").glob("[0-9]*/*.ipynb"))
        assert [f"{each.parent.name}/{each.name}" for each in notebooks] == laid_out(desk)
        for solved in notebooks:
            (desk / solved.parent.name / solved.name).write_bytes(solved.read_bytes())
        for name, attempt in [
            ("assemble", assemble),
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
    return [] if ran.returncode == 0 and not ran.stderr else [f"{ran.stdout[-1500:]}{ran.stderr[-1500:]}"]


def run(chapter: Path) -> list[str]:
    """Run a chapter's notebook in the learner's place, and return what went wrong."""
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
    """Whether a check has returned nothing, as it does where all is right, or points enough."""
    points = [float(each.data["text/plain"]) for each in cell.outputs if each.output_type == "execute_result"]
    return not points or points[0] >= ENOUGH.get(cell.source, float("inf"))


def shown(cell) -> str:
    """What a cell shows, as text."""
    return "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def environment() -> dict[str, str]:
    """This one's, without what leads to another environment's packages or kernels."""
    others = ("PYTHON", "JUPYTER", "VIRTUAL_ENV", "USE_MINE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return kept | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # else each kernel says something of a debugger


def alone(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run this Python in a folder."""
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment(), capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main())
