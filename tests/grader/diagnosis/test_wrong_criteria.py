"""What is said about answers of yes and no, about a negative number, and about several keys of a dictionary."""

import pytest

from autograder import catalogue
from autograder.catalogue.ch06_multi_head_attention import head_stats
from autograder.catalogue.ch07_positional_encoding import check_criteria
from autograder.diagnosis.behavior import fixed, is_degenerate
from autograder.diagnosis.counterexample import _plainer
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.observe import LocalEndpoint

SIGNED = check_criteria.BOUNDED.replace(".abs()", "")


def explained(exercise: str, source):
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), b"key")


def test_two_wrong_criteria_are_not_taken_for_a_constant():
    answer = check_criteria.RIGHT.but("apart < 1e-6", "apart == 0").but(check_criteria.BOUNDED, SIGNED)
    failures = [outcome for outcome in explained("check-criteria", answer).outcomes if not outcome.passed]
    assert len(failures) == 2 and not list(fixed(failures)) and not is_degenerate(failures)


@pytest.mark.parametrize("name", ["torch's random state seeded", "the neighbors only"])
def test_a_criterion_misunderstood_fails_two_checks(name):
    known = next(m for m in catalogue.find("check-criteria").mistakes if m.name == name)
    assert sum(not outcome.passed for outcome in explained("check-criteria", known.source).outcomes) == 2


def test_the_smallest_negative_shift_is_minus_1():
    assert list(_plainer(-2)) == [-1] and not list(_plainer(-1))


def test_another_wrong_key_is_named():
    answer = head_stats.RIGHT.but("torch.log(", "torch.log2(").but(".abs()", "")
    assert "mean_distance is wrong, too" in " ".join(as_text(explained("head-stats", answer)).split())
