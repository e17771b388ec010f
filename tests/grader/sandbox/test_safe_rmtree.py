"""Folders of any depth, length and mode are counted and removed, and so is what a killed process has left."""

import os

import pytest

from autograder.inside import safe_rmtree


@pytest.fixture
def hostile(tmp_path):
    """Two thousand nested folders, locked ones, names of 255 letters, links, a FIFO."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    here = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(2000):
            os.mkdir("d" * 255)
            os.chdir("d" * 255)
        with open("bottom", "wb") as file:
            file.write(bytes(10_000))
    finally:
        os.chdir(here)
    (folder / "locked" / "inside").mkdir(parents=True)
    (folder / "locked" / "inside" / ("n" * 255)).touch()
    (folder / "locked" / "inside").chmod(0)
    (folder / "locked").chmod(0)
    (folder / "link").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo")
    (tmp_path / "beside").write_text("x", encoding="utf-8")
    return folder


def test_nothing_of_a_hostile_tree_is_left_and_nothing_beside_it_is_touched(hostile):
    safe_rmtree.remove(hostile)
    assert not hostile.exists()
    assert (hostile.parent / "beside").exists()


def test_folders_too_deep_to_count_are_said_to_be(hostile):
    try:
        with pytest.raises(safe_rmtree.TooDeep):
            safe_rmtree.size(str(hostile), 1 << 40)
    finally:
        safe_rmtree.remove(hostile)


def test_what_is_written_below_a_locked_folder_is_counted(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(bytes(1 << 20))
    (tmp_path / "a").chmod(0o300)
    assert safe_rmtree.size(str(tmp_path), 1 << 40) >= 1 << 20


def test_a_file_under_two_names_counts_once(tmp_path):
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    once = safe_rmtree.size(str(tmp_path), 1 << 40)
    os.link(tmp_path / "file", tmp_path / "again")
    assert safe_rmtree.size(str(tmp_path), 1 << 40) == once


def test_a_million_empty_files_are_not_free(tmp_path):
    (tmp_path / "empty").touch()
    assert safe_rmtree.size(str(tmp_path), 1 << 40) == safe_rmtree.SMALLEST
