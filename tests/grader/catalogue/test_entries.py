"""Every entry of the catalogue keeps the promises that notebooks, grading and teachers rely on."""

import inspect
import re
from functools import cache
from itertools import cycle

import pytest
import torch

from autograder import catalogue
from autograder.judging.diagnose import namespace_of
from autograder.judging.judge import draw_key, judge
from autograder.judging.layout import WIDTH
from autograder.judging.observe import LocalPeer
from autograder.judging.report import render
from autograder.reports import reteach
from autograder.sandbox import visible

EXERCISES = [exercise for assignment in catalogue.ASSIGNMENTS for exercise in assignment.exercises]
KEYS = [draw_key(b"secret", "assignment", "exercise", [f"submission {n}"]) for n in range(3)]

by_id = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
by_misconceptions = pytest.mark.parametrize(  # on one worker, where each answer is judged once
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
    return judge(exercise, LocalPeer(namespace_of(source)), key)


@cache
def verdicts_on_mistakes(exercise_id):
    """(misconception, verdict) of each; the keys take turns, and a graded class (test_known_answers) draws new ones."""
    known = catalogue.find(exercise_id).wrong
    return [(m, verdict_on(catalogue.find(exercise_id), m.source, key)) for m, key in zip(known, cycle(KEYS))]


@by_id
def test_there_are_at_least_six_misconceptions_with_names_of_their_own(exercise):
    names = [known.name for known in exercise.wrong]
    assert len(names) >= 6
    assert len(set(names)) == len(names)


@by_id
def test_probes_have_names_of_their_own_and_are_visible_and_hidden(exercise):
    names = [probe.name for probe in exercise.probes]
    assert len(set(names)) == len(names)
    assert exercise.visible and bool(exercise.hidden) == bool(exercise.hidden_points)


@by_id
@pytest.mark.parametrize("key", KEYS)
def test_the_reference_earns_everything_whatever_is_drawn(exercise, key):
    assert judge(exercise, LocalPeer(dict(exercise.reference)), key).points == exercise.points


@by_id
def test_every_right_variant_earns_everything_whatever_is_drawn(exercise):
    for variant in exercise.right:
        for key in KEYS:
            assert verdict_on(exercise, variant.source, key).points == exercise.points, variant.name


@by_misconceptions
def test_each_misconception_fails_as_itself_whatever_is_drawn(exercise):
    wrongly = {
        known.name: (verdict.points, verdict.misconception and verdict.misconception.name)
        for known, verdict in verdicts_on_mistakes(exercise.id)
        if verdict.points >= exercise.points or verdict.misconception is not known
    }
    assert not wrongly


@by_misconceptions
def test_a_misconception_that_a_learner_can_see_is_named_in_their_own_jupyter(exercise):
    found = [(m, judge(exercise, LocalPeer(namespace_of(m.source)), None)) for m in exercise.wrong]
    assert [m.name for m, verdict in found if not verdict.passed and verdict.misconception is not m] == []


@by_misconceptions
def test_every_misconception_has_a_card_that_shows_it(exercise):
    found = [
        reteach.card_from(exercise, known, verdict.outcomes) for known, verdict in verdicts_on_mistakes(exercise.id)
    ]
    bare = [each for each in found if each.example is None or each.example.right == each.example.mistaken]
    assert [card.misconception.name for card in bare] == []


@by_misconceptions
def test_a_report_fits_its_width_and_never_gives_the_code(exercise):
    code = r"\btorch\.(softmax|matmul|bmm|einsum)\(|\.transpose\(|\.permute\("
    reports = {known: render(verdict) for known, verdict in verdicts_on_mistakes(exercise.id)}
    assert [known.name for known, report in reports.items() if max(map(len, report.splitlines())) > WIDTH] == []
    assert [known.name for known in reports if re.search(code, known.message)] == []
    assert [known.name for known, report in reports.items() if known.message not in " ".join(report.split())] == []


@by_id
def test_equal_work_is_asked_equal_questions_and_other_work_others(exercise):
    def drawn(key):
        outcomes = judge(exercise, LocalPeer(dict(exercise.reference)), key).outcomes
        hidden = [outcome for outcome in outcomes if outcome.probe.hidden]
        given = [value for outcome in hidden for value in outcome.case.arguments if not callable(value)]
        handed = any(callable(value) for outcome in hidden for value in outcome.case.arguments)
        return [
            *given,
            *(outcome.expected.result for outcome in hidden if given and handed),
        ]  # what a function knows shows there

    first, again, other = drawn(KEYS[0]), drawn(KEYS[0]), drawn(KEYS[1])
    assert all(map(equal, first, again))
    if first:
        assert not all(map(equal, first, other))


@by_id
def test_an_answer_that_memorizes_the_visible_inputs_earns_no_hidden_point(exercise):
    if exercise.roles is not None:
        pytest.skip("a class is asked under drawn weights in its visible probes too")
    name = exercise.names[0]
    table = [
        (o.case.arguments, o.expected.result)
        for o in judge(exercise, LocalPeer(dict(exercise.reference)), None).outcomes
    ]

    def memorized(*arguments):
        for inputs, result in table:
            if all(callable(a) or equal(a, b) for a, b in zip(arguments, inputs, strict=False)):
                return result
        return None

    verdict = judge(exercise, LocalPeer({name: memorized}), KEYS[0])
    assert verdict.hidden_points == 0


@by_id
def test_nothing_at_all_earns_nothing(exercise):
    assert judge(exercise, LocalPeer({}), KEYS[0]).points == 0


@by_id
def test_a_verdict_has_three_hints_and_a_section(exercise):
    assert len(exercise.hints) == 3 and all(exercise.hints)
    assert exercise.section.label.startswith(f"sec-{exercise.section.chapter}-")


def test_no_module_that_is_visible_while_grading_holds_an_answer():
    import importlib

    for assignment in catalogue.ASSIGNMENTS:
        ours = [name for name in sorted(visible.modules(assignment)) if name.startswith("transformer_ref")]
        for module in map(importlib.import_module, ours):
            for _, thing in inspect.getmembers(module, callable):
                for exercise in assignment.exercises:
                    peer = LocalPeer(dict.fromkeys(exercise.names, thing))
                    assert judge(exercise, peer, KEYS[0]).points < exercise.points


def test_ids_are_the_names_in_kebab_case():
    for exercise in EXERCISES:
        words = [re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower() for name in exercise.names]
        assert exercise.id in (words[0], "-".join(words))  # encode and decode are one exercise, encode-decode
