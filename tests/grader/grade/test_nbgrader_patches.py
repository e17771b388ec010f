"""nbgrader's gradebook, opened once for a whole submission: as faithful as opened nine times."""

import gc
import sqlite3
import subprocess
import sys

import jsonschema
import pytest
from nbgrader import api, dbutil
from nbgrader.nbgraderformat import common
from sqlalchemy import exc, text

from autograder import course
from autograder.grade import nbgrader_patches


@pytest.fixture
def address(tmp_path, monkeypatch) -> str:
    """Of a gradebook with one assignment, while the patches hold."""
    for holder, name in ((api, "create_engine"), (api, "get_alembic_version"), (common, "jsonschema")):
        monkeypatch.setattr(holder, name, getattr(holder, name))
    for name in ("__init__", "close"):
        monkeypatch.setattr(api.Gradebook, name, getattr(api.Gradebook, name))
    nbgrader_patches.install()
    address = f"sqlite:///{tmp_path / 'gradebook.db'}"
    sqlite3.connect(tmp_path / "gradebook.db").execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
    with api.Gradebook(address, "course") as gradebook:
        gradebook.add_assignment("first")
    return address


def students(address: str) -> list[str]:
    """As another program sees them."""
    connection = sqlite3.connect(address.removeprefix("sqlite:///"))
    return sorted(name for (name,) in connection.execute("SELECT id FROM student"))


def hand_in(address: str, student: str) -> None:
    """As nbgrader's converter does, which opens the gradebook for each step."""
    with api.Gradebook(address, "course") as gradebook:
        gradebook.update_or_create_student(student)
    with api.Gradebook(address) as gradebook:
        gradebook.update_or_create_submission("first", student)


def test_a_new_gradebook_says_the_version_that_nbgrader_s_own_program_says(tmp_path, monkeypatch):
    (_, *_), environment = course.nbgrader_command()
    monkeypatch.setattr(api, "get_alembic_version", api.get_alembic_version)
    nbgrader_patches.make_gradebooks_here()
    monkeypatch.setenv("PATH", "")
    with api.Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", "course") as gradebook:
        (made,) = gradebook.db.execute(text("SELECT version_num FROM alembic_version")).one()
    monkeypatch.setenv("PATH", environment["PATH"])
    with dbutil._temp_alembic_ini(f"sqlite:///{tmp_path / 'gradebook.db'}") as settings:
        said = subprocess.run(["alembic", "-c", settings, "heads"], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [made, "(head)"]


def test_what_one_step_stores_the_next_one_sees_and_others_only_at_the_end(address):
    with nbgrader_patches.one_gradebook(address, "course", keep=True):
        hand_in(address, "ada")
        with api.Gradebook(address, "course") as gradebook:
            assert gradebook.find_submission("first", "ada").student.id == "ada"
        assert students(address) == []
    assert students(address) == ["ada"]


@pytest.mark.parametrize("keep", [True, False])
def test_nothing_stays_of_what_fails_or_is_not_to_be_kept(address, keep):
    try:
        with nbgrader_patches.one_gradebook(address, "course", keep=keep):
            hand_in(address, "ada")
            if keep:
                raise ValueError("half way")
    except ValueError:
        pass
    assert students(address) == []
    hand_in(address, "ben")  # by itself it works as ever
    assert students(address) == ["ben"]


def test_a_gradebook_that_another_program_holds_is_an_error_that_can_be_waited_out(address):
    other = sqlite3.connect(address.removeprefix("sqlite:///"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises((exc.OperationalError, api.InvalidEntry)):
        with nbgrader_patches.one_gradebook(address, "course", keep=True):
            with api.Gradebook(address, "course") as gradebook:
                gradebook.db.connection().exec_driver_sql("PRAGMA busy_timeout = 0")
                gradebook.update_or_create_student("ada")
    other.rollback()
    with nbgrader_patches.one_gradebook(address, "course", keep=True):
        hand_in(address, "ada")
    assert students(address) == ["ada"]


def test_metadata_that_nbgrader_refuses_is_still_refused(address):
    schema = {"type": "object", "properties": {"points": {"type": "number"}}, "required": ["points"]}
    common.jsonschema.validate({"points": 1}, schema)
    with pytest.raises(jsonschema.ValidationError, match="'many' is not of type 'number'"):
        common.jsonschema.validate({"points": "many"}, schema)


def test_a_long_class_leaves_no_objects_behind_in_the_process(address):
    def graded(names: range) -> int:
        for name in names:
            with nbgrader_patches.one_gradebook(address, "course", keep=True):
                hand_in(address, f"student-{name}")
        gc.collect()
        return len(gc.get_objects())

    graded(range(10))
    before = graded(range(10, 20))
    assert graded(range(20, 60)) - before < 40  # less than one for each of them


def test_a_command_of_nbgrader_that_we_start_compiles_no_grammar_that_nothing_needs():
    (python, *command), environment = course.nbgrader_command("--version")
    done = subprocess.run([python, "-v", *command], env=environment, capture_output=True, text=True, check=True)
    assert "import 'nbgrader.apps.nbgraderapp'" in done.stderr
    assert "rfc3987_syntax" not in done.stderr


def test_no_command_of_ours_compiles_it_either():
    modules = "for module, _ in COMMANDS.values(): import_module(f'autograder.{module}')"
    program = f"from importlib import import_module\nfrom autograder.__main__ import COMMANDS\n{modules}\n"
    program += "import sys\nprint('jsonschema' in sys.modules, sys.modules['rfc3987_syntax'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "None"]
