"""Files that are whole or not there."""

import os
import stat

import pytest

from transformer_ref import atomic_write as files
from transformer_ref.atomic_write import atomic_write


def test_a_new_file_has_the_rights_of_any_new_file_and_an_old_one_keeps_its_own(tmp_path):
    before = os.umask(0o022)
    try:
        atomic_write(tmp_path / "deep" / "new", "ü")
        (tmp_path / "old").write_text("x")
        (tmp_path / "old").chmod(0o640)
        atomic_write(tmp_path / "old", b"y")
    finally:
        os.umask(before)
    assert (tmp_path / "deep" / "new").read_text(encoding="utf-8") == "ü"
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("deep/new", "old")]
    assert modes == [0o644, 0o640]


def test_after_a_failure_the_old_file_is_there_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "page").write_text("old")

    def fail(*_):
        raise OSError("full")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        atomic_write(tmp_path / "page", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("page", "old")]
