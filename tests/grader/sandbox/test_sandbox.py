"""What a submission's process can see and use, in each sandbox that this machine allows."""

import os
import re
import signal
import sysconfig
from pathlib import Path

import nbformat
import pytest
from graded_course import need_isolation

from autograder import catalogue, course
from autograder.grade import execute
from autograder.inside.limits import Limits
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox import backends, runner
from autograder.sandbox.backends import BACKENDS, TRUST, Place, SandboxError
from autograder.sandbox.runner import Ended, Runner

LIMITS = Limits(cell_seconds=1.0, notebook_seconds=4.0)

pytestmark = pytest.mark.xdist_group("sandbox")


def shown(submission, source: str) -> str:
    """All outputs of a cell, as text."""
    outputs = submission.run(source).outputs
    return "".join(str(o.get("text") or o.get("evalue") or o.get("data", {}).get("text/plain", "")) for o in outputs)


def test_outputs_come_back_in_order_as_a_notebook_stores_them(submission):
    source = "import sys\nprint('a'); print('b')\nprint('c', file=sys.stderr)\ndisplay(1)\n1 / 0"
    outputs = submission.run(source).outputs
    kinds = ["stream", "stream", "display_data", "error"]
    assert [output.output_type for output in outputs] == kinds
    assert outputs[0].text == "a\nb\n"
    assert submission.run("40 + 2").outputs[0].data == {"text/plain": "42"}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=outputs)])
    nbformat.validate(notebook)


def test_a_module_that_could_hold_an_answer_says_why_it_is_absent(submission):
    assert "graded" in shown(submission, "import transformer_ref.model.attention")
    assert "graded" in shown(submission, "from autograder.judging import judge")
    assert shown(submission, "from transformer_ref.model.softmax import softmax\nsoftmax(torch_ones)") == (
        "name 'torch_ones' is not defined"
    )


def test_nothing_of_one_submission_reaches_the_next(warm):
    write = "import builtins, os, torch\nbuiltins.left = 1\ntorch.left = 1\nopen('left', 'w').write('x')\nos.getcwd()"
    with warm.submission() as first:
        folder = shown(first, write)
    with warm.submission() as second:
        look = (
            f"import builtins, os, torch\nhasattr(builtins, 'left'), hasattr(torch, 'left'), os.path.exists({folder})"
        )
        assert shown(second, f"{look}, os.listdir('.')").startswith("(False, False, ")
        assert shown(second, "[n for n in os.listdir('.') if n == 'left']") == "[]"


def test_children_of_one_process_draw_different_numbers(warm):
    drawn = set()
    for _ in range(3):
        with warm.submission() as submission:
            drawn.add(
                shown(submission, "import random, torch, numpy\nrandom.random(), torch.rand(2), numpy.random.rand()")
            )
    assert len(drawn) == 3


def test_it_runs_as_nobody_in_particular(submission):
    assert shown(submission, "import os\nos.getuid()") != "0"
    assert shown(submission, "open('/etc/shadow').read()").startswith("[Errno")


def test_the_learners_files_cannot_shadow_a_package(submission):
    shown(submission, "open('colorsys.py', 'w').write('forged = True')")
    assert "forged" not in shown(submission, "import colorsys\nsorted(vars(colorsys))")


def test_sleeping_counts_although_it_uses_no_processor(submission):
    outputs = submission.run("import time\ntime.sleep(3600)").outputs
    assert "Interrupted: a cell may take 1 seconds" in outputs[-1].text
    assert shown(submission, "1 + 1") == "2"


def test_a_notebook_has_a_budget_of_its_own(submission):
    with pytest.raises(Ended, match="the notebook took more than 4 seconds"):
        for _ in range(100):
            submission.run("import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass")


def test_no_answer_and_no_end_are_told_apart(warm):
    with warm.submission() as submission, pytest.raises(Ended, match="process ended"):
        submission.run("import os\nos._exit(0)")


def test_a_file_cannot_grow_beyond_its_limit(submission):
    write = f"import os\nwith open('large', 'wb', buffering=0) as file:\n    file.write(bytes({LIMITS.file_bytes + 1}))"
    shown(submission, write)
    assert shown(submission, "os.path.getsize('large')") == str(LIMITS.file_bytes)


def test_a_flood_of_output_is_cut_and_says_so(submission):
    outputs = submission.run("for _ in range(100):\n    print('x' * 100_000)").outputs
    text = "".join(output.text for output in outputs)
    assert len(text) < 2 * LIMITS.output_bytes
    assert "too long" in text


def test_a_sandbox_that_breaks_costs_nobody_a_point(warm, tmp_path, monkeypatch):
    sample_class.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    path = sample_class.submit(tmp_path, "honest", sample_class.solved())
    notebook = nbformat.read(path, as_version=4)
    step = execute.JudgedExecute(sandbox="bubblewrap" if not backends.why_not("bubblewrap") else "landlock")
    broken = runner.runner_for(ASSIGNMENT, backends.choose(step.sandbox), Limits())
    broken._process.send_signal(signal.SIGKILL)
    broken._control.close()
    graded, _ = step.preprocess(notebook, {"nbgrader": {"assignment": ASSIGNMENT.id, "student": "honest"}})
    scores = [
        float(output.data["text/plain"])
        for cell in graded.cells
        for output in cell.get("outputs", [])
        if output.get("metadata", {}).get("judged")
    ]
    assert sum(scores) == ASSIGNMENT.points


def test_a_child_that_cannot_be_confined_runs_nothing_and_says_why(monkeypatch):
    need_isolation("bubblewrap")
    monkeypatch.setattr(backends, "PRIVATE", ("/no/such/folder",))
    started = Runner(ASSIGNMENT, BACKENDS["bubblewrap"], LIMITS)
    try:
        with pytest.raises(SandboxError, match="mount: No such file"), started.submission():
            pass
    finally:
        started.close()


def test_without_any_way_to_isolate_grading_refuses_and_names_the_flag(monkeypatch, tmp_path):
    monkeypatch.delenv(backends.SANDBOX, raising=False)
    monkeypatch.setattr(backends, "why_not", lambda name: f"no {name} here")
    with pytest.raises(SandboxError, match=r"(?s)bubblewrap: no bubblewrap here.*--trust-submissions"):
        backends.choose()
    with pytest.raises(SystemExit, match="--trust-submissions"):
        execute.JudgedExecute().preprocess(nbformat.v4.new_notebook(), {"nbgrader": {"assignment": ASSIGNMENT.id}})


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_an_installed_copy_of_our_packages_is_hidden(name):
    need_isolation(name)
    installed = str(Path(sysconfig.get_path("purelib")) / "yaml")  # stands for one
    started = Runner(ASSIGNMENT, BACKENDS[name], LIMITS, [installed])
    try:
        with started.submission() as submission:
            assert shown(submission, f"open('{installed}/__init__.py').read()").startswith("[Errno")
            assert shown(submission, "import packaging.version\n1") == "1"
    finally:
        started.close()


def test_an_unknown_sandbox_is_named(monkeypatch):
    monkeypatch.setenv(backends.SANDBOX, "nonsense")
    with pytest.raises(course.CourseError, match="no sandbox 'nonsense'. The sandboxes are: bubblewrap"):
        backends.choose()


def test_trusting_is_a_choice_that_has_to_be_made(monkeypatch):
    monkeypatch.setenv(backends.SANDBOX, TRUST)
    assert backends.choose().name == TRUST


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_container_gets_no_network_no_rights_and_no_writable_root(engine, monkeypatch, tmp_path):
    monkeypatch.setenv(backends.IMAGE, "course:1")
    place = Place(tmp_path / "packages", tmp_path / "meeting", tmp_path / "homes")
    command = BACKENDS[engine].command(place, ["autograder.inside.zygote"], Limits())
    assert command[0] == engine and "course:1" in command
    assert BACKENDS[engine].environment() == dict(os.environ)  # the engine is ours and keeps its own files
    assert {"--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"} <= set(command)
    mounted = [word for word in command if word.startswith("--volume=")]
    assert all(str(tmp_path) in word for word in mounted) and re.search("packages:/course:ro", " ".join(mounted))


def test_a_notebook_that_answers_at_once_is_not_asked_for_its_accounts(warm, monkeypatch):
    orders = []
    order = warm.order
    monkeypatch.setattr(warm, "order", lambda what, *descriptors: orders.append(what) or order(what, *descriptors))
    monkeypatch.setattr(runner.wire, "PATIENCE", 3600.0)  # seconds between two looks
    with warm.submission({"beside": b"x"}) as submission:
        for _ in range(3):
            submission.run("1 + 1")
    assert orders == ["start", "stop"]
    monkeypatch.setattr(runner.wire, "PATIENCE", 1e-9)  # then every wait begins with one
    with warm.submission() as submission:
        submission.run("1 + 1")
    assert orders.count("usage") >= 2


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_a_long_path_to_the_folder_of_temporary_files_stops_nobody(name, tmp_path, monkeypatch):
    """The kernel takes 107 bytes as the address of a socket."""
    need_isolation(name)
    deep = tmp_path / ("a-folder-of-a-cluster-" * 4) / "job"
    deep.mkdir(parents=True)
    tmp_path.chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    started = Runner(ASSIGNMENT, BACKENDS[name], LIMITS)
    try:
        with started.submission() as submission:
            assert shown(submission, "40 + 2") == "42"
    finally:
        started.close()


def test_what_torch_imports_for_the_first_optimizer_is_there_where_a_chapter_makes_one():
    """Each submission would import it again, which took as long as the rest of its grading."""
    need_isolation("bubblewrap")
    started = Runner(catalogue.find_assignment("10_training"), BACKENDS["bubblewrap"], Limits())
    try:
        with started.submission() as submission:
            assert shown(submission, "import sys\n'torch._dynamo' in sys.modules") == "True"
    finally:
        started.close()
