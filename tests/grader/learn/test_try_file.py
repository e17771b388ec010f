"""A check without Jupyter: `python -m autograder try`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from autograder import course
from autograder.course import CourseError
from autograder.learn import try_file

ROOT = Path(__file__).resolve().parents[3]
RIGHT = "def attend(W, V):\n    return W @ V\n"
WRONG = "def attend(W, V):\n    return W.mT @ V\n"


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """A file with a right answer to 05.1, in an empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "answer.py"
    path.write_text(RIGHT, encoding="utf-8")
    return path


@pytest.fixture
def without_a_course(monkeypatch):
    """As with an installed package: no course from here upward."""

    def nowhere(start=None):
        raise CourseError("There is no course here")

    monkeypatch.setattr(course, "find_root", nowhere)


@pytest.mark.parametrize("named", ["attend", "5.1", "05.1"])
def test_an_exercise_has_an_id_and_a_number(named):
    assert try_file.find(named).id == "attend"


@pytest.mark.parametrize("named", ["attendance", "5.99", "99.1", "5.", "five.one", ""])
def test_an_unknown_exercise_is_one_sentence_that_lists_those_there_are(named, answer, capsys):
    assert command_line.main(["try", named, str(answer)]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and repr(named) in said and "attend, attention-weights" in said


def test_a_right_answer_is_praised_and_a_wrong_one_diagnosed_as_in_a_notebook(answer, capsys):
    assert command_line.main(["try", "5.1", str(answer)]) == 0
    assert "4 of 4 points" in capsys.readouterr().out
    answer.write_text(WRONG, encoding="utf-8")
    assert command_line.main(["try", "5.1", str(answer)]) == 1
    said = capsys.readouterr().out
    assert "Reread 05" in said and "hidden checks pass, on random inputs" in said
    assert "\x1b" not in said  # no colors but on a terminal


def test_as_graded_says_of_hidden_checks_what_feedback_says(answer, capsys):
    answer.write_text(WRONG, encoding="utf-8")
    assert command_line.main(["try", "5.1", str(answer), "--as-graded"]) == 1
    assert "on random inputs" not in capsys.readouterr().out


def test_a_learner_with_the_package_alone_needs_no_course(without_a_course, answer, capsys):
    assert command_line.main(["try", "5.1", str(answer)]) == 0
    assert "4 of 4 points" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.py", None, "No such file"),
        ("bytes.py", b"\xff\xfe\x00", "utf-8"),
        ("none.ipynb", b'{"cells": []}', "no cell for attend"),
        ("no.ipynb", b"not json", "is not a notebook"),
        ("syntax.py", b"def attend(W, V:\n", "SyntaxError"),
        ("other.py", b"x = 1\n", "There is no attend"),
    ],
)
def test_what_cannot_be_checked_is_a_sentence(name, content, words, answer, capsys):
    path = answer.with_name(name)
    if content is not None:
        path.write_bytes(content)
    assert command_line.main(["try", "5.1", str(path)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert words in said and "Traceback" not in said


def test_a_byte_order_mark_as_editors_on_windows_write_it_is_no_error(answer):
    answer.write_bytes(b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode())
    assert command_line.main(["try", "5.1", str(answer)]) == 0


def test_the_answer_of_a_notebook_is_its_cell_of_that_exercise(answer, capsys):
    notebook = json.loads((ROOT / "exercises/05_self_attention/self_attention.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["id"] == "attend":
            cell["source"] = RIGHT
    path = answer.with_name("self_attention.ipynb")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert command_line.main(["try", "attend", str(path)]) == 0


def test_an_answer_of_a_notebook_may_use_the_earlier_ones_in_it(answer, capsys):
    answers = {
        "gpt-block": "class GPTBlock(nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n",
        "gpt": "class GPT(GPTBlock):\n    def forward(self, ids):\n        return ids\n",
    }
    notebook = json.loads((ROOT / "exercises/13_gpt/gpt.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    path = answer.with_name("gpt.ipynb")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert command_line.main(["try", "gpt", str(path)]) == 1
    assert "GPTBlock comes from" not in capsys.readouterr().out
    answer.write_text(answers["gpt"], encoding="utf-8")
    command_line.main(["try", "gpt", str(answer)])
    said = " ".join(capsys.readouterr().out.split())
    assert "GPTBlock comes from your cell of 13.2" in said and "In a file of your own, write GPTBlock there" in said


def test_the_section_to_reread_is_opened_when_asked_and_only_for_a_wrong_answer(answer, monkeypatch):
    opened = []
    monkeypatch.setenv("ATTENTION_BY_HAND_BOOK", "https://example.org/book")
    monkeypatch.setattr(try_file.webbrowser, "open", opened.append)
    command_line.main(["try", "5.1", str(answer), "--open"])
    assert opened == []
    answer.write_text(WRONG, encoding="utf-8")
    command_line.main(["try", "5.1", str(answer)])
    assert opened == []
    command_line.main(["try", "5.1", str(answer), "--open"])
    assert len(opened) == 1 and re.match(r"https://example\.org/book/05_self_attention\.html#sec-05-", opened[0])


def test_a_terminal_shows_colors_unless_they_are_declined(answer, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    command_line.main(["try", "5.1", str(answer)])
    colored = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    command_line.main(["try", "5.1", str(answer)])
    plain = capsys.readouterr().out
    assert "\x1b[32m" in colored and re.sub(r"\x1b\[\d*m", "", colored) == plain


def test_watching_checks_again_after_each_save_and_ctrl_c_ends_it(answer):
    answer.write_text(WRONG, encoding="utf-8")
    command = [sys.executable, "-m", "autograder", "try", "5.1", str(answer), "--watch"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        until(running, "Watching")
        replacement = answer.with_name("half")
        replacement.write_text(RIGHT, encoding="utf-8")
        replacement.replace(answer)  # as many editors save
        assert "4 of 4 points" in until(running, "4 of 4")
        answer.unlink()
        time.sleep(1)
        answer.write_text(WRONG + "\n", encoding="utf-8")
        until(running, "Reread")
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 130
        assert "Traceback" not in running.stderr.read()


def until(running: subprocess.Popen, words: str) -> str:
    """What is printed until a line has these words."""
    said = ""
    for line in running.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(f"{words!r} was not said:\n{said}\n{running.stderr.read()}")
