"""Notebooks on a hosted Jupyter, such as Colab: the first cell installs the course."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from autograder import address, catalogue, course
from autograder.prepare import hand_out, sample_class

ROOT = sample_class.ROOT
RUN = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
source = open(sys.argv[1], encoding="utf-8").read()
sys.exit(not shell.run_cell(source).success)
"""


def first_cell(assignment) -> str:
    """The first locked cell of a released notebook."""
    notebook = course.read_notebook(course.notebook_path(ROOT, "exercises", assignment))
    locked = (cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("locked"))
    return "".join(next(cell for cell in locked if cell["cell_type"] == "code")["source"])


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Runs a cell in a Python that has what this one has, except the course: torch, IPython and pip are there."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip())
    (own / "others.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # the .pth files there, ours too, are not read

    def run(source: str) -> subprocess.CompletedProcess:
        cell = folder / "cell.py"
        cell.write_text(source, encoding="utf-8")
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "IPYTHONDIR": str(folder / "ipython")}
        around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [python, "-c", RUN, str(cell)],
            cwd=folder,
            env=around | offline,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def copy_of_course(tmp_path_factory):
    """The files of the repository, to install from: a build leaves its own next to them."""
    folder = tmp_path_factory.mktemp("source") / "course"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in filter(None, listed.split("\0")):
        if (ROOT / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, folder / path)
    return folder


def test_the_first_cell_installs_the_course_where_it_is_missing(bare, copy_of_course):
    cell = first_cell(sample_class.ASSIGNMENT)
    assert bare("import torch; torch.zeros(1)").returncode == 0
    assert "No module named 'autograder'" in bare("import autograder").stdout
    unknown = bare(cell)
    assert unknown.returncode and "Write its address into COURSE" in unknown.stdout
    torch = 'import torch; print("torch is", torch.__version__, torch.__file__)'
    before = bare(torch).stdout
    done = bare(cell.replace('COURSE = ""', f'COURSE = "{copy_of_course}"'))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The course is installed." in done.stdout and "Save a copy in Drive" in done.stdout
    assert bare(torch).stdout == before
    again = bare(cell + '\nprint("checks:", callable(check))')
    assert again.returncode == 0 and "checks: True" in again.stdout and "installed" not in again.stdout


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda assignment: assignment.id)
def test_every_notebook_begins_with_the_installation(assignment):
    assert first_cell(assignment).startswith(hand_out.INSTALLS.format(course='""'))


@pytest.mark.parametrize(
    "named, environment, expected",
    [
        ("", "", ""),
        ("", "owner/name", "git+https://github.com/owner/name"),
        ("", "https://example.org/course.git", "git+https://example.org/course.git"),
        ("attention-by-hand", "owner/name", "attention-by-hand"),
    ],
)
def test_one_setting_says_where_pip_finds_the_course(monkeypatch, named, environment, expected):
    monkeypatch.setenv("COURSE_REPOSITORY", environment)
    assert address.for_pip(named) == expected


def test_a_release_writes_the_address_into_the_notebooks(released, tmp_path, monkeypatch):
    folder = tmp_path / "course"
    shutil.copytree(released(), folder)
    with (folder / course.MARKER).open("a", encoding="utf-8") as file:
        file.write('c.HandOut.course = "git+https://example.org/our course\\".git"\n')
    assert sample_class.nbgrader(folder, "generate_assignment", sample_class.ASSIGNMENT.id).returncode == 0
    path = course.notebook_path(folder, "exercises", sample_class.ASSIGNMENT)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (source,) = [source for source in sources if "COURSE" in source]
    assert r'COURSE = "git+https://example.org/our course\".git"' in source
    compile(source, "cell", "exec")
