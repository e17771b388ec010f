"""What a learner sees: the report of a check in their own notebook, and the teacher's `try`."""

import json
import linecache
import subprocess
import sys
import threading
import time

import pytest
import torch

from autograder import __main__ as command_line
from autograder import catalogue, course
from autograder import check as check_module
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.notebook import own_check

ROOT = course.find_root()
RIGHT = "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)\n"
NAIVE = (
    "def attention_weights(Q, K):\n    e = torch.exp(Q @ K.mT / Q.shape[-1] ** 0.5)\n"
    "    return e / e.sum(-1, keepdim=True)\n"
)
RIGHT_SPACE, NAIVE_SPACE = namespace_of(RIGHT), namespace_of(NAIVE)


def shown_numbers(report: str) -> list[str]:
    """The expected rows."""
    return [line for line in report.splitlines() if line.strip().startswith("should be")]


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs an answer and its check as two cells of a notebook would; returns (what check returned, what was printed).

    Without a source only the check runs, on what the cell before it has defined.
    """
    monkeypatch.setattr(check_module, "_earned", {})
    for state in ("_kept", "_failed"):
        monkeypatch.setattr(own_check, state, {})
    namespace = {
        "torch": torch,
        **{name: getattr(check_module, name) for name in ("check", "visible_check", "progress")},
    }

    def run(source: str, exercise: str = "attention-weights", check: str = "check"):
        name = f"<cell {len(linecache.cache)}>"  # where Jupyter, too, finds the lines of a cell
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        exec(compile(source, name, "exec"), namespace)
        returned = eval(f"{check}({exercise!r})", namespace)
        captured = capsys.readouterr()
        assert captured.err == ""
        return returned, captured.out

    return run


def test_a_right_answer_returns_none_so_that_nbgrader_validate_is_content(run):
    returned, report = run(RIGHT)
    assert returned is None
    assert "8 of 8 points" in report and "7 of them on random inputs" in " ".join(report.split())
    assert len(report.splitlines()) == 2


def test_the_report_shows_what_was_seen_then_what_it_means_then_where_to_reread(run):
    returned, report = run("def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT, dim=-1)\n")
    assert returned == 0.0 and type(returned) is float
    lines = report.splitlines()
    assert lines[0].startswith("attention-weights") and lines[0].endswith("0 of 8 points")
    assert "  ✓ shape (1, 4, 4), dtype float32" in lines
    assert "  ✓ every query's weights sum to 1" in lines
    assert any('row "windows" should be 0.157 0.157 0.038 0.647' in line for line in lines)
    assert any("yours is 0.105 0.105 0.014 0.776" in line for line in lines)
    assert "square root of d_k is missing" in " ".join(report.split())
    # The mistake is known: no hint could fit it better.
    assert lines[-1] == '  Reread 05, "Scaled dot products: why divide?"'


# --- the whole check -------------------------------------------------------------------------------------------------


def test_a_check_shows_a_failure_on_numbers_that_nobody_prepared_with_its_numbers_and_its_cause(run):
    returned, report = run(NAIVE)
    said = " ".join(report.split())
    assert 3 < returned < 8 and f"{returned:.2f}".rstrip("0") in report.splitlines()[0]
    assert "of 7 hidden checks pass, on random inputs. Not these:" in said
    assert "✗ large scores" in said and "nan" in said and "the check called it with Q of shape" in said
    assert "exp" in said and "when it is graded" not in said


def test_the_same_numbers_come_until_an_answer_passes_on_them(run):
    first, again = run(NAIVE)[1], run(NAIVE)[1]
    assert shown_numbers(first) == shown_numbers(again) != []
    run(RIGHT)
    assert shown_numbers(run(NAIVE)[1]) != shown_numbers(first)


def test_an_answer_made_for_the_numbers_it_was_shown_is_asked_others_at_once(run, monkeypatch):
    run(NAIVE)
    kept = own_check._kept["attention-weights"]
    real = own_check.judge_and_explain
    asked = []

    def judge(exercise, endpoint, key, findings, **named):
        asked.append(key)
        return real(
            exercise, own_check.LocalEndpoint(RIGHT_SPACE if key == kept else NAIVE_SPACE), key, findings, **named
        )

    monkeypatch.setattr(own_check, "judge_and_explain", judge)
    returned, _ = run("")
    assert asked[0] == kept != asked[1] and len(asked) == 2
    assert returned < 8


def test_the_visible_check_of_a_class_asks_no_hidden_probe_and_says_what_decides_the_rest(run):
    returned, report = run(NAIVE, check="visible_check")
    assert returned is None
    assert "3 of 3 visible points so far" in report
    assert "5 more points are decided by hidden checks when it is graded." in " ".join(report.split())


def test_an_exercise_without_hidden_checks_counts_as_a_whole(run):
    _, report = run("def predict_shapes():\n    return {}\n", "predict-shapes")
    assert report.splitlines()[0].endswith("0 of 2 points")


def test_whoever_checks_a_function_twice_without_running_its_cell_is_told(run):
    told = "This is the same function as at your last check."
    assert told not in run(NAIVE)[1]
    assert told in run("")[1]
    assert told not in run(NAIVE)[1]  # its cell was run


def test_a_function_that_became_right_through_another_is_not_called_the_same(run):
    run(
        "def softmax(s):\n    return s\n\n\ndef attention_weights(Q, K):\n"
        "    return softmax(Q @ K.mT / Q.shape[-1] ** 0.5)\n"
    )
    returned, report = run("def softmax(s):\n    return torch.softmax(s, -1)\n")
    assert returned is None and "the same function" not in report


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (
            "def attention_weights(Q, K):\n    raise NotImplementedError\n",
            "hint 1 of 3: look at the size of the scores",
        ),
        ("def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / 1.3, -1)\n", "hint 1 of 3"),
        ("def attention_weights(Q, K):\n    return (Q @ K.mT)[..., ::2]\n", "hint 2 of 3 is a plan of shapes"),
        ("def attention_weights(Q, K):\n    return Q @ K[0, :, 0, None]\n", "hint 2 of 3 is a plan of shapes"),
        ("def attention_weights(Q, K):\n    return Q.soft\n", ""),
        ("x = 1\n", ""),
        ("def attention_weights(Q, K):\n    raise ValueError(Q)\n", ""),
    ],
)
def test_a_hint_is_shown_where_it_fits(run, source, hint):
    _, report = run(source)
    said = " ".join(report.split())
    assert hint in said if hint else "hint" not in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Q @ torch.cat([K, K], 1)", "In that line Q is (1, 4, 2) and K is (1, 4, 2). A @ B needs the last axis of A"),
        ("Q[7] * K", "An axis of length n has the indices 0 to n - 1"),
        ("Q + K[..., :1].mT.expand(1, 1, 3)", "Only an axis of length 1 is repeated until it fits."),
        ("Q @ K.mT + Q", "A @ B needs the last axis of A to be as long as the last but one of B. Under +"),
        ("Q.reshape(7)", "In that line Q is (1, 4, 2). A new shape keeps"),
        ("F.softmax(Q, -1)", "F comes from the set-up cell at the top of the notebook"),
        ("attend(Q, K)", "attend comes from your cell of 05.1: has it run since the kernel started? In a file"),
    ],
)
def test_an_error_says_which_shapes_met(run, line, words):
    _, report = run(f"def attention_weights(Q, K):\n    return {line}\n")
    assert words in " ".join(report.split())


@pytest.mark.parametrize(
    ("before", "first", "name"),
    [("sum = 3\n", "w = sum(Q)", "sum"), ("", "max = Q.amax(); w = Q - max(Q)", "max"), ("", "w = Q - len(Q)(1)", "")],
)
def test_a_value_that_took_the_name_of_a_function_of_pythons_is_named(run, before, first, name):
    _, report = run(f"{before}def attention_weights(Q, K):\n    {first}\n    return w\n")
    said = f"so that Python's own {name} cannot be called any more"
    assert (said in " ".join(report.split())) is bool(name)


def test_two_known_mistakes_in_one_answer_are_both_named(run):
    _, report = run("def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / Q.shape[-1], dim=1)\n")
    said = " ".join(report.split())
    assert "Two known mistakes together give exactly your results. The first, taken alone: " in said
    assert "divided by d_k itself" in said and "those of each key sum to 1 over the queries" in said


# --- what stops an answer --------------------------------------------------------------------------------------------


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
        "import torch\nimport torch.nn.functional as F\ndef attention_weights(Q, K):\n"
        "    return F.scaled_dot_product_attention(Q, K, torch.eye(K.shape[1]))\n"
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
        "def attention_weights(Q, K):\n    torch.manual_seed(1)\n    torch.set_default_dtype(torch.float64)\n"
        "    torch.set_grad_enabled(False)\n    return Q\n"
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()


def test_progress_lists_every_exercise_of_the_notebook_and_says_what_is_next(run, capsys):
    run(RIGHT)
    run("def project(x, W):\n    return x\n", "project")
    check_module.progress()
    head, *lines = capsys.readouterr().out.splitlines()
    ids = list(catalogue.find_assignment("05_self_attention").exercise_ids)
    assert head.startswith("05 Self-attention: ") and head.endswith("of 30 points")
    mine, course_, chapters = lines[: len(ids)], lines[len(ids)], lines[len(ids) + 1 : -1]
    assert [line.strip(" ✓·").split()[1] for line in mine] == ids
    assert [line[2] for line in mine] == [{"attention-weights": "✓", "project": "·"}.get(name, " ") for name in ids]
    assert mine[ids.index("attention-weights")].endswith("8 of 8")
    assert mine[0].endswith(f"0 of {catalogue.find(ids[0]).points:g}, not checked yet")
    assert course_ == f"The course: 1 of {len(catalogue.exercise_ids())} exercises solved"
    assert len(chapters) == len(catalogue.assignments())
    assert chapters[5].split() == ["·", "05", "Self-attention", "1", "of", "6"] and chapters[4].endswith("0 of 5")
    assert lines[-1] == f"Next: 05.1 {ids[0]}."


def test_progress_knows_the_notebook_by_what_it_defines_before_anything_was_checked(capsys, monkeypatch):
    monkeypatch.setattr(check_module, "_earned", {})
    begun = "def attend(x):\n    pass\n\n\nprogress()"
    borrowed = {"__name__": "__main__", "progress": check_module.progress, "softmax": torch.softmax}
    exec(begun, borrowed | {"linear_weights": check_module.check})
    assert "05.1  attend" in capsys.readouterr().out
    exec("progress()", borrowed)
    assert "No check has been run here yet." in capsys.readouterr().out


def test_progress_says_what_grading_decides_where_only_visible_checks_were_run(run, capsys):
    run(NAIVE, check="visible_check")
    check_module.progress()
    assert "  ✓ 05.2  attention-weights  3 of 3, 5 more when it is graded" in capsys.readouterr().out


def test_importing_check_imports_no_catalogue_and_no_reference():
    program = (
        "import sys; import autograder.check; print([m for m in sys.modules if m.startswith(('autograder.', "
        "'transformer_ref'))])"
    )
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
        code = command_line.main(["try", exercise, *map(str, files), "--json"])
        judged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert code == int(any(each["points"] < each["max_points"] for each in judged))
        return judged

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
        ("import os\nos._exit(0)\n", "Not checked: the notebook's process ended"),
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
    forged = (
        "import os, autograder.check as c\ndef attention_weights(Q, K):\n    return None\n"
        "c.Responder.answer = lambda self, request: {'outcome': {'earned': 8}}\n"
    )
    (judged,) = try_files(forged)
    assert judged["points"] == 0


def test_a_slow_check_says_that_it_works_and_a_fast_one_says_nothing(run, monkeypatch):
    monkeypatch.setattr(check_module, "PATIENCE", (0.05, 0.1))
    judge = own_check.judge_in_notebook

    def slowly(*arguments):
        time.sleep(0.4)
        return judge(*arguments)

    monkeypatch.setattr(own_check, "judge_in_notebook", slowly)
    returned, report = run(RIGHT)
    assert returned is None and report.count("Still checking after") >= 2
    assert "To stop it, interrupt the kernel." in report.split("8 of 8 points")[0]
    threads = threading.active_count()
    monkeypatch.setattr(check_module, "PATIENCE", (60.0,))
    monkeypatch.setattr(own_check, "judge_in_notebook", judge)
    assert "Still checking" not in run(RIGHT)[1] and threading.active_count() == threads
