"""A teacher writes one comment, and everybody whose wrong answer behaves alike reads it."""

import json
import random
import shutil
from itertools import islice

import judged_class
import pytest
from bs4 import BeautifulSoup
from judged_class import Work, mistaken

from autograder import __main__ as command_line
from autograder.catalogue import bank
from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.mutations import mutations
from autograder.prepare import class_mistakes, sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import comment, dashboard, export, results, shared_comments

pytestmark = pytest.mark.xdist_group("reports")

MIXED = "def attention_weights(Q, K):\n    S = Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5\n    {}\n"
ONE_WAY = {"attention-weights": MIXED.format("return 0.9 * torch.softmax(S, -1) + 0.1 * S")}
WRITTEN_OUT = (
    "E = (S - S.amax(-1, keepdim=True)).exp()\n    W = E / E.sum(-1, keepdim=True)\n    return W - (W - S) / 10"
)
OTHER_WAY = {"attention-weights": MIXED.format(WRITTEN_OUT)}
ELSE = {"attention-weights": MIXED.format("return 0.5 * torch.softmax(S, -1) + 0.5 * S")}
TEXT = "Shares sum to 1. What sums to 1 in <your> mix?"
ROSTER = [
    Work("ada", "Ada", "Lovelace", answers=ONE_WAY),
    Work("ben", "Ben", "Ünal", answers=OTHER_WAY),
    Work("cleo", "Cleo", "O'Hara", answers=ELSE),
    Work("dan", "Dan", "Park", answers=mistaken("attention-weights", "no scaling")),
    Work("eve", "Eve", "Ito"),
]


@pytest.fixture(scope="module")
def graded(tmp_path_factory, released):
    folder = tmp_path_factory.mktemp("comments") / "course"
    judged_class.lay_out(folder, ROSTER, released())
    done = sample_class.nbgrader(folder, "generate_feedback", ASSIGNMENT.id)
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def folder(graded, tmp_path, monkeypatch):
    """The class with its pages, nobody commented on yet."""
    copy = tmp_path / "course"
    shutil.copytree(graded, copy)
    monkeypatch.chdir(copy)
    return copy


def groups(folder):
    return comment.groups_of(results.read_class(folder, ASSIGNMENT), shared_comments.read(folder))


def feedback(folder, student):
    path = folder / "classroom" / "feedback" / student / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.html"
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").find("section", id="attention-weights").text


def run(*arguments):
    return command_line.main(["comment", ASSIGNMENT.id, *arguments])


def test_answers_that_behave_alike_are_one_group_whatever_their_code(folder):
    assert [group.names for group in groups(folder)] == [["Ada Lovelace", "Ben Ünal"], ["Cleo O'Hara"]]


def test_a_comment_stands_on_every_page_of_the_group_and_on_no_other(folder, capsys):
    label = groups(folder)[0].label
    assert run("--group", label, "--text", TEXT) == 0
    said = capsys.readouterr().out
    assert f"for Ada Lovelace, Ben Ünal: {TEXT}" in said and "made again: Ada Lovelace, Ben Ünal" in said
    assert all(TEXT in feedback(folder, student) for student in ("ada", "ben"))
    assert not any(TEXT in feedback(folder, student) for student in ("cleo", "dan", "eve"))
    assert groups(folder)[0].comment == TEXT and groups(folder)[1].comment == ""
    ada = next(each for each in results.read_class(folder, ASSIGNMENT).graded if each.student.id == "ada")
    assert "Shares sum to 1" in export.comment(ada, results.read_class(folder, ASSIGNMENT))
    assert dashboard.reasons_to_look(ada, shared_comments.read(folder)) == []


def test_a_new_comment_replaces_the_old_one_and_an_empty_one_removes_it(folder, capsys):
    label = groups(folder)[0].label
    for text in (TEXT, "Another one."):
        assert run("--group", label, "--text", text) == 0
    assert len(shared_comments.read(folder)) == 1 and "Another one." in feedback(folder, "ben")
    assert run("--group", label, "--text", "Another one.") == 0
    assert capsys.readouterr().out.endswith("No comment has changed.\n")
    assert run("--group", label, "--text", "") == 0
    assert shared_comments.read(folder) == () and "Another one." not in feedback(folder, "ben")


def test_who_hands_in_the_same_later_reads_it_too(folder):
    run("--group", groups(folder)[0].label, "--text", TEXT)
    late = folder / "classroom" / "autograded" / "eve" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb"
    late.write_bytes((folder / "classroom" / "autograded" / "ada" / ASSIGNMENT.id / late.name).read_bytes())
    assert sample_class.nbgrader(folder, "generate_feedback", ASSIGNMENT.id).returncode == 0
    assert TEXT in feedback(folder, "eve")


def test_the_dashboard_groups_the_answers_and_saves_what_is_written_in_its_boxes(folder, browser, tmp_path):
    assert command_line.main(["dashboard", ASSIGNMENT.id]) == 0
    page = browser.new_page()
    page.goto((folder / "classroom" / "dashboard" / f"{ASSIGNMENT.id}.html").as_uri())
    button = page.locator("#save-comments")
    assert button.is_disabled()
    page.get_by_label(f"Your comment to everyone in {groups(folder)[0].label}").fill(TEXT)
    with page.expect_download() as download:
        button.click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    page.close()
    assert saved.name == f"comments-{ASSIGNMENT.id}.json"
    assert run(str(saved)) == 0 and TEXT in feedback(folder, "ben")


def test_without_arguments_it_lists_the_groups(folder, capsys):
    assert run() == 0
    said = capsys.readouterr().out
    assert f"{groups(folder)[0].label}  2: Ada Lovelace, Ben Ünal" in said and "next: " in said


@pytest.mark.parametrize(
    "content, expected",
    [
        ("[", "is not a file of comments"),
        ("[]", "as the dashboard saves it"),
        ('{"comments": [3]}', "comment 1: expected exercise, alike and text, got int"),
        ('{"comments": [{"exercise": "nothing"}]}', "exercise: expected the id of an exercise, got 'nothing'"),
        ('{"comments": [{"exercise": "attend", "alike": ["abc"]}]}', "alike: expected texts of 24 letters"),
        ('{"comments": [{"exercise": "attend", "alike": ["%s"]}]}' % ("a" * 24), "at most 2,000 letters, got NoneType"),
        ('{"comments": [{"exercise": "dot", "alike": ["%s"], "text": ""}]}' % ("a" * 24), "got one on 'dot'"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_changes_nothing_and_is_a_sentence(folder, capsys, tmp_path, content, expected):
    path = tmp_path / "comments.json"
    path.write_text(content, encoding="utf-8")
    assert run(str(path)) == 2
    assert expected in capsys.readouterr().err and shared_comments.read(folder) == ()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--group", "05.2-abcd", "--text", "x"], "expected one of the dashboard's"),
        (["--group", "05.2-abcd"], "Expected --group and --text together"),
        (["missing.json", "--group", "05.2-abcd", "--text", "x"], "got both"),
        (["missing.json"], "missing.json cannot be read: No such file"),
    ],
)
def test_wrong_arguments_are_a_sentence(folder, capsys, arguments, expected):
    assert run(*arguments) == 2
    assert expected in capsys.readouterr().err


def first_unexplained(exercise: Exercise) -> tuple[str, list[str]]:
    """A program that is wrong in a way that no known mistake explains, and its fingerprint."""
    secret = judged_class.SECRET
    for source in class_mistakes.candidates(exercise):
        if alike := class_mistakes._fingerprint(exercise, source, secret):
            return source, alike
    raise AssertionError("none")


def test_a_comment_becomes_an_entry_with_a_program_of_ours(folder, monkeypatch):
    exercise = next(each for each in ASSIGNMENT.exercises if each.id == "attend")
    source, alike = first_unexplained(exercise)
    some = list(islice(class_mistakes.candidates(exercise), 30))  # all of them are tried for a comment on nobody
    assert source in some
    monkeypatch.setattr(class_mistakes, "candidates", lambda _: iter(some))
    nobody = ("f" * 24,)
    shared_comments.write(
        folder, [shared_comments.Comment("attend", tuple(alike), TEXT), shared_comments.Comment("attend", nobody, "?")]
    )
    path = folder / "class.jsonl"
    assert command_line.main(["known-mistakes", "--from-class", ASSIGNMENT.id, "--output", str(path)]) == 0
    first, second = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    assert list(first) == list(next(bank.records([ASSIGNMENT])))
    assert first["message"] == TEXT and first["license"] is None and second["source"] is None
    assert class_mistakes._fingerprint(exercise, first["source"], judged_class.SECRET) == alike


def test_without_comments_there_is_nothing_to_make_entries_of(folder, capsys):
    assert command_line.main(["known-mistakes", "--from-class", "--output", str(folder / "class.jsonl")]) == 2
    assert "There is no comment on answers that behave alike" in capsys.readouterr().err


def test_a_mutation_is_a_program_with_one_change():
    found = {text for _, text in mutations("def f(x):\n    return x + 1\n", random.Random(0))}
    assert {"def f(x):\n    return x - 1", "def f(x):\n    return x + 2"} <= found
