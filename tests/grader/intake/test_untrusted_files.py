"""What students really hand in: whatever a file is called and however it is stored, what is in it counts; what nobody
can read is told in a sentence; and no folder hangs, stops or fills anything."""

import dataclasses
import io
import json
import os
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import damage
import damaged_folders
import pytest
from damage import stored
from damaged_folders import RELEASED, handed_in
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.catalogue import ASSIGNMENTS
from autograder.intake import choose, salvage, unpack
from autograder.intake import take_in as intake
from autograder.intake import untrusted_files as folders
from autograder.intake.rebuild import rebuild
from autograder.policy import receipts
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

NAME = f"{ASSIGNMENT.notebook}.ipynb"
ORDINARY = 12345  # a user without rights


@pytest.fixture
def folder(tmp_path) -> Iterator[Path]:
    place = tmp_path / ASSIGNMENT.id
    place.mkdir()
    yield place
    damaged_folders.remove(place)


def take_in(folder: Path) -> intake.TakenIn:
    return intake.take_in(RELEASED, ASSIGNMENT, folder)


def data(**answers: str) -> bytes:
    """A notebook with every answer right, except those that are given."""
    notebook = handed_in()
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell.get("id", "").replace("-", "_"), cell["source"])
    return json.dumps({key: value for key, value in notebook.items() if key != "blank"}).encode()


def own_cell(source: str) -> bytes:
    notebook = json.loads(data())
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": source})
    return json.dumps(notebook).encode()


# However it is stored


@pytest.mark.parametrize("way", sorted(stored.WAYS))
def test_however_a_notebook_is_stored_every_answer_counts(folder, way):
    for seed in range(4):
        damaged_folders.write(folder, handed_in(), way, "{}.ipynb", random.Random(seed))
        work = take_in(folder)
        assert damaged_folders.lacking(work) == [], work.reasons


@pytest.mark.parametrize("name", stored.NAMES)
def test_whatever_a_notebook_is_called_it_is_graded(folder, name):
    damaged_folders.write(folder, handed_in(), "utf-8", name, random.Random(0))
    assert damaged_folders.lacking(take_in(folder)) == []


@pytest.mark.parametrize("name", sorted(stored.LOST))
def test_what_nobody_can_read_is_told_in_a_sentence(folder, name):
    stored.LOST[name](folder, handed_in())
    work = take_in(folder)
    assert not work.failure and work.reasons
    assert len(damaged_folders.lacking(work)) == len(damaged_folders.ANSWERS)


def test_a_blank_that_was_cut_in_two_beside_its_answer_at_the_end_is_no_answer():
    seed = 31_261_022
    drawn, work, _ = damaged_folders.take_in_drawn(seed, assignment := ASSIGNMENTS[seed % len(ASSIGNMENTS)])
    assert {"all_at_the_end", "answer_split_inside_a_function"} <= {*drawn.kinds}
    assert damaged_folders.lacking(work, assignment) == []


@pytest.mark.parametrize("part", range(4))
def test_harmless_damage_costs_no_answer_and_no_folder_is_an_error_of_ours(part):
    for seed in range(100_000 + 20 * part, 100_020 + 20 * part):
        drawn, work, _ = damaged_folders.take_in_drawn(seed)
        assert not work.failure, (seed, drawn)
        assert not drawn.is_harmless or damaged_folders.lacking(work) == [], (seed, drawn, work.reasons)


def test_there_are_enough_kinds_of_damage():
    assert len(damage.HONEST) + len(stored.WAYS) >= 100 and len(damage.BROKEN) >= 25
    assert len(stored.NAMES) >= 30 and len(stored.LOST) >= 10


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("before", [b"", b"x", b"[", b"\xef\xbb\xbf\xef\xbb\xbf"])
def test_a_whole_notebook_is_never_worse_off_than_its_beginning(before, cut):
    whole = rebuild(before + data(), RELEASED).answered
    beginning = rebuild(before + data()[: int(cut * len(data()))], RELEASED).answered
    assert beginning <= whole == set(damaged_folders.ANSWERS)


def test_of_a_conflict_each_answer_counts_that_either_side_has():
    blank = damaged_folders.BLANK
    mine, other = data(attend=blank["attend"]), data(project=blank["project"])
    text = b"<<<<<<< HEAD\n" + mine + b"\n=======\n" + other + b"\n>>>>>>> theirs\n"
    rebuilt = rebuild(text, RELEASED)
    assert rebuilt.answered == set(damaged_folders.ANSWERS)
    assert "merge conflict" in rebuilt.reasons[0] and len(rebuilt.reasons) == 1


def test_of_a_conflict_each_side_is_read_as_a_cell_by_itself():
    notebook = handed_in()
    answer = next(cell for cell in notebook["cells"] if cell["id"] == "attend")
    sides = [text.replace("    ", "\u00a0 \u00a0 ") for text in (damaged_folders.BLANK["attend"], answer["source"])]
    answer["source"] = f"<<<<<<< local\n{sides[0]}\n=======\n{sides[1]}\n>>>>>>> remote\n"
    rebuilt = rebuild(json.dumps(notebook).encode(), RELEASED)
    assert "attend" in rebuilt.answered


def test_of_a_conflict_the_first_side_counts_where_both_have_an_answer():
    text = b"<<<<<<< HEAD\n" + data() + b"\n=======\n" + data(attend="attend = None") + b"\n>>>>>>> theirs\n"
    sources = {cell.id: cell.source for cell in rebuild(text, RELEASED).notebook.cells}
    assert sources["attend"] == damaged_folders.ANSWERS["attend"]


def test_a_locked_zip_and_one_of_too_many_files_give_nothing():
    locked = bytearray(stored.zipped(handed_in(), random.Random(0)))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + place] |= 1
    assert list(unpack.members("a.zip", bytes(locked))) == []
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(unpack.MOST_MEMBERS + 500):
            archive.writestr(f"{number}.txt", b"")
    assert len(list(unpack.members("a.zip", buffer.getvalue()))) <= unpack.MOST_MEMBERS


def test_what_is_unpacked_of_one_file_is_bounded(monkeypatch):
    monkeypatch.setattr(unpack, "MOST_BYTES", 10_000)
    bomb = stored._zip({f"{number}.txt": bytes(8_000) for number in range(5)})
    assert sum(len(content) for _, content in unpack.members("a.zip", bomb)) <= 10_000
    nested = bomb
    for _ in range(unpack.DEEPEST):
        nested = stored._zip({"inner.zip": nested})
    assert list(unpack.members("a.zip", nested)) == []


def test_of_cells_without_number_the_named_ones_are_all_read(monkeypatch):
    monkeypatch.setattr(salvage, "MOST_CELLS", 100)
    notebook = json.loads(data())
    notebook["cells"][2:2] = [{"cell_type": "code", "metadata": {}, "source": f"x = {n}"} for n in range(500)]
    rebuilt = rebuild(json.dumps(notebook).encode(), RELEASED)
    assert rebuilt.answered == set(damaged_folders.ANSWERS)
    assert "Of those without a name the first 100 were read." in rebuilt.reasons[0]


# Reports


@pytest.mark.parametrize(
    "name", [name for name in stored.NAMES if "elf" in name and not name.startswith(".")] + ["{}.ipynb.zip", "a/{}.txt"]
)
def test_nothing_is_said_about_a_name_that_a_platform_makes(folder, name):
    way = "zipped" if name.endswith(".zip") else "utf-8"
    damaged_folders.write(folder, handed_in(), way, name.removesuffix(".zip"), random.Random(0))
    assert take_in(folder).reasons == ()


def test_a_file_beside_the_notebook_is_named_where_a_cell_imports_it(folder):
    (folder / NAME).write_bytes(own_cell("import math, helpers as h\nfrom tools.more import f\nimport torch"))
    for name in ("helpers.py", "tools/more.py", "unused.py", "torch.py", "helpers.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("def f():\n    return 1\n", encoding="utf-8")
    reasons = take_in(folder).reasons
    assert [reason.split("`")[1] for reason in reasons] == ["helpers.py", "tools/more.py"]
    assert "takes only the notebook, so it was not used. Copy its functions into a cell." in reasons[0]


def test_a_module_that_a_cell_writes_is_not_missed(folder):
    (folder / NAME).write_bytes(own_cell("%%writefile helpers.py\nimport helpers"))
    (folder / "helpers.py").touch()
    assert take_in(folder).reasons == ()


def test_a_module_that_the_assignment_takes_is_not_missed(folder):
    (folder / NAME).write_bytes(own_cell("import helpers"))
    (folder / "helpers.py").touch()
    listed = dataclasses.replace(ASSIGNMENT, files=("helpers.py",))
    work = intake.take_in(RELEASED, listed, folder)
    assert work.reasons == () and work.files == (folder / "helpers.py",)


def test_another_file_that_the_assignment_takes_makes_it_new_work(folder):
    (folder / NAME).write_bytes(data())
    listed = dataclasses.replace(ASSIGNMENT, files=("weights.json",))
    alone = intake.take_in(RELEASED, listed, folder).digest
    (folder / "weights.json").write_text("1", encoding="utf-8")
    first = intake.take_in(RELEASED, listed, folder).digest
    (folder / "weights.json").write_text("2", encoding="utf-8")
    assert len({alone, first, intake.take_in(RELEASED, listed, folder).digest}) == 3


# Folders that are traps


def test_a_notebook_beside_thousands_of_files_is_found(folder):
    (folder / "data").mkdir()
    for number in range(3_000):
        (folder / "data" / f"{number}.json").touch()
    (folder / "work").mkdir()
    (folder / "work" / NAME).write_bytes(data())
    assert damaged_folders.lacking(take_in(folder)) == []


def test_traps_beside_the_notebook_do_not_matter(folder):
    stored.only_a_pipe(folder, handed_in())
    (folder / NAME).unlink()
    stored.below_a_thousand_folders(folder, handed_in())
    with (folder / "x.ipynb").open("wb") as file:
        file.truncate(1 << 40)
    (folder / NAME).write_bytes(data())
    (folder / os.fsdecode(b"\xff\xfe.ipynb")).touch()
    work = take_in(folder)
    assert damaged_folders.lacking(work) == [] and not work.failure
    json.dumps(work.reasons, ensure_ascii=False).encode()


def test_a_pipe_that_takes_the_place_of_a_file_is_not_opened(folder, monkeypatch):
    (folder / NAME).write_bytes(data())
    asked = Path.lstat

    def exchanged(path):
        told = asked(path)
        if path.name == "timestamp.txt":
            path.unlink()
            os.mkfifo(path)
        return told

    (folder / "timestamp.txt").touch()
    monkeypatch.setattr(Path, "lstat", exchanged)
    assert receipts.stamp_of(folder) is None


def test_a_file_that_goes_away_while_it_is_read_is_no_zero(folder, monkeypatch):
    (folder / NAME).write_bytes(data())
    look, looks = folders.look, []

    def gone(place):
        looks.append(place)
        found = look(place)
        if len(looks) == 2:  # the first only asks how large it all is
            (folder / NAME).unlink()
        return found

    monkeypatch.setattr(folders, "look", gone)
    work = take_in(folder)
    assert work.failure.endswith("changed while it was read. Grade it again.")


def test_the_exchanges_secret_is_copied_only_where_it_is_as_small_as_one(folder, tmp_path):
    (folder / NAME).write_bytes(data())
    secret = folder / intake.OF_THE_EXCHANGE
    secret.write_text("abc", encoding="utf-8")
    assert take_in(folder).files == (secret,)
    with secret.open("wb") as file:
        file.truncate(300 << 20)
    work = take_in(folder)
    assert work.files == () and work.reasons == ()
    intake.copy_files((secret, folder / "gone"), tmp_path)  # as where it grew since
    assert not (tmp_path / secret.name).exists()


def _as_ordinary_user(question: Callable[[], str]) -> str:
    """The answer of a process that has no right to everything."""
    ours, theirs = os.pipe()
    if not (child := os.fork()):
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(ORDINARY, ORDINARY, ORDINARY)
                os.setresuid(ORDINARY, ORDINARY, ORDINARY)
            os.write(theirs, question().encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        told = answer.read().decode()
    os.waitpid(child, 0)
    return told


@pytest.fixture
def seen_by_all() -> Iterator[Path]:
    """A course's folder of submissions that an ordinary user can reach."""
    place = Path(tempfile.mkdtemp(prefix="handed-in-"))
    place.chmod(0o755)
    yield place
    for closed in place.rglob("*"):
        closed.chmod(0o755)
    shutil.rmtree(place)


def test_what_may_not_be_opened_is_not_checked_and_no_zero(seen_by_all):
    for student in ("closed-file", "closed-folder", "closed-student", "other-folder"):
        place = seen_by_all / student / ASSIGNMENT.id
        place.mkdir(parents=True)
        (place / NAME).write_bytes(data())
    (seen_by_all / "closed-file" / ASSIGNMENT.id / NAME).chmod(0)
    (seen_by_all / "other-folder" / ASSIGNMENT.id / "private").mkdir(mode=0)
    (seen_by_all / "closed-folder" / ASSIGNMENT.id).chmod(0)
    (seen_by_all / "closed-student").chmod(0)

    def failures() -> str:
        found = intake.submissions(seen_by_all, ASSIGNMENT)
        return json.dumps({student: take_in(place).failure for student, place in found.items()})

    told = json.loads(_as_ordinary_user(failures))
    assert set(told) == {"closed-file", "closed-folder", "closed-student", "other-folder"}
    assert told.pop("other-folder") == ""
    assert all(failure.endswith("cannot be read: Permission denied.") for failure in told.values()), told


# A class


@pytest.fixture
def course(tmp_path) -> Iterator[Path]:
    sample_class.lay_out(tmp_path)
    for student in ("ada", "bob", "cleo"):
        sample_class.submit(tmp_path, student, sample_class.solved())
    yield tmp_path
    damaged_folders.remove(tmp_path / "classroom")


def take_in_class(course: Path) -> tuple[dict[str, str], list[str]]:
    said: list[str] = []
    coursedir = CourseDirectory(root=str(course), config=Config(), assignment_id=ASSIGNMENT.id)
    coursedir.submitted_directory = "classroom/submitted"
    return intake.take_in_class(coursedir, said.append).failures, said


def received(course: Path, student: str) -> Path:
    return course / intake.RECEIVED / student / ASSIGNMENT.id


def test_a_folder_that_cannot_be_replaced_costs_that_student_only(course):
    (course / intake.RECEIVED).mkdir(parents=True)
    (course / intake.RECEIVED / "bob").write_text("in the way", encoding="utf-8")
    failures, _ = take_in_class(course)
    assert list(failures) == ["bob"] and "cannot be written anew" in failures["bob"]
    assert (received(course, "ada") / NAME).exists() and (received(course, "cleo") / NAME).exists()


def test_a_student_whose_folder_is_not_named_in_utf_8_is_told_to_the_teacher(course):
    name = os.fsdecode(b"b\xffb")
    (course / "classroom" / "submitted" / "bob").rename(course / "classroom" / "submitted" / name)
    failures, _ = take_in_class(course)
    assert list(failures) == [name] and "UTF-8" in failures[name]


def test_plain_nbgrader_grades_the_others_and_names_who_is_not_checked(course, released):
    shutil.copytree(released(), course, dirs_exist_ok=True)
    (course / intake.RECEIVED).mkdir(parents=True)
    (course / intake.RECEIVED / "ada").write_text("in the way", encoding="utf-8")
    stored.only_a_pipe(course / "classroom" / "submitted" / "bob" / ASSIGNMENT.id / "..", handed_in())
    os.mkfifo(course / "classroom" / "submitted" / "bob" / ASSIGNMENT.id / "timestamp.txt")
    stored.below_a_thousand_folders(course / "classroom" / "submitted" / "cleo" / ASSIGNMENT.id, handed_in())
    done = sample_class.nbgrader(course, "autograde", ASSIGNMENT.id)
    assert done.returncode == 1 and "Traceback" not in done.stdout, done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("[AutogradeApp | ERROR] ada: not graded: ")
    points = {exercise.id: exercise.points for exercise in ASSIGNMENT.exercises}
    assert sample_class.scores(course, "bob") == sample_class.scores(course, "cleo") == points


# When it arrived


def record(course: Path, digest: str, now: str, monkeypatch, stamp: str | None = None) -> str:
    monkeypatch.setattr(receipts, "_now", lambda: now)
    return receipts.record(course, ASSIGNMENT.id, "ada", digest, [], stamp)


def test_new_work_is_later_than_the_last_whatever_the_clock_says(course, monkeypatch):
    first = record(course, "a", "2026-05-02 10:00:00.000000 UTC", monkeypatch)
    second = record(course, "b", "2026-05-01 10:00:00.000000 UTC", monkeypatch)
    assert (first, second) == ("2026-05-02 10:00:00.000000 UTC", "2026-05-02 10:00:00.000001 UTC")
    assert record(course, "b", "2026-04-01 10:00:00.000000 UTC", monkeypatch) == second
    assert receipts.latest(course, ASSIGNMENT.id, "ada") == ("b", second, "arrival, clock corrected")
    text = (course / "classroom" / "receipts" / ASSIGNMENT.id / "ada.json").read_text(encoding="utf-8")
    assert [version["by"] for version in json.loads(text)["versions"]] == ["arrival", "arrival, clock corrected"]


def test_a_collectors_time_is_never_before_that_of_the_version_before(course, monkeypatch):
    record(course, "a", "", monkeypatch, "2026-05-02 10:00:00 UTC")
    second = record(course, "b", "", monkeypatch, "2026-05-01 10:00:00 UTC")
    assert second == "2026-05-02 10:00:00.000001 UTC"
    assert record(course, "b", "", monkeypatch, "2026-05-01 10:00:00 UTC") == second
    assert record(course, "b", "", monkeypatch, "2026-05-03 10:00:00 UTC") == "2026-05-03 10:00:00 UTC"


def test_nobody_has_a_latest_version_before_anything_was_seen(course):
    assert receipts.latest(course, ASSIGNMENT.id, "ada") is None


# Another machine


def test_what_travels_to_another_machine_is_taken_in_there_as_here(folder, tmp_path):
    (folder / "self_attention.ipynb.zip").write_bytes(stored.zipped_on_a_mac(handed_in(), random.Random(0)))
    (folder / "helpers.py").touch()
    (folder / "photo.png").write_bytes(b"x" * 1_000_000)
    there = tmp_path / "there" / ASSIGNMENT.id
    sent = 0
    for name, content in intake.copied(folder, ASSIGNMENT):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_bytes(content)
        sent += len(content)
    assert sent < 100_000
    here, other = take_in(folder), take_in(there)
    assert (here.digest, here.reasons) == (other.digest, other.reasons)
    assert damaged_folders.lacking(other) == []


def test_names_are_compared_by_letters_and_digits():
    assert choose.folded("U\u0308bung – 05 (1)") == choose.folded("übung051") == "übung051"
