"""What `make setup` does about programs that pip cannot install, on machines made up for the purpose."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = ["bash", "env", "tr", "ls", "grep"]


class Machine:
    """A search path of its own, with a user id and whatever programs a test puts there."""

    def __init__(self, root: Path, folder: Path, user: int) -> None:
        self.root, self.programs, self.log = root, folder / "bin", folder / "apt.log"
        self.programs.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            (self.programs / tool).symlink_to(found)
        self.add("id", f"echo {user}")

    def add(self, name: str, body: str = "") -> None:
        program = self.programs / name
        program.write_text(f"#!{self.programs / 'bash'}\n{body}\n", encoding="utf-8")
        program.chmod(0o755)

    def set_up(self) -> str:
        """Runs the script; returns what a person sees of it. It succeeds on every machine."""
        environment = {"PATH": str(self.programs), "HOME": str(self.log.parent), "PYTHON": sys.executable}
        result = subprocess.run(
            [str(self.programs / "bash"), ".ci/system-packages"],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert result.returncode == 0, result.stdout
        return result.stdout

    def asked_of_apt(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""


@pytest.fixture
def machine(root: Path, tmp_path: Path):
    return lambda user: Machine(root, tmp_path, user)


def with_apt(machine: Machine) -> None:
    machine.add("apt-get", f'echo "$@" >> {machine.log}')


def test_root_with_apt_gets_bubblewrap_installed(machine) -> None:
    made = machine(0)
    with_apt(made)
    made.set_up()
    assert "install" in made.asked_of_apt()
    assert "bubblewrap" in made.asked_of_apt()


def test_a_user_whose_sudo_asks_for_a_password_is_told_and_nothing_is_installed(machine) -> None:
    made = machine(1000)
    with_apt(made)
    made.add("sudo", "exit 1")
    printed = made.set_up()
    assert made.asked_of_apt() == ""
    assert "apt:" not in printed
    assert "missing: bubblewrap" in printed
    assert "missing: Chromium" in printed


def test_a_machine_without_apt_is_told_what_each_missing_program_costs(machine) -> None:
    lines = machine(0).set_up().splitlines()
    assert [line.split(".")[0].strip() for line in lines if "bubblewrap" in line] == ["missing: bubblewrap"]
    assert any("browser tests are skipped" in line for line in lines)


def test_a_machine_that_has_everything_is_left_alone(machine) -> None:
    made = machine(0)
    with_apt(made)
    made.add("bwrap")
    made.add("chromium")
    assert made.set_up() == ""
    assert made.asked_of_apt() == ""


def test_apt_s_warnings_are_not_shown_where_it_succeeds(machine) -> None:
    made = machine(0)
    made.add("apt-get", 'echo "debconf: delaying package configuration" >&2')
    assert "apt:" in (printed := made.set_up())
    assert "debconf" not in printed


def test_an_apt_that_fails_says_why(machine) -> None:
    made = machine(0)
    made.add("apt-get", 'echo "debconf: a warning" >&2; echo "E: no space left" >&2; exit 100')
    assert "apt could not install them: E: no space left" in (printed := made.set_up())
    assert "debconf" not in printed


def test_an_apt_that_fails_does_not_stop_the_setup(machine) -> None:
    made = machine(0)
    made.add("apt-get", "exit 100")
    assert "apt could not install them" in made.set_up()
