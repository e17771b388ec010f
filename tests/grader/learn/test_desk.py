"""A learner's desk: what is copied and what is never touched, which notebook opens, and what a server leaves out."""

import json
import os
import socket
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from autograder import address, catalogue
from autograder.course import PROGRESS, CourseError
from autograder.learn import notebooks, quiet
from autograder.learn import open as desk

ROOT = Path(__file__).resolve().parents[3]
FIRST, SECOND = "00_start_here/start_here.ipynb", "01_why_attention/why_attention.ipynb"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A course of two chapters, of which the second is still to come."""
    folder = tmp_path / "course"
    monkeypatch.setattr(notebooks, "EXERCISES", folder)

    def publish(name):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes((ROOT / "exercises" / name).read_bytes())

    publish(FIRST)
    return publish


def test_what_is_new_is_copied_and_a_learner_s_work_is_never_written_over(source, tmp_path):
    mine = tmp_path / "mine"
    assert str(notebooks.copy(mine, "")) == "1 notebooks copied"
    assert (mine / FIRST).read_bytes() == (ROOT / "exercises" / FIRST).read_bytes()
    (mine / FIRST).write_text("my work, saved badly", encoding="utf-8")
    assert str(notebooks.copy(mine, "")) == "your 1 notebooks are as you left them"
    source(SECOND)
    assert str(notebooks.copy(mine, "")) == f"your 1 notebooks are as you left them; new: {SECOND}"
    assert (mine / FIRST).read_text(encoding="utf-8") == "my work, saved badly"
    assert not [path for path in mine.rglob("*") if path.suffix not in ("", ".ipynb")]


def test_no_solution_is_copied_or_in_sight(source, tmp_path):
    (tmp_path / "mine" / "solutions").mkdir(parents=True)
    with pytest.raises(CourseError, match="holds the course's solutions"):
        notebooks.copy(tmp_path / "mine", "")
    notebooks.copy(tmp_path / "other", "")
    assert "BEGIN SOLUTION" not in (tmp_path / "other" / FIRST).read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_used_is_a_sentence(source, tmp_path):
    (tmp_path / "mine").write_text("a file", encoding="utf-8")
    with pytest.raises(CourseError, match="cannot hold your notebooks"):
        notebooks.copy(tmp_path / "mine", "")


def test_without_notebooks_the_learner_is_told_where_one_is(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "EXERCISES", tmp_path)
    monkeypatch.setattr(notebooks, "PACKED", tmp_path)
    with pytest.raises(CourseError, match="Download one"):
        notebooks.source()


def test_the_copy_links_to_the_book_where_it_is_published(source, tmp_path):
    notebooks.copy(tmp_path / "mine", "https://book.example")
    text = (tmp_path / "mine" / FIRST).read_text(encoding="utf-8")
    assert "https://book.example/00_start_here.html#sec-00-product" in text
    assert "Links open the book at https://book.example." in text and "127.0.0.1" not in text


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda each: each.id)
def test_every_notebook_says_where_its_links_lead_in_the_words_that_are_exchanged(assignment):
    path = ROOT / "exercises" / assignment.id / f"{assignment.notebook}.ipynb"
    assert address.SAID in path.read_text(encoding="utf-8")


def test_the_notebook_that_opens_is_the_first_that_is_not_done(source, tmp_path):
    mine = tmp_path / "mine"
    source(SECOND)
    notebooks.copy(mine, "")
    assert notebooks.to_open(mine) == FIRST
    done = {name: {"points": 2, "of": 2} for name in catalogue.find_assignment("00_start_here").exercise_ids}
    (mine / PROGRESS).write_text(json.dumps({"exercises": done}), encoding="utf-8")
    assert notebooks.to_open(mine) == SECOND
    for broken in ("{", "[]", '{"exercises": {"a": 1}}', '{"exercises": 1}'):
        (mine / PROGRESS).write_text(broken, encoding="utf-8")
        assert notebooks.to_open(mine) == FIRST
    (mine / FIRST).write_text("no notebook", encoding="utf-8")
    assert notebooks.to_open(mine) == FIRST


def test_a_server_of_the_desk_leaves_out_teachers_tools_and_the_news_and_nobody_s_settings_change(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(quiet.FOLDERS, "before")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    quiet.settings(tmp_path)
    assert os.environ[quiet.FOLDERS].split(os.pathsep) == [str(tmp_path), "before"]
    from jupyter_core.paths import jupyter_config_path

    assert jupyter_config_path()[0] == str(tmp_path)
    page = json.loads((tmp_path / "labconfig" / "page_config.json").read_text(encoding="utf-8"))
    assert set(page["disabledExtensions"]) == {"@jupyter/nbgrader", "@jupyterlab/apputils-extension:announcements"}
    server = json.loads((tmp_path / "jupyter_server_config.json").read_text(encoding="utf-8"))
    assert set(server["ServerApp"]["jpserver_extensions"]) == of_nbgrader()


def of_nbgrader() -> set[str]:
    """The server extensions that an installed nbgrader switches on."""
    import sys

    file = Path(sys.prefix, "etc", "jupyter", "jupyter_server_config.d", "nbgrader.json")
    return set(json.loads(file.read_text(encoding="utf-8"))["ServerApp"]["jpserver_extensions"])


def test_a_port_that_is_taken_is_passed_over_and_twenty_are_a_sentence(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        if port < 65_000:
            assert desk.free_port(port) > port
    monkeypatch.setattr(desk, "_is_free", lambda port: False)
    with pytest.raises(CourseError, match="8888 to 8907 are all taken. Name another: --port 9888"):
        desk.free_port(8888)
    with pytest.raises(CourseError, match="--port: expected a number"):
        desk.free_port(0)


def test_without_jupyterlab_the_command_says_how_to_get_it(monkeypatch, capsys, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    assert command_line.main(["learn", str(tmp_path)]) == 2
    assert "pip install jupyterlab ipywidgets" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# --- the book's address ----------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A built book of two files."""
    for name in ("index.html", "objects.inv"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.setattr(desk, "SITE", tmp_path)
    monkeypatch.delenv(address.SETTING, raising=False)
    monkeypatch.setattr(address, "_of_package", lambda: "")
    return tmp_path


def test_the_book_is_served_beside_the_desk_and_kernels_hear_where(site, monkeypatch):
    monkeypatch.setattr(desk, "_is_free", lambda port: port > address_port() + 1)  # 8000 and 8001 are another's
    monkeypatch.setattr(
        desk, "ThreadingHTTPServer", lambda place, handler: ThreadingHTTPServer(("127.0.0.1", 0), handler)
    )
    with desk.book() as where:
        assert where == "http://127.0.0.1:8002" == os.environ[address.SETTING] == address.book_address()
    assert address.SETTING not in os.environ


def address_port() -> int:
    return int(address.SERVED.rpartition(":")[2])


def test_the_same_book_that_make_serve_shows_is_used_and_another_program_is_not(site, monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(desk._Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(desk, "BOOK_PORT", server.server_port)
        where = f"http://127.0.0.1:{server.server_port}"
        assert desk._serves_this_book(where)
        monkeypatch.setattr(desk, "SITE", site / "nowhere")
        with pytest.raises(FileNotFoundError):
            (desk.SITE / "objects.inv").read_bytes()
        assert not desk._serves_this_book(where)
        server.shutdown()


def test_a_book_that_is_published_is_not_served_again(site, monkeypatch):
    monkeypatch.setenv(address.SETTING, "https://book.example/")
    with desk.book() as where:
        assert where == "https://book.example"


def test_where_no_book_is_built_there_is_none(site, monkeypatch):
    monkeypatch.setattr(desk, "SITE", site / "nowhere")
    with desk.book() as where:
        assert where == ""


@pytest.mark.parametrize(
    ("named", "set_", "package", "here", "wanted"),
    [
        ("https://a.example/", "https://b.example", "https://c.example", True, "https://a.example"),
        ("", "https://b.example", "https://c.example", True, "https://b.example"),
        ("", "", "https://c.example", True, "https://c.example"),
        ("", "", "", True, address.SERVED),
        ("", "", "", False, ""),
        ("javascript:alert(1)", "book.example", "", False, ""),
    ],
)
def test_the_book_is_where_the_nearest_setting_says(monkeypatch, tmp_path, named, set_, package, here, wanted):
    monkeypatch.setenv(address.SETTING, set_)
    monkeypatch.setattr(address, "_of_package", lambda: package)
    monkeypatch.setattr(address, "PAGE", Path(__file__) if here else tmp_path / "nowhere")
    assert address.book_address(named) == wanted
