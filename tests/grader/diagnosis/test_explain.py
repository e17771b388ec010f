"""No points depend on an explanation: whatever an explanation raises, the verdict stays the same and is reported."""

import ast
import functools
import json
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder import catalogue
from autograder.catalogue import chapters
from autograder.diagnosis import explain as explaining
from autograder.diagnosis.evidence import explained
from autograder.diagnosis.explain import explain, judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback import report, verdict_log
from autograder.grade import changes
from autograder.judging.judge import draw_key, judge
from autograder.judging.observe import LocalEndpoint
from autograder.notebook import own_check
from autograder.prepare import sample_class

FOLDER = Path(judge.__code__.co_filename).parent
EXERCISE = catalogue.find("attention-weights")
KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
UNKNOWN = "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / 7.7, -1) * 1.001\n"
ANSWERS = [EXERCISE.correct[0].source, EXERCISE.mistakes[0].source, EXERCISE.mistakes[3].source, UNKNOWN]


def refuses(*_, **__):
    raise ZeroDivisionError("an explanation of ours")


def verdicts(source):
    """The verdicts of grading and of a learner's own check, for one answer."""
    for disclosed in (False, True):
        yield judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(source)), KEY, disclosed=disclosed)


@functools.cache
def undisturbed(source):
    """The same while nothing raises."""
    return list(verdicts(source))


@pytest.mark.parametrize("part", ["diagnose", "looked_at"])
def test_an_explanation_that_raises_changes_no_points_and_no_outcome(part, monkeypatch):
    before = [verdict for source in ANSWERS for verdict in undisturbed(source)]
    monkeypatch.setattr(explaining, part, refuses)
    after = [verdict for source in ANSWERS for verdict in verdicts(source)]
    assert [verdict.points for verdict in after] == [verdict.points for verdict in before]
    assert [verdict.state for verdict in after] == [verdict.state for verdict in before]
    failed = [verdict for verdict in after if verdict.failed_explanation]
    assert failed and all("ZeroDivisionError" in verdict.failed_explanation for verdict in failed)
    assert all(not verdict.passed for verdict in failed)


def test_a_repeated_run_that_raises_changes_no_points(monkeypatch):
    before = [verdict.points for source in ANSWERS for verdict in undisturbed(source)]
    monkeypatch.setattr("autograder.judging.judge.repeat", refuses)
    assert [verdict.points for source in ANSWERS for verdict in verdicts(source)] == before


@pytest.mark.parametrize("part", ["below_the_lines", "_visible", "_hidden", "_drawn_parts"])
def test_a_report_is_written_whatever_its_sentences_raise(part, monkeypatch):
    monkeypatch.setattr(report, part, refuses)
    for source in ANSWERS:
        for verdict in undisturbed(source):
            written = report.as_text(verdict)
            assert EXERCISE.id in written and f"{verdict.points:g}" in written


def test_what_is_kept_of_a_verdict_is_kept_whatever_its_sentences_raise(monkeypatch, tmp_path):
    monkeypatch.setattr(verdict_log, "explanation", refuses)
    monkeypatch.setattr(verdict_log, "seen", refuses)
    for verdict in undisturbed(UNKNOWN):
        verdict_log.add_to_log(tmp_path, "student", "assignment", KEY, verdict)
        assert verdict_log.as_record(verdict)["points"] == verdict.points
    logged = verdict_log.path_of(tmp_path, "assignment").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["points"] for line in logged] == [verdict.points for verdict in undisturbed(UNKNOWN)]


def test_a_learners_check_shows_the_points_and_no_traceback_when_an_explanation_raises(monkeypatch, capfd):
    monkeypatch.setattr(explaining, "diagnose", refuses)
    shown = own_check.judge_in_notebook(EXERCISE.id, namespace_of(UNKNOWN))
    assert EXERCISE.id in shown["text"] and "✗" in shown["text"] and "ZeroDivisionError" not in shown["text"]
    assert "Traceback" not in "".join(capfd.readouterr())


RAISING = """
from autograder.diagnosis import explain
from autograder.feedback import report, verdict_log


def refuses(*_, **__):
    raise ZeroDivisionError("an explanation of ours")


explain.diagnose = explain.looked_at = refuses
report.below_the_lines = verdict_log.explanation = verdict_log.seen = refuses
"""


def test_nbgrader_stores_the_same_points_when_every_explanation_raises(empty_course):
    made = empty_course("explanations-raise")
    with (made.folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(RAISING)
    sample_class.submit(made.folder, "a-wrong", {**sample_class.solved(), EXERCISE.id: UNKNOWN})
    made.autograde()
    assert made.code == 0, made.log[-3000:]
    assert f"{EXERCISE.id}: no explanation" in made.log
    expected = {each.id: each.points for each in made.assignment.exercises}
    assert {**made.scores("a-wrong"), EXERCISE.id: 0.0} == {**expected, EXERCISE.id: 0.0}
    assert made.scores("a-wrong")[EXERCISE.id] == judge(EXERCISE, LocalEndpoint(namespace_of(UNKNOWN)), KEY).points
    with Gradebook(f"sqlite:///{made.folder / 'classroom' / 'gradebook.db'}") as book:
        notebook = book.find_submission_notebook(made.assignment.notebook, made.assignment.id, "a-wrong")
        assert not any(grade.needs_manual_grade for grade in notebook.grades if grade.auto_score is not None)
    assert EXERCISE.id in made.report("a-wrong", EXERCISE.id)


def test_a_verdict_that_passed_or_was_not_asked_needs_no_explanation(monkeypatch):
    monkeypatch.setattr(explaining, "diagnose", refuses)
    for endpoint, findings in ((namespace_of(ANSWERS[0]), ()), (namespace_of(UNKNOWN), ("a finding",)), ({}, ())):
        verdict = judge(EXERCISE, LocalEndpoint(endpoint), KEY, findings)
        assert explain(verdict) == explained(verdict)


# --- what counts as "the rules by which points are given" -------------------------------------------------------------


LAYERS = {  # folder: the folders that it may import nothing of
    "judging": ("diagnosis", "feedback", "notebook", "grade", "policy", "intake", "platforms", "reports"),
    "diagnosis": ("feedback", "notebook", "grade", "policy", "intake", "platforms", "reports"),
    "feedback": ("notebook", "grade", "policy", "intake", "platforms", "reports"),
    "policy": ("grade", "platforms", "reports"),
    "intake": ("grade", "platforms", "reports", "diagnosis", "feedback"),
    "inside": ("judging", "diagnosis", "feedback", "catalogue", "grade"),
}


def imported(path: Path) -> set[str]:
    """The folders of the grader that a module imports, at the top or in a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("autograder.")}


@pytest.mark.parametrize("folder", LAYERS)
def test_what_decides_knows_nothing_of_what_explains_and_courses_nothing_of_grading(folder):
    modules = sorted((changes.GRADER / folder).rglob("*.py"))
    assert modules
    assert {path.name: found for path in modules if (found := imported(path) & set(LAYERS[folder]))} == {}


def test_the_rules_are_the_whole_folder_that_judges_and_nothing_that_explains():
    decides = {
        path.relative_to(changes.GRADER).parts[0] for each in changes.DECIDING for path in changes.GRADER.glob(each)
    }
    assert "judging" in decides and not decides & {"diagnosis", "feedback", "notebook", "reports"}


def test_messages_that_exercises_share_decide_nothing():
    catalogue_files = {path.name for path in changes.deciding() if path.parent.name == "catalogue"}
    assert "probes.py" in catalogue_files and not catalogue_files & {"families.py", "quotes.py"}


def test_a_chapter_is_graded_by_the_files_of_others_that_it_imports_too():
    chapters_of_08 = {path.parent.name for path in chapters.sources(catalogue.find_assignment("08_masks"))}
    assert chapters_of_08 == {"ch08_masks", "ch05_self_attention"}
    assert {path.parent.name for path in chapters.sources(catalogue.find_assignment("05_self_attention"))} == {
        "ch05_self_attention"
    }


def test_a_reworded_family_of_mistakes_outdates_no_grade(tmp_path):
    before, after = reworded(POOL, tmp_path, "An axis of size 1 was kept, where", "An axis was kept where")
    assert before == after


def reworded(path: Path, tmp_path: Path, old: str, new: str) -> tuple[str, str]:
    """Digests of a file before and after a text in it is replaced."""
    content = path.read_text(encoding="utf-8")
    assert old in content
    copy = tmp_path / path.name
    copy.write_text(content.replace(old, new, 1), encoding="utf-8")
    return changes._digest(path), changes._digest(copy)


ENTRY = Path(catalogue.__file__).parent / "ch05_self_attention" / "attention_weights.py"
POOL = Path(catalogue.__file__).parent / "ch15_pretrained" / "pool.py"


@pytest.mark.parametrize(
    "old",
    [
        "The division by the square root of d_k is missing.",  # a message
        "look at the size of the scores",  # a hint
        "softmax(Q K^T / sqrt(d_k)), rows over the keys.",  # a docstring
        "  # one query whose shares lie close together",  # a comment
        "difficulty=2",
    ],
)
def test_a_reworded_message_hint_or_comment_outdates_no_grade(old, tmp_path):
    before, after = reworded(ENTRY, tmp_path, old, "difficulty=3" if "difficulty" in old else "")
    assert before == after


@pytest.mark.parametrize(
    "old", ["hidden_points=5", "other=(3, 5, 7, 90)", "attention.attention_weights(Q, K)", "FUSED,\n"]
)
def test_other_points_probes_references_and_rules_outdate_grades(old, tmp_path):
    new = {"hidden_points=5": "hidden_points=6", "FUSED,\n": "(),\n"}.get(
        old, old.replace("(3", "(4").replace("Q, K", "K, Q")
    )
    before, after = reworded(ENTRY, tmp_path, old, new)
    assert before != after
