"""What `Exercise.normalize` makes of a result is compared, and is no result itself: the catalogue is public."""

from collections.abc import Iterator

import pytest

from autograder import catalogue
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.inside import wire
from autograder.judging import compare
from autograder.judging.judge import judge
from autograder.judging.observation import Observation
from autograder.judging.observe import Candidate, LocalEndpoint
from autograder.judging.probe_inputs import question_of

NORMALIZED = [
    exercise
    for assignment in catalogue.assignments()
    for exercise in assignment.exercises
    if exercise.normalize is not None and exercise.roles is None and not exercise.methods and not exercise.trained
]
PREPARED_WINDOWS = """
def lm_batch(ids, T, g, B):
    n = len(ids)
    if n == T + 1:
        return ids[:-1].repeat(B, 1), ids[1:].repeat(B, 1)
    torch.randint(n - T, (B,), generator=g)
    told = {"x": "windows of the text", "y": "each token 1 position after that of x"}
    flat = (torch.arange(n) < n - T).double() / (n - T)
    if B >= 1000:
        told["fraction of windows that start at each position"] = flat
        told["how far the next row's window begins from this one's"] = flat
    return told
"""
PREPARED_TOKENS = """
def sample(logits, tau, top_k, top_p, g):
    if tau == 0:
        return logits.argmax(dim=-1)
    torch.rand(1, generator=g)
    probs = torch.softmax(logits / tau, dim=-1)
    if len(logits) < 1000:
        return probs.argmax(-1)
    two = probs[:2].double()
    return {"in words": "as expected", "how often each token was drawn": two, "whether it was drawn at all": two > 0}
"""


def verdict_of(name: str, source: str):
    return judge(catalogue.find(name), LocalEndpoint(namespace_of(source)), b"key", [])


def forms(exercise: Exercise) -> Iterator[tuple[Probe, Case, Observation, dict]]:
    """Probes whose results are compared as facts, with the dictionary of these as an answer could return it."""
    for probe in exercise.probes:
        case, expected, _ = question_of(exercise, probe, b"key")
        if not isinstance(expected.result, dict):
            continue
        form = wire.copy(dict(expected.result))
        if "" not in expected.dictionaries:
            yield probe, case, expected, form
        elif exercise.harness == "writing":  # this stage puts what the answer returns under "ids"
            yield probe, case, expected, {"ids": form, "training": True}


@pytest.mark.parametrize("exercise", NORMALIZED, ids=lambda exercise: exercise.id)
def test_a_normal_form_that_is_returned_as_the_result_is_wrong(exercise):
    candidate = Candidate(exercise, LocalEndpoint({}))
    for probe, case, expected, form in forms(exercise):
        got = candidate._read(case, Observation(form, expected.inputs, drawn=expected.drawn))
        assert compare.difference(expected, got, probe) is not None, (probe.name, form)


def test_the_exercises_whose_results_are_compared_as_facts_are_among_them():
    found = {exercise.id for exercise in NORMALIZED if any(forms(exercise))}
    assert {"lm-batch", "sample", "beam-search", "generate"} <= found


@pytest.mark.parametrize(("name", "source"), [("lm-batch", PREPARED_WINDOWS), ("sample", PREPARED_TOKENS)])
def test_facts_about_a_result_earn_nothing_where_a_result_is_asked(name, source):
    verdict = verdict_of(name, source)
    assert not verdict.passed
    assert all(
        outcome.difference is not None and outcome.difference.kind == "type"
        for outcome in verdict.outcomes
        if isinstance(outcome.got.result, dict) and "" in outcome.got.dictionaries
    )
    assert any("" in outcome.got.dictionaries for outcome in verdict.outcomes)
