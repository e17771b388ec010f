"""The bank of known mistakes as JSON lines."""

import json
import os
import subprocess
import sys
from itertools import islice

from autograder import __main__ as command_line
from autograder import catalogue
from autograder.catalogue import bank

CHAPTER = "05_self_attention"
KEYS = "id chapter exercise number defines name source right message told_by section section_title asked_in license"


def test_a_chapter_gives_one_line_for_each_of_its_mistakes_in_their_order(tmp_path, capsys):
    path = tmp_path / "bank.jsonl"
    assert command_line.main(["known-mistakes", CHAPTER, "--output", str(path)]) == 0
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    mistakes = [(e.id, m.name) for e in catalogue.find_assignment(CHAPTER).exercises for m in e.mistakes]
    assert [(line["exercise"], line["name"]) for line in lines] == mistakes
    assert capsys.readouterr().out == f"{len(mistakes):,} known mistakes: {path}\n"
    for line in lines:
        assert list(line) == KEYS.split()
        compile(line["source"], line["id"], "exec")
        assert line["source"] != line["right"] and line["message"] and line["section"].startswith("sec-")
    asked = {line["asked_in"] for line in lines} - {None}
    assert {"row-sums", "why-root", "both-ways"} <= asked


def test_two_readings_give_the_same_lines():
    first, second = (list(islice(bank.records(), 40)) for _ in range(2))
    assert first == second and len({record["id"] for record in first}) == 40


def test_an_assignment_that_is_none_is_a_sentence(capsys):
    assert command_line.main(["known-mistakes", "05"]) == 2
    assert "ASSIGNMENT: expected some of 00_start_here," in capsys.readouterr().err


def test_a_reader_who_has_had_enough_is_no_error():
    """As with `head`: the pipe is closed, and the command ends without a traceback."""
    read, write = os.pipe()
    command = [sys.executable, "-m", "autograder", "known-mistakes", "00_start_here"]
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True) as process:
        os.close(read)
        os.close(write)
        assert (process.stderr.read(), process.wait()) == ("", 0)
