"""The explanation that a learner gets for an answer, for tests of its sentences."""

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.observe import LocalEndpoint


def said(exercise_id: str, source: str, disclosed: bool = False) -> str:
    """What a learner reads below the lines of the checks. disclosed: as in a learner's own check."""
    exercise, endpoint = catalogue.find(exercise_id), LocalEndpoint(namespace_of(source))
    return " ".join(explanation(judge_and_explain(exercise, endpoint, b"key", disclosed=disclosed)).split())
