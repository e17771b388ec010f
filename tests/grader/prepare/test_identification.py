"""Who identifies the cause of a wrong answer: the counts, and what they are made of."""

import json

import pytest

from autograder import __main__ as command_line
from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.observe import LocalEndpoint
from autograder.prepare import identification
from autograder.prepare.identification import Count

CHAPTER = "05_self_attention"


def judged(exercise, source):
    return judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), identification.KEY)


def test_the_recorded_counts_are_those_of_all_chapters_and_of_each_mistake():
    recorded = identification.recorded()
    assert list(recorded) == [assignment.id for assignment in catalogue.ASSIGNMENTS]
    for assignment in catalogue.ASSIGNMENTS:
        assert recorded[assignment.id].mistakes == sum(len(each.mistakes) for each in assignment.exercises)


@pytest.mark.parametrize("chapter", ["00_start_here", "06_multi_head_attention"])
def test_a_chapter_is_counted_as_it_was_recorded(chapter, capsys):
    counts = identification.benchmark([catalogue.find_assignment(chapter)])
    assert counts == {chapter: identification.recorded()[chapter]}
    assert chapter in capsys.readouterr().err


def test_a_report_says_of_each_test_whether_it_fails_and_how():
    attend = catalogue.find("attend")
    right = identification.report(attend, judged(attend, attend.correct[0].source))
    assert [place for place, _ in right] == list(range(len(attend.probes))) and {error for _, error in right} == {""}
    wrong = identification.report(attend, judged(attend, "def attend(W, V):\n    return V\n"))
    assert "AssertionError" in {error for _, error in wrong}
    stopped = identification.report(attend, judged(attend, "def attend(W, V):\n    raise KeyError(1)\n"))
    assert {error for _, error in stopped} == {"KeyError"}
    assert len({right, wrong, stopped}) == 3


def test_two_mistakes_that_fail_the_same_tests_are_one_for_who_reads_only_those():
    every = identification.count(catalogue.find("attention-weights"))
    assert every.score == 1 <= every.first <= every.every < every.judge == every.mistakes and every.other == 0


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_the_answers_of_another_program_are_counted(tmp_path, capsys):
    exercise = catalogue.find("attention-weights")
    first, second, third = (mistake.name for mistake in exercise.mistakes[:3])
    said = [(first, first), (second, third), (third, None)]
    lines = [{"id": f"{exercise.id}/{asked}", "name": name} for asked, name in said]
    path = write(tmp_path / "said.jsonl", lines)
    counts = identification.score(path, [catalogue.find_assignment(CHAPTER)])
    known = identification.recorded()[CHAPTER].mistakes
    assert counts == {CHAPTER: Count(mistakes=known, judge=1, other=1)}
    assert command_line.main(["known-mistakes", CHAPTER, "--score", str(path)]) == 0
    assert f"1 of   {known} identified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"id": "attend/none", "name": None}], "line 1: expected the id of a known mistake"),
        ([{"id": "attention-weights/no scaling", "name": "x"}], "line 1: name: expected a known mistake of attention"),
        ([{"id": "attention-weights/no scaling", "name": None}] * 2, "line 2: expected the id"),
        ([[1]], 'line 1: expected {"id": ..., "name": ...}, got'),
    ],
)
def test_a_line_that_cannot_be_counted_is_one_sentence(lines, said, tmp_path, capsys):
    path = write(tmp_path / "said.jsonl", lines)
    assert command_line.main(["known-mistakes", CHAPTER, "--score", str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_a_file_that_is_not_there_is_one_sentence(tmp_path, capsys):
    assert command_line.main(["known-mistakes", CHAPTER, "--score", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot be read" in capsys.readouterr().err
