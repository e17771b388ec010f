"""The class secret: made once and whole, and never a guessable one."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from autograder import course
from autograder.sandbox import backends

ROOT = Path(__file__).resolve().parents[3]


def test_whoever_makes_it_at_once_gets_the_same_one(tmp_path, monkeypatch):
    """Both have found that there is none."""
    monkeypatch.setattr(Path, "exists", lambda path: False)
    with ThreadPoolExecutor(8) as several:
        found = set(several.map(lambda _: course.secret(tmp_path), range(8)))
    assert len(found) == 1 and len(found.pop()) == 32
    folder = tmp_path / "classroom"
    assert [path.name for path in folder.iterdir()] == ["secret"]
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("broken", ["fsync", "link"])
def test_a_full_disk_leaves_none_and_a_file_system_without_links_a_whole_one(tmp_path, monkeypatch, broken):
    def fail(*_: object) -> None:
        raise OSError(28 if broken == "fsync" else 95, "no")

    monkeypatch.setattr(os, broken, fail)
    if broken == "link":
        assert len(course.secret(tmp_path)) == 32
        return
    with pytest.raises(OSError, match="no"):
        course.secret(tmp_path)
    assert list((tmp_path / "classroom").iterdir()) == []


def test_a_new_one_is_announced_if_submissions_were_judged_with_the_one_before(tmp_path, capsys):
    course.secret(tmp_path)
    assert capsys.readouterr().err == ""
    verdicts = tmp_path / "classroom" / "verdicts" / "00_start_here.jsonl"
    verdicts.parent.mkdir()
    verdicts.write_text("{}\n")
    (tmp_path / "classroom" / "secret").unlink()
    course.secret(tmp_path)
    said = capsys.readouterr().err
    assert "secret is gone, although submissions were judged with it (00_start_here). A new one is made" in said
    course.secret(tmp_path)
    assert capsys.readouterr().err == ""


def test_an_empty_one_is_refused(tmp_path):
    path = tmp_path / "classroom" / "secret"
    path.parent.mkdir()
    path.touch()
    with pytest.raises(course.CourseError, match="is empty, so hidden inputs could be guessed"):
        course.secret(tmp_path)


def test_try_runs_nothing_unconfined_unless_told(tmp_path, monkeypatch, capsys):
    answer = tmp_path / "answer.py"
    answer.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv(backends.SANDBOX, raising=False)
    monkeypatch.setattr(backends, "why_not", lambda name: "" if name == backends.TRUST else "not here")
    assert command_line.main(["try", "project", str(answer)]) == 2
    assert "--trust-submissions" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_a_word_that_is_also_a_command_imports_no_other_command(monkeypatch, capsys):
    imported = []
    real = command_line.import_module
    monkeypatch.setattr(command_line, "import_module", lambda name: imported.append(name) or real(name))
    with pytest.raises(SystemExit):
        command_line.main(["grade", "release", "--no-such-option"])
    assert imported == ["autograder.grade.run"]
