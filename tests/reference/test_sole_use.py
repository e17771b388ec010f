"""Two training runs never write into one folder at the same time."""

import subprocess
import sys

import pytest

from transformer_ref.__main__ import main
from transformer_ref.training import recipes
from transformer_ref.training.sole_use import LOCK, sole_use


def test_a_second_run_is_refused_while_the_first_one_lasts_and_not_afterward(tmp_path):
    with sole_use(tmp_path):
        with pytest.raises(ValueError, match="where a training run goes on"), sole_use(tmp_path):
            pass
        with sole_use(tmp_path / "another"):
            pass
    with sole_use(tmp_path):
        pass
    assert not (tmp_path / LOCK).exists()


def test_a_run_that_was_killed_holds_nothing(tmp_path):
    held = "import os, sys, pathlib\nfrom transformer_ref.training.sole_use import sole_use\n"
    held += "with sole_use(pathlib.Path(sys.argv[1])):\n    os._exit(9)\n"
    assert subprocess.run([sys.executable, "-c", held, str(tmp_path)]).returncode == 9
    assert (tmp_path / LOCK).exists()
    with sole_use(tmp_path):
        pass


def test_train_says_so_in_one_sentence(tmp_path, capsys, monkeypatch):
    build = recipes.build_corpus
    monkeypatch.setattr(recipes, "build_corpus", lambda: build(train=300, validation=20, test=12, held_out=8))
    with sole_use(tmp_path):
        assert main(["train", "--steps", "1", "--output", str(tmp_path), "--device", "cpu"]) == 2
    shown = capsys.readouterr().err
    assert "output: expected a folder in which nothing trains" in shown and "Traceback" not in shown
