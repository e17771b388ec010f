"""What a submission's process can see of this machine, wherever a course, its Python and its classroom lie."""

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest
from graded_course import need_isolation
from traitlets.config import Config

from autograder import course
from autograder.inside.limits import Limits
from autograder.prepare import doctor
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox import hiding
from autograder.sandbox.backends import BACKENDS
from autograder.sandbox.hiding import HIDDEN, SEEN, NotHiddenError
from autograder.sandbox.runner import Runner

pytestmark = pytest.mark.xdist_group("sandbox")

BOTH = pytest.mark.parametrize("name", ["bubblewrap", "landlock"])


def is_seen(path: Path | str, arranged: list[tuple[str, str]]) -> bool:
    """Whether a path can be read inside."""
    kinds = {place: kind for kind, place in arranged}
    around = [str(path), *map(str, Path(path).parents)]
    return next((kinds[place] for place in around if place in kinds), HIDDEN) == SEEN


def shown_by(name: str, source: str, private: tuple[str, ...] = ()) -> str:
    """The output of one expression in a new sandbox."""
    need_isolation(name)
    started = Runner(ASSIGNMENT, BACKENDS[name], Limits(), private)
    try:
        with started.submission() as submission:
            output = submission.run(source).outputs[-1]
            return str(output.get("evalue") or output.get("text") or output.data["text/plain"])
    finally:
        started.close()


@pytest.fixture
def python_at(monkeypatch):
    """Pretends that this Python is installed in a folder."""

    def install(folder: Path) -> Path:
        for part in ("bin", "lib", "courses/a"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for prefix in ("prefix", "exec_prefix", "base_prefix"):
            monkeypatch.setattr(sys, prefix, str(folder))
        return folder

    return install


@BOTH
def test_a_course_below_a_folder_of_programs_cannot_be_read(name, monkeypatch):
    place = Path(sysconfig.get_path("purelib")) / "yaml"  # stands for a course: any folder that exists in every /usr
    assert shown_by(name, f"len(open('{place}/__init__.py').read()) > 0") == "True"
    monkeypatch.setattr(course, "find_root", lambda start=None: place)
    assert shown_by(name, f"open('{place}/__init__.py').read()").startswith("[Errno")


@BOTH
def test_other_folders_beside_an_environments_own_cannot_be_read(name):
    place = tempfile.mkdtemp(dir=sys.prefix)  # such as another course in a conda folder, or in a checkout that is one
    try:
        os.chmod(place, 0o755)
        (Path(place) / "secret").write_text("x", encoding="utf-8")
        assert shown_by(name, f"open('{place}/secret').read()").startswith("[Errno")
    finally:
        shutil.rmtree(place)


@BOTH
def test_folders_named_in_the_configuration_cannot_be_read(name):
    place = Path(sysconfig.get_path("purelib")) / "yaml"
    private = hiding.places_of_course(Config(Exchange={"root": str(place)}))
    assert shown_by(name, f"__import__('os').listdir('{place}')", tuple(private)) != "False"
    assert shown_by(name, f"open('{place}/__init__.py').read()", tuple(private)).startswith("[Errno")


@BOTH
def test_names_of_what_is_hidden_cannot_be_listed(name):
    place = next((path for path in (Path(sys.prefix) / "share").iterdir() if path.is_dir()), None)
    if place is None:
        pytest.skip("this Python has nothing in share")
    listing = f"__import__('os').listdir('{place}') or 'nothing'"
    assert shown_by(name, listing).startswith("['")
    assert shown_by(name, listing, (str(place),)).startswith(("[Errno", "'nothing'"))


@pytest.mark.parametrize("place", ["/opt/course/x", "/usr/local/courses/x", "/usr/courses/x", "/srv/course/x"])
def test_a_course_of_somebody_else_is_not_among_the_programs(place):
    assert not is_seen(place, hiding.arranged())


def test_an_environment_inside_the_course_stays_in_sight_and_the_course_does_not(python_at, tmp_path, monkeypatch):
    environment = python_at(tmp_path / "course" / ".venv")
    monkeypatch.setattr(course, "find_root", lambda start=None: tmp_path / "course")
    arranged = hiding.arranged()
    assert is_seen(environment / "lib" / "torch", arranged) and is_seen(environment / "bin" / "python", arranged)
    assert not is_seen(tmp_path / "course" / "solutions", arranged)
    assert not is_seen(environment / "courses" / "a", arranged)


def test_a_course_that_is_itself_an_environment_shows_only_what_is_one(python_at, tmp_path, monkeypatch):
    environment = python_at(tmp_path)  # python -m venv . in the checkout
    monkeypatch.setattr(course, "find_root", lambda start=None: tmp_path)
    arranged = hiding.arranged()
    assert is_seen(environment / "lib" / "torch", arranged)
    assert not is_seen(environment / "classroom" / "secret", arranged)


def test_a_course_is_hidden_by_every_name_of_the_environment_around_it(python_at, tmp_path):
    (tmp_path / "named").symlink_to(python_at(tmp_path / "real"))
    python_at(tmp_path / "named")
    private = tmp_path / "real" / "lib" / "course"
    private.mkdir()
    arranged = hiding.arranged([tmp_path / "named" / "lib" / "course"])
    assert is_seen(tmp_path / "named" / "lib" / "torch", arranged)
    assert not is_seen(tmp_path / "named" / "lib" / "course" / "x", arranged)
    assert not is_seen(private / "x", arranged)


def test_a_folder_of_programs_that_should_be_hidden_is_refused_by_its_name(python_at, tmp_path):
    library = python_at(tmp_path) / "lib"
    with pytest.raises(NotHiddenError, match=rf"^{library} holds programs.*move the course into a folder of its own"):
        hiding.arranged([library])


def test_the_doctor_says_what_is_hidden_and_what_cannot_be(monkeypatch):
    need_isolation("bubblewrap")
    found = {finding.about: finding for finding in doctor._sandbox(Config())}
    assert str(course.find_root()) in found["hidden"].seen and not found["hidden"].remedy
    monkeypatch.setattr(course, "find_root", lambda start=None: Path("/usr/bin"))
    found = {finding.about: finding for finding in doctor._sandbox(Config())}
    assert "/usr/bin holds programs" in found["hidden"].remedy
