"""What a learner sees: the report of a check in their own notebook, and the teacher's `try`."""

import json
import subprocess
import sys

import pytest
import torch

from autograder import __main__ as command_line
from autograder import check as check_module
from autograder import course

ROOT = course.find_root()
RIGHT = "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)\n"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs an answer and its check as two cells of a notebook would; returns (what check returned, what was printed)."""
    monkeypatch.setattr(check_module, "_earned", {})

    def run(source: str, exercise: str = "attention-weights"):
        namespace = {"torch": torch, "check": check_module.check, "progress": check_module.progress}
        exec(compile(source, "<cell>", "exec"), namespace)
        returned = eval(f"check({exercise!r})", namespace)
        captured = capsys.readouterr()
        assert captured.err == ""
        return returned, captured.out

    return run


def test_a_right_answer_returns_none_so_that_nbgrader_validate_is_content(run):
    returned, report = run(RIGHT)
    assert returned is None
    assert "3 of 3 visible points" in report
    assert "5 more points are decided by hidden checks" in report
    assert len(report.splitlines()) == 2


def test_the_report_shows_what_was_seen_then_what_it_means_then_where_to_reread(run):
    returned, report = run("def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT, dim=-1)\n")
    assert returned == 0.0 and type(returned) is float
    lines = report.splitlines()
    assert lines[0].startswith("attention-weights") and lines[0].endswith("0 of 3 visible points so far")
    assert "  ✓ shape (1, 4, 4), dtype float32" in lines
    assert "  ✓ every query's weights sum to 1" in lines
    assert any('row "windows" should be 0.157 0.157 0.038 0.647' in line for line in lines)
    assert any("yours is 0.105 0.105 0.014 0.776" in line for line in lines)
    assert "square root of d_k is missing" in " ".join(report.split())
    assert 'Reread 05, "Why divide?"' in report and "hint 1 of 3" in report
    assert "hidden checks when it is graded" in lines[-1]


def test_a_local_check_never_asks_hidden_probes(run):
    _, report = run(
        "def attention_weights(Q, K):\n    return torch.exp(Q @ K.mT / Q.shape[-1] ** 0.5) / torch.exp(Q @ K.mT / Q.shape[-1] ** 0.5).sum(-1, keepdim=True)\n"
    )
    assert "3 of 3 visible points" in report


def test_a_missing_function_is_named(run):
    returned, report = run("attention_weight = 1\n")
    assert returned == 0.0
    assert "There is no attention_weights in this notebook yet" in report


def test_a_name_used_for_something_else_is_said(run):
    _, report = run("attention_weights = torch.ones(2)\n")
    assert "attention_weights should be a function, but it is now of type Tensor" in report


def test_a_blank_is_told_where_to_write(run):
    returned, report = run("def attention_weights(Q, K):\n    raise NotImplementedError\n")
    assert returned == 0.0
    assert "where the TODO is" in report
    assert "stopped" not in report


def test_an_exception_is_shown_with_the_learners_line_and_the_inputs(run):
    _, report = run("def attention_weights(Q, K):\n    scale = Q.shape[7]\n    return Q\n")
    assert "your code stopped with IndexError" in " ".join(report.split())
    assert "at your line 2" in report
    assert "Q of shape (1, 4, 2), K of shape (1, 4, 2)" in " ".join(report.split())
    assert "Traceback" not in report


def test_forgetting_to_return_is_said_in_words(run):
    _, report = run("def attention_weights(Q, K):\n    Q @ K.mT\n")
    assert "a function without `return` gives None" in " ".join(report.split())


def test_a_forbidden_function_is_named_and_earns_nothing(run, tmp_path, monkeypatch):
    cell = tmp_path / "cell.py"
    cell.write_text(
        "import torch\nimport torch.nn.functional as F\ndef attention_weights(Q, K):\n    return F.scaled_dot_product_attention(Q, K, torch.eye(K.shape[1]))\n"
    )
    returned, report = run(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom cell import attention_weights\n")
    assert returned == 0.0
    assert "scaled_dot_product_attention does the whole exercise by itself" in " ".join(report.split())


def test_an_unknown_exercise_lists_the_known_ones(run):
    returned, report = run("pass\n", "attention-wieghts")
    assert returned == 0.0
    assert "there is no exercise 'attention-wieghts'" in report and "attention-weights" in report


def test_a_check_leaves_random_state_dtype_and_gradient_mode_alone(run):
    before = torch.get_rng_state()
    run(
        "def attention_weights(Q, K):\n    torch.manual_seed(1)\n    torch.set_default_dtype(torch.float64)\n    torch.set_grad_enabled(False)\n    return Q\n"
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()


def test_progress_adds_up_what_was_checked(run, capsys):
    run(RIGHT)
    run("def attend(W, V):\n    return V\n", "attend")
    check_module.progress()
    assert "3 of 4 visible points" in capsys.readouterr().out


def test_importing_check_imports_no_catalogue_and_no_reference():
    program = "import sys; import autograder.check; print([m for m in sys.modules if m.startswith(('autograder.', 'transformer_ref'))])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert sorted(eval(shown)) == ["autograder.check"]


@pytest.fixture
def try_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)

    def run(*sources: str, exercise: str = "attention-weights") -> list[dict]:
        files = []
        for number, source in enumerate(sources):
            files.append(tmp_path / f"answer{number}.py")
            files[-1].write_text(source, encoding="utf-8")
        assert command_line.main(["try", exercise, *map(str, files), "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_try_judges_hidden_probes_too_and_prints_one_object_a_line(try_files):
    right, wrong = try_files(RIGHT, "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT, dim=-1)\n")
    assert list(right) == ["file", "exercise", "points", "max_points", "misconception", "message"]
    assert (right["points"], right["max_points"], right["misconception"], right["message"]) == (8, 8, None, "")
    assert (wrong["points"], wrong["misconception"]) == (0, "no scaling")


def test_try_runs_the_notebooks_set_up_cells_first(try_files):
    (judged,) = try_files(
        "def attention_weights(Q, K):\n    return softmax(Q @ K.mT / math.sqrt(K.shape[-1]), dim=-1)\n"
    )
    assert judged["points"] == 8


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def attention_weights(Q, K)\n    return Q\n", "SyntaxError"),
        ("import sys\nsys.exit()\n", "SystemExit"),
        ("import os\nos._exit(0)\n", "could not be checked: the notebook's process ended"),
        ("import os\ndef attention_weights(Q, K):\n    os._exit(0)\n", "the notebook's process ended"),
        ("x = 1 / 0\n", "ZeroDivisionError"),
        ("", "There is no attention_weights"),
        ("def attention_weights(Q, K):\n    return attention_weights(Q, K)\n", "RecursionError"),
        ("def attention_weights(Q, K):\n    return torch.zeros(300_000_000, dtype=torch.uint8)\n", "MiB"),
    ],
)
def test_an_answer_that_breaks_earns_nothing_and_is_told_why(try_files, source, words):
    broken, after = try_files(source, RIGHT)
    assert broken["points"] == 0
    assert words in broken["message"]
    assert after["points"] == 8


def test_try_says_which_exercises_exist(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert command_line.main(["try", "nothing", "a.py"]) == 2
    assert "attention-weights" in capsys.readouterr().err


def test_an_answer_cannot_speak_for_the_judge(try_files):
    forged = "import os, autograder.check as c\ndef attention_weights(Q, K):\n    return None\nc.Answerer.answer = lambda self, request: {'outcome': {'earned': 8}}\n"
    (judged,) = try_files(forged)
    assert judged["points"] == 0
