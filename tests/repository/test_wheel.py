"""The wheel: all that a learner needs is in it, and one notebook is enough for every check of it."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

CHAPTER, NOTEBOOK = "05_self_attention", "self_attention.ipynb"
PACKAGES = ("autograder/", "transformer_ref/", "book/figures/")
BUILT_FROM = (*PACKAGES, "exercises/", "pyproject.toml", "setup.py", "README.md", "LICENSE")
NOT_A_LEARNERS = ("nbgrader", "psutil", "bleach", "rapidfuzz", "copydetect", "sqlalchemy", "jupytext", "playwright")

CODE_CELL = re.compile(r"```\{code-cell\} python\n(.*?)```", re.DOTALL)

# What a learner does, cell by cell, on the chapter's page and in its notebook. Their earlier answers lie next to it.
LEARNER = """
import json, sys
for name in {hidden!r}:
    sys.modules[name] = None
from IPython.core.interactiveshell import InteractiveShell
import autograder, transformer_ref
from autograder.learn import notebooks
shell, returned = InteractiveShell.instance(), {{}}
for source in {page!r}:
    shell.run_cell(source).raise_error()
for cell in json.load(open({notebook!r}, encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        source = "".join(cell["source"]).replace("USE_MINE = False", "USE_MINE = True")
        ran = shell.run_cell(source)
        ran.raise_error()
        returned[cell["id"]] = repr(ran.result)
copied = notebooks.copy(notebooks.Path("desk"), "")
print("TOLD" + json.dumps({{"returned": returned, "where": autograder.__file__, "new": copied.new}}))
"""


@pytest.fixture(scope="module")
def wheel(root: Path, repository_files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the repository's files, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in (path for path in repository_files if path.as_posix().startswith(BUILT_FROM)):
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / name).write_bytes((root / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index"]
    built = subprocess.run([*pip, "-w", folder / "built", folder / "source"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    [made] = (folder / "built").glob("*.whl")
    return made


def test_the_wheel_holds_every_file_of_the_packages_and_every_notebook_and_no_solution(
    wheel: Path, repository_files: list[Path]
) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    ours = {path.as_posix() for path in repository_files if path.as_posix().startswith(PACKAGES)}
    notebooks = [path for path in repository_files if path.parts[0] == "exercises"]
    packed = {f"autograder/learn/packed/{path.relative_to('exercises').as_posix()}" for path in notebooks}
    assert (ours | packed) - held == set()
    assert {name for name in held if ".dist-info/" not in name} == ours | packed


def test_an_installed_wheel_and_one_notebook_are_enough_for_every_check_of_it(
    wheel: Path, root: Path, tmp_path: Path
) -> None:
    """In an environment of its own, with this one's torch and the rest, but without our source in sight."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = next(path for path in (tmp_path / "venv").glob("*/python*") if path.is_file())
    install = ["-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", "--no-compile", wheel]
    subprocess.run([sys.executable, *install], check=True)
    [packages] = (tmp_path / "venv").glob("**/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")  # its own .pth are not read

    work = tmp_path / "downloads"
    work.mkdir()
    (work / NOTEBOOK).write_bytes((root / "solutions" / CHAPTER / NOTEBOOK).read_bytes())
    (work / "my_transformer.py").write_text("import torch\nsoftmax = torch.nn.functional.softmax\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONDONTWRITEBYTECODE": "1"}
    page = (root / "book" / f"{CHAPTER}.md").read_text(encoding="utf-8")  # which a reader downloads as a notebook, too
    cells = [re.sub(r"^:.*\n", "", cell, flags=re.MULTILINE) for cell in CODE_CELL.findall(page)]
    program = LEARNER.format(hidden=NOT_A_LEARNERS, notebook=NOTEBOOK, page=cells)
    ran = subprocess.run([python, "-c", program], cwd=work, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    told = json.loads(ran.stdout.rpartition("TOLD")[2])

    assert Path(told["where"]).is_relative_to(tmp_path)
    checks = {name: result for name, result in told["returned"].items() if name.endswith("-check")}
    assert len(checks) == 6 and set(checks.values()) == {"None"}, ran.stdout
    assert f"softmax: yours, from {work / 'my_transformer.py'}." in ran.stdout
    assert "copies of your SelfAttention" in ran.stdout
    assert "Box(" in told["returned"]["self-attention-explorer"] and "The course: 6 of" in ran.stdout
    assert len(told["new"]) == len(list((root / "exercises").glob("[0-9]*/*.ipynb")))
    assert (work / ".progress.json").is_file() and "Warning" not in ran.stderr
