"""The explanation that a learner gets for an answer, for tests of its sentences."""

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.observe import LocalEndpoint


def said(exercise_id: str, source: str) -> str:
    """What a learner reads below the lines of the checks."""
    exercise = catalogue.find(exercise_id)
    return " ".join(explanation(judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"key")).split())
