"""What `doctor` finds in an installation, one broken thing at a time, and what it says to do."""

import os
import stat
from dataclasses import replace

import pytest
from nbgrader.api import Gradebook

from autograder import __main__ as command_line
from autograder import course
from autograder.catalogue.exercise import Assignment
from autograder.grade import nbgrader_patches
from autograder.prepare import doctor, sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox import backends
from transformer_ref import machine


@pytest.fixture
def folder(tmp_path, monkeypatch):
    sample_class.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def about(folder, what: str) -> list[doctor.Finding]:
    found = [finding for finding in doctor.examine(folder) if finding.about == what]
    assert found, f"nothing was said about {what}"
    return found


def change(folder, before: str, after: str) -> None:
    path = folder / course.MARKER
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_a_sound_course_can_grade(folder, capsys):
    assert command_line.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "This installation can grade." in printed
    assert "✓ a cell: ran in the sandbox as a submission's would" in printed
    assert "✗" not in printed


def test_a_sandbox_that_can_be_chosen_but_runs_nothing_is_a_failure(folder, monkeypatch, capsys):
    for name in ("bubblewrap", "landlock"):
        broken = replace(backends.BACKENDS[name], command=lambda place, program, limits: ["/nowhere/python"])
        monkeypatch.setitem(backends.BACKENDS, name, broken)
    monkeypatch.setattr(backends, "why_not", lambda name: "")
    assert command_line.main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert (
        "✓ sandbox: bubblewrap isolates" in printed and "✗ a cell: The sandbox bubblewrap cannot be started" in printed
    )
    assert "nobody would be graded" in printed and "This installation can grade." not in printed


def test_every_finding_that_is_not_well_says_what_to_do(folder):
    (folder / "torch.py").write_text("", encoding="utf-8")
    (folder / "classroom" / "secret").parent.mkdir(exist_ok=True)
    (folder / "classroom" / "secret").write_bytes(b"short")
    for finding in doctor.examine(folder):
        lines = str(finding).splitlines()
        assert lines[0][0] in "✓✗!"
        assert (lines[0][0] == "✓") == (len(lines) == 1)


def test_what_was_chosen_for_this_machine_is_listed(folder, monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, "precision=fp32,muon=bf16,attention=kernel,top_k=3000")
    seen = [finding.seen for finding in about(folder, "machine")]
    assert seen[0].endswith("processors may be used")
    assert f"matrix products: fp32 (set by {machine.VARIABLE})" in seen
    assert f"top k in pieces: from 3,000 tokens on (set by {machine.VARIABLE})" in seen
    monkeypatch.setenv(machine.VARIABLE, "precision=fp8")
    (wrong,) = [finding for finding in about(folder, "machine") if finding.remedy]
    assert "expected fp32 or bf16 for precision, got 'fp8'" in wrong.seen and not wrong.fatal


@pytest.mark.parametrize("place", ["torch.py", f"exercises/{ASSIGNMENT.id}/numbers.py"])
def test_a_file_that_hides_a_package_is_named(folder, place):
    (folder / place).write_text("", encoding="utf-8")
    (finding,) = about(folder, "names")
    assert finding.fatal and str(folder / place) in finding.seen


def test_a_secret_that_others_can_read_is_a_failure(folder):
    secret = folder / "classroom" / "secret"
    course.secret(folder)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert not about(folder, "secret")[0].remedy
    secret.chmod(0o644)
    assert about(folder, "secret")[0].remedy == f"chmod 600 {secret}"


def test_a_secret_that_is_gone_from_a_judged_class_is_named(folder):
    assert "none yet" in about(folder, "secret")[0].seen
    verdicts = folder / "classroom" / "verdicts" / f"{ASSIGNMENT.id}.jsonl"
    verdicts.parent.mkdir(parents=True)
    verdicts.write_text("{}\n")
    (finding,) = about(folder, "secret")
    assert f"is gone, although submissions were judged with it: {ASSIGNMENT.id}" in finding.seen
    assert finding.remedy.startswith("Put it back from your copy") and not (folder / "classroom" / "secret").exists()


def test_points_of_own_assignments_are_compared_too(folder, monkeypatch):
    dearer = replace(ASSIGNMENT.exercises[0], hidden_points=50)
    own = Assignment.of(ASSIGNMENT.id, ASSIGNMENT.notebook, (dearer, *ASSIGNMENT.exercises[1:]))
    monkeypatch.setattr(doctor.catalogue, "assignments", lambda: (own,))
    (finding,) = about(folder, "points")
    assert f"the check of {dearer.id}: " in finding.seen and finding.fatal


def test_looking_makes_no_secret_and_no_gradebook(folder):
    list(doctor.examine(folder))
    assert not (folder / "classroom" / "secret").exists()
    assert not (folder / "classroom" / "gradebook.db").exists()


def test_a_gradebook_is_counted_and_a_broken_one_is_a_failure(folder):
    nbgrader_patches.make_gradebooks_here()
    path = folder / "classroom" / "gradebook.db"
    path.parent.mkdir(exist_ok=True)
    with Gradebook(f"sqlite:///{path}", "attention-by-hand") as gradebook:
        gradebook.add_student("ada")
    assert "1 students" in about(folder, "gradebook")[0].seen
    path.write_bytes(b"not a database, at all" * 100)
    assert about(folder, "gradebook")[0].fatal and about(folder, "gradebook")[0].remedy


def test_a_gradebook_elsewhere_is_shown_without_its_password(folder):
    change(folder, "f\"sqlite:///{classroom / 'gradebook.db'}\"", '"postgresql://teacher:hunter2@127.0.0.1:1/course"')
    (finding,) = about(folder, "gradebook")
    assert finding.remedy
    assert "hunter2" not in str(finding)


def test_a_configuration_without_the_judge_is_a_failure(folder):
    change(folder, '"autograder.grade.execute.JudgedExecute"', '"nbgrader.preprocessors.Execute"')
    (finding,) = about(folder, course.MARKER)
    assert "notebooks would grade themselves" in finding.seen


def test_a_configuration_that_is_no_python_is_a_failure(folder, capsys):
    (folder / course.MARKER).write_text("c = get_config(\n", encoding="utf-8")
    assert command_line.main(["doctor"]) == 1
    assert "SyntaxError" in capsys.readouterr().out


def test_time_limits_shorter_than_the_checks_are_said(folder):
    with (folder / course.MARKER).open("a", encoding="utf-8") as file:
        file.write("c.JudgedExecute.cell_seconds = 1.5\n")
    (finding,) = about(folder, "time limits")
    assert finding.remedy and "1.5 s" in finding.seen


def test_no_sandbox_is_a_failure_and_trust_a_warning(folder, monkeypatch):
    monkeypatch.setattr(backends, "why_not", lambda name: "" if name == backends.TRUST else "not here")
    (finding,) = about(folder, "sandbox")
    assert finding.fatal and "bubblewrap: not here" in finding.seen
    monkeypatch.setenv(backends.SANDBOX, backends.TRUST)
    (finding,) = about(folder, "sandbox")
    assert finding.remedy and not finding.fatal


def test_another_version_than_the_tested_one_is_said(folder, monkeypatch, tmp_path):
    lock = tmp_path / "lock.txt"
    lock.write_text(doctor.LOCK.read_text(encoding="utf-8").replace("nbgrader==", "nbgrader==99."), encoding="utf-8")
    monkeypatch.setattr(doctor, "LOCK", lock)
    (finding,) = about(folder, "packages")
    assert finding.seen.startswith("nbgrader is ") and not finding.fatal


def test_a_course_without_exercises_is_a_failure(folder):
    course.notebook_path(folder, "exercises", ASSIGNMENT).unlink()
    (finding,) = about(folder, "exercises")
    assert finding.fatal and finding.remedy == "make release"


def test_a_kernel_of_another_python_is_said(folder, monkeypatch):
    place = folder / "kernels" / "python3"
    place.mkdir(parents=True)
    (place / "kernel.json").write_text('{"argv": ["/elsewhere/bin/python"], "display_name": "x", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(folder))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    (finding,) = about(folder, "kernel python3")
    assert "/elsewhere/bin/python" in finding.seen and not finding.fatal


@pytest.mark.slow
def test_exercises_named_get_the_matrix_of_known_answers(folder, capsys):
    assert command_line.main(["doctor", "project"]) == 0
    assert "Every known answer is judged as it should be." in capsys.readouterr().out
    assert os.getcwd() == str(folder)
