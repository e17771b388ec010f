"""Every attack in attacks/ graded together with honest work: nothing is gained, nobody else loses, the batch completes.

Those in attacks/judge/ go for the verdict, those in attacks/machine/ for the machine; only these ask something else of
each sandbox. An attack is a notebook's cells: `# %% before` is before the first answer, `# %% after` at the end,
`# %% answers` in the place of every answer, `# %% ID` of that one, `# %% checks` of every check; other answers stay
blank. The words NAME, ID, COURSE, REPOSITORY and PORT are filled in.
"""

import json
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from graded_course import ENGINES, SANDBOXES, Graded, need_isolation
from nbformat.v4 import new_code_cell

from autograder import catalogue, course
from autograder.feedback import verdict_log
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox.visible import HERE

pytestmark = pytest.mark.slow

ATTACKS = {path.stem: path for path in sorted((Path(__file__).parent / "attacks").glob("*/*.cells"))}
ON_MACHINE = [name for name, path in ATTACKS.items() if path.parent.name == "machine"]
MARK = "#left-behind-by-an-attack"
LIMITS = """
c.JudgedExecute.sandbox = "{}"
c.JudgedExecute.cell_seconds = 1.5
c.JudgedExecute.notebook_seconds = 5
c.JudgedExecute.memory_bytes = 1 << 30
"""


def cells_of(attack: str, folder: Path, port: int) -> dict[str, str]:
    """Place -> source, with everything filled in but NAME and ID."""
    text = ATTACKS[attack].read_text(encoding="utf-8")
    for word, value in {"COURSE": folder, "REPOSITORY": HERE, "PORT": port, "#MARK": MARK}.items():
        text = re.sub(rf"\b{word}\b" if word.isalpha() else word, str(value), text)
    parts = re.split(r"^# %% (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def hand_in(graded: Graded, attack: str, port: int) -> None:
    """Write the attack as a submission of a student of its name."""
    cells = cells_of(attack, graded.folder, port)
    assert cells, attack
    answers = {}
    for exercise in ASSIGNMENT.exercises:
        source = cells.pop(exercise.id, cells.get("answers"))
        if source is not None:
            answers[exercise.id] = re.sub(r"\bID\b", exercise.id, re.sub(r"\bNAME\b", exercise.names[0], source))
    path = sample_class.submit(graded.folder, f"attack-{attack}", answers)
    notebook = course.read_notebook(path)
    for cell in notebook["cells"]:
        if "checks" in cells and cell["id"].endswith("-check"):
            cell["source"] = cells["checks"]
    first = next(place for place, cell in enumerate(notebook["cells"]) if cell["id"] == ASSIGNMENT.exercises[0].id)
    if "before" in cells:
        notebook["cells"].insert(first, new_code_cell(cells["before"]))
    if "after" in cells:
        notebook["cells"].append(new_code_cell(cells["after"]))
    assert set(cells) <= {"before", "after", "answers", "checks"}, attack
    path.write_text(json.dumps(notebook), encoding="utf-8")


class Attacked(Graded):
    """A graded class of attackers."""

    attacks: Sequence[str] = ()
    backend = ""

    @property
    def verdicts(self) -> list[dict]:
        """The verdict log."""
        lines = verdict_log.path_of(self.folder, ASSIGNMENT.id).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


def without_gradients() -> dict[str, str]:
    """Right answers through which no gradient flows."""
    cut = "\nwhole = {0}\ndef {0}(*arguments, whole=whole):\n    return whole(*arguments).detach()\n"
    solved = sample_class.solved()
    return solved | {name: solved[name] + cut.format(name.replace("-", "_")) for name in ("project", "attend")}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (backend, list(ATTACKS) if backend == "bubblewrap" else ON_MACHINE),
            id=backend,
            marks=pytest.mark.xdist_group(f"attacks-{backend}"),
        )
        for backend in SANDBOXES
    ],
)
def attacked(request, empty_course):
    """Attackers between two honest students, graded in one batch."""
    backend, attacks = request.param
    need_isolation(backend)
    made = empty_course(f"attacked-{backend}")
    graded = Attacked(made.folder, made.assignment)
    graded.attacks, graded.backend = attacks, backend
    with (graded.folder / course.MARKER).open("a", encoding="utf-8") as file:
        file.write(LIMITS.format(backend))
    for student in ("a-honest", "z-honest"):
        sample_class.submit(graded.folder, student, sample_class.solved())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for attack in attacks:
            hand_in(graded, attack, listener.getsockname()[1])
        sample_class.submit(graded.folder, "no-gradients", without_gradients())
        graded.autograde()
        listener.settimeout(0)
        try:
            listener.accept()
            graded.log += "\nCONNECTED"
        except BlockingIOError:
            pass
    return graded


def test_the_batch_completes(attacked):
    assert attacked.code == 0, attacked.log[-3000:]


@pytest.mark.parametrize("student", ["a-honest", "z-honest"])
def test_an_honest_classmate_keeps_every_point(attacked, student):
    assert attacked.scores(student) == {exercise.id: exercise.points for exercise in ASSIGNMENT.exercises}


def test_no_attack_gains_a_point(attacked):
    gained = {attack: attacked.scores(f"attack-{attack}") for attack in attacked.attacks}
    assert {attack: scores for attack, scores in gained.items() if any(scores.values())} == {}
    assert all(set(scores) == {exercise.id for exercise in ASSIGNMENT.exercises} for scores in gained.values())


def test_an_answer_without_gradients_loses_what_asks_for_them(attacked):
    earned = attacked.scores("no-gradients")
    for exercise in ASSIGNMENT.exercises:
        if exercise.id in ("project", "attend"):
            assert 0 < earned[exercise.id] < exercise.points
            assert "gradient" in attacked.report("no-gradients", exercise.id)
        else:
            assert earned[exercise.id] == exercise.points


def test_every_attack_is_told_its_verdict(attacked):
    for attack in attacked.attacks:
        for exercise in ASSIGNMENT.exercises:
            assert attacked.report(f"attack-{attack}", exercise.id).startswith(exercise.id), attack


def test_nothing_leaks_into_a_graded_notebook(attacked):
    for path in attacked.folder.glob("classroom/autograded/attack-*/*/*.ipynb"):
        notebook = course.read_notebook(path)
        outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
        shown = "".join("".join(output.get("text", "")) for output in outputs)
        assert "LEAKED" not in shown, path
        assert {kind for output in outputs for kind in output.get("data", {})} <= {"text/plain"}, path
        assert path.stat().st_size < 4 << 20, path


def test_nothing_outside_the_sandbox_is_touched(attacked):
    left = {"late", "escaped", "pickled"} & {path.name for path in attacked.folder.iterdir()}
    assert not left
    assert "CONNECTED" not in attacked.log
    assert len((attacked.folder / "classroom" / "secret").read_bytes()) == 32
    assert not list(attacked.folder.rglob("sitecustomize.py")) and not list(attacked.folder.rglob("*.bin"))


def test_no_process_is_left_behind(attacked):
    running = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            running.append(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:  # it has ended
            continue
    assert not [command for command in running if MARK in command]


def test_a_loop_costs_only_what_it_holds_up(attacked):
    report = attacked.report("attack-loop_in_a_cell", "project")
    assert "NotImplementedError" in report  # the loop was interrupted, and the checks after it ran
    assert "seconds" in attacked.report("attack-loop_in_an_answer", ASSIGNMENT.exercises[-1].id)


def test_a_dead_process_is_said_to_be_dead(attacked):
    assert "process ended" in attacked.report("attack-os_exit", ASSIGNMENT.exercises[-1].id)
    # A container engine has a limit of its own: its kernel may end the children before our watch sees them.
    reason = "memory|took more than" if attacked.backend in ENGINES else "memory"
    assert re.search(reason, attacked.report("attack-memory_of_many", ASSIGNMENT.exercises[-1].id))


def test_every_verdict_is_on_record(attacked):
    honest = [record for record in attacked.verdicts if record["student"] == "z-honest"]
    assert [record["exercise"] for record in honest] == [exercise.id for exercise in ASSIGNMENT.exercises]
    assert all(record["points"] == record["possible"] == catalogue.find(record["exercise"]).points for record in honest)
    assert all(case["passed"] and case["seed"] >= 0 for record in honest for case in record["cases"])
    assert honest[0]["versions"]["torch"]
