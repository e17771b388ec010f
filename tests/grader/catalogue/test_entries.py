"""Every entry of the catalogue keeps the promises that notebooks, grading and teachers rely on."""

import inspect
import itertools
import re
from functools import cache
from itertools import cycle

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.known_answers import Answer
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import diagnose, namespace_of
from autograder.feedback.render import WIDTH
from autograder.feedback.report import UNWRITTEN, as_text
from autograder.judging import forbidden
from autograder.judging.compare import difference
from autograder.judging.judge import draw_key
from autograder.judging.observe import Candidate, EndpointGone, LocalEndpoint
from autograder.judging.probe_inputs import question, question_of, seed_of
from autograder.reports import reteach
from autograder.sandbox import visible as in_sandbox

EXERCISES = [exercise for assignment in catalogue.ASSIGNMENTS for exercise in assignment.exercises]
KEYS = [draw_key(b"secret", "assignment", "exercise", [f"submission {n}"]) for n in range(3)]

by_id = pytest.mark.parametrize(  # on one worker, where each answer is judged once
    "exercise", [pytest.param(e, id=e.id, marks=pytest.mark.xdist_group(f"known-{e.id}")) for e in EXERCISES]
)


def equal(one, other):
    """Whether two arguments are the same, whatever they are made of."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, torch.Generator) and isinstance(other, torch.Generator):
        return torch.equal(one.get_state(), other.get_state())
    return type(one) is type(other) and one == other


def verdict_on(exercise, source, key=KEYS[0]):
    verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), key)
    assert not verdict.failed_explanation
    assert UNWRITTEN not in as_text(verdict)
    return verdict


@cache
def verdicts_on_mistakes(exercise_id):
    """(misconception, verdict) of each. A graded class (test_known_answers) asks all hidden probes of each, so here
    they run on what the visible ones do not show, and on what is never submitted; the keys take turns."""
    exercise, verdicts = catalogue.find(exercise_id), []
    for known, key in zip(exercise.mistakes, cycle(KEYS)):
        seen = verdict_on(exercise, known.source, None)
        verdicts.append((known, verdict_on(exercise, known.source, key) if seen.passed or exercise.trained else seen))
    return verdicts


@cache
def verdicts_on_reference(exercise_id):
    """One for each key."""
    exercise = catalogue.find(exercise_id)
    return [judge_and_explain(exercise, LocalEndpoint(dict(exercise.reference)), key) for key in KEYS]


def visible(verdict):
    """The outcomes of the visible probes."""
    return [outcome for outcome in verdict.outcomes if not outcome.probe.hidden]


@by_id
def test_there_are_at_least_six_misconceptions_with_names_of_their_own(exercise):
    names = [known.name for known in exercise.mistakes]
    assert len(names) >= 6
    assert len(set(names)) == len(names)


@by_id
def test_probes_have_names_of_their_own_and_are_visible_and_hidden(exercise):
    names = [probe.name for probe in exercise.probes]
    assert len(set(names)) == len(names)
    assert exercise.visible and bool(exercise.hidden) == bool(exercise.hidden_points)


@by_id
def test_the_reference_earns_everything_whatever_is_drawn(exercise):
    assert [verdict.points for verdict in verdicts_on_reference(exercise.id)] == [exercise.points] * len(KEYS)


@by_id
def test_every_right_variant_earns_everything_whatever_is_drawn(exercise):
    verdicts = {v.name: verdict_on(exercise, v.source, key) for v, key in zip(exercise.correct, cycle(KEYS))}
    assert [name for name, verdict in verdicts.items() if verdict.points != exercise.points] == []


@by_id
def test_each_misconception_fails_as_itself_by_visible_probes_where_they_show_it(exercise):
    wrongly = {
        known.name: (verdict.points, verdict.misconception and verdict.misconception.name)
        for known, verdict in verdicts_on_mistakes(exercise.id)
        if verdict.passed or verdict.misconception is not known
    }
    assert not wrongly


@pytest.mark.parametrize("exercise", [pytest.param(e, id=e.id) for e in EXERCISES if e.trained])
def test_a_misconception_that_visible_probes_alone_show_is_named_by_them(exercise):
    unnamed = []
    for known, verdict in verdicts_on_mistakes(exercise.id):
        seen = visible(verdict)
        found = diagnose(exercise, seen)
        if not all(outcome.passed for outcome in seen) and (found is None or found[0] is not known):
            unnamed.append(known.name)
    assert unnamed == []


@by_id
def test_no_known_answer_looks_like_a_forbidden_shortcut(exercise):
    if exercise.trained:
        pytest.skip("its known answers are lists of sentences, and never handed in as cells")
    assignment = catalogue.assignment_of(exercise)
    known = {
        each.name: forbidden.findings([each.source], exercise, assignment)
        for each in (*exercise.mistakes, *exercise.correct)
    }
    assert {name: found for name, found in known.items() if found} == {}


@by_id
def test_every_misconception_has_a_card_that_shows_it(exercise):
    found = [
        reteach.card_from(exercise, known, verdict.outcomes) for known, verdict in verdicts_on_mistakes(exercise.id)
    ]
    bare = [each for each in found if each.example is None or each.example.right == each.example.mistaken]
    assert [card.misconception.name for card in bare] == []


@by_id
def test_a_report_fits_its_width_and_never_gives_the_code(exercise):
    code = r"\btorch\.(softmax|matmul|bmm|einsum)\(|\.transpose\(|\.permute\("
    verdicts = verdicts_on_mistakes(exercise.id)  # a notebook renders the report of visible probes itself
    whole = {known: as_text(verdict) for known, verdict in verdicts if verdict.whole}
    assert [known.name for known, report in whole.items() if max(map(len, report.splitlines())) > WIDTH] == []
    reports = {known: as_text(verdict) for known, verdict in verdicts}
    assert [known.name for known in reports if re.search(code, known.message)] == []
    assert [known.name for known, report in reports.items() if known.message not in " ".join(report.split())] == []


@by_id
def test_what_is_said_of_one_mistake_stays_true_where_there_are_two(exercise):
    composed = [known for known in exercise.mistakes if isinstance(known.source, Answer) and known.shows is None]
    claims = r"built right|(?:all|everything) else is (?:right|correct)|the only mistake"
    assert [known.name for known in composed if re.search(claims, known.message)] == []


@by_id
def test_equal_work_is_asked_equal_questions_and_other_work_others(exercise):
    def told(cases, results):
        given = [value for case in cases for value in case.arguments if not callable(value)]
        handed = any(callable(value) for case in cases for value in case.arguments)
        return [*given, *(results if given and handed else ())]  # what a function knows shows in the results

    def drawn(verdict):
        hidden = [outcome for outcome in verdict.outcomes if outcome.probe.hidden]
        return told([outcome.case for outcome in hidden], [outcome.expected.result for outcome in hidden])

    first, other, _ = map(drawn, verdicts_on_reference(exercise.id))
    seeds = [(probe, torch.Generator().manual_seed(seed_of(KEYS[0], exercise, probe))) for probe in exercise.hidden]
    questions = [question(exercise, probe, generator) for probe, generator in seeds]
    again = told([case for case, *_ in questions], [expected.result for _, expected, _ in questions])
    assert len(first) == len(again) and all(map(equal, first, again))
    if first:
        assert not all(map(equal, first, other))


@by_id
def test_an_answer_that_memorizes_the_visible_inputs_earns_no_hidden_point(exercise):
    if exercise.roles is not None:
        pytest.skip("the visible probes of a class use drawn weights too")
    name = exercise.names[0]
    table = [(o.case.arguments, o.expected.result) for o in visible(verdicts_on_reference(exercise.id)[0])]

    def memorized(*arguments):
        for inputs, result in table:
            if all(callable(a) or equal(a, b) for a, b in zip(arguments, inputs, strict=False)):
                return result
        return None

    verdict = judge_and_explain(exercise, LocalEndpoint({name: memorized}), KEYS[0])
    assert verdict.hidden_points == 0


@by_id
def test_nothing_at_all_earns_nothing(exercise):
    assert judge_and_explain(exercise, LocalEndpoint({}), KEYS[0]).points == 0


@by_id
def test_a_verdict_has_three_hints_and_a_section(exercise):
    assert len(exercise.hints) == 3 and all(exercise.hints)
    assert exercise.section.label.startswith(f"sec-{exercise.section.chapter}-")


def passes_what_is_visible(exercise, thing):
    """Whether an object is correct on every visible probe; ends at the first one that fails."""
    candidate = Candidate(exercise, LocalEndpoint(dict.fromkeys(exercise.names, thing)))
    for probe in exercise.visible:
        case, expected, cotangent = question_of(exercise, probe, b"")
        try:
            if difference(expected, candidate.observe(probe, case, expected, cotangent), probe) is not None:
                return False
        except EndpointGone:
            return False
    return True


def test_the_reference_passes_what_is_visible():
    exercise = catalogue.find("attention-weights")
    assert passes_what_is_visible(exercise, exercise.reference["attention_weights"])


def test_no_module_that_is_visible_while_grading_holds_an_answer():
    import importlib

    for assignment in catalogue.ASSIGNMENTS:
        ours = [name for name in sorted(in_sandbox.modules(assignment)) if name.startswith("transformer_ref")]
        members = (inspect.getmembers(module, callable) for module in map(importlib.import_module, ours))
        things = {id(thing): thing for found in members for _, thing in found}  # many import the same
        for thing, exercise in itertools.product(things.values(), assignment.exercises):
            assert not passes_what_is_visible(exercise, thing), (thing, exercise.id)


def test_ids_are_the_names_in_kebab_case():
    for exercise in EXERCISES:
        words = [
            re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()
            for name in exercise.names
        ]
        short = exercise.names[0].lower()  # ViT is one word
        assert exercise.id in (words[0], "-".join(words), short)  # encode and decode are one exercise, encode-decode
