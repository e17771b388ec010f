"""What can be seen in an answer that shows no known mistake: four families of detectors, tried in one order.

    behavior         an argument is changed or ignored, an earlier result comes back
    output_patterns  the result is a transformation of the right one
    counterfactuals  the result is right for another input, or is a known mistake's with one slip more
    conditions       which checks fail, and which pass

Every detector yields facts (`evidence.Fact`). Looking ends at the first fact that settles the matter.
"""

from collections.abc import Sequence
from dataclasses import replace

from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.behavior import Differs, Ignored, changed, fixed, kept, other_mode, repeated, returned
from autograder.diagnosis.conditions import about_probes
from autograder.diagnosis.counterfactuals import FEWEST, beside_known, can_be_asked, suppose
from autograder.diagnosis.evidence import Fact, about_values
from autograder.diagnosis.known_mistakes import setting, settings
from autograder.diagnosis.output_patterns import scale
from autograder.diagnosis.output_patterns.axes import ANOTHER_SHAPE, CutShort, GoesOn
from autograder.diagnosis.output_patterns.formulas import about_formulas, formula
from autograder.diagnosis.output_patterns.lengths import about_lengths
from autograder.diagnosis.output_patterns.results import about_results
from autograder.judging.observation import Outcome
from autograder.judging.repeat_run import RepeatRun


def looked_at(exercise: Exercise, outcomes: Sequence[Outcome], again: RepeatRun | None) -> list[Fact]:
    """All facts found about an answer without a known mistake, the most informative first; last, a model's mode."""
    failures = [outcome for outcome in outcomes if not outcome.passed and outcome.got is not None]
    return [*_looked_at(exercise, outcomes, again), *other_mode(failures)] if failures else []


def _looked_at(exercise: Exercise, outcomes: Sequence[Outcome], again: RepeatRun | None) -> list[Fact]:
    facts = notice(exercise, outcomes, again)
    if any(fact.settles and not fact.partial for fact in facts):
        return facts
    by_check = any(fact in (scale.SCALED_BY_CHECK, scale.OFFSET_BY_CHECK) for fact in facts)  # certain as well
    ignored = by_check or any(isinstance(fact, Ignored) for fact in facts)
    found = suppose(exercise, outcomes) or ([] if ignored else beside_known(exercise, outcomes))
    if by_check and not found:
        return _formula(exercise, outcomes) or facts
    if found or not all(isinstance(fact, Ignored) for fact in facts):
        return found or facts
    return [*(_in_one_setting(exercise, outcomes) or _formula(exercise, outcomes)), *facts]


def notice(exercise: Exercise, outcomes: Sequence[Outcome], again: RepeatRun | None = None) -> list[Fact]:
    """Facts about a failing answer, from its behavior, its results and the failing checks; at most one about results.

    A fact about the results holds in every failing check. One that holds in the first and in others, but not in all, is
    `partial`; any other is left out.
    """
    failures = [outcome for outcome in outcomes if not outcome.passed and outcome.got is not None]
    if not failures:
        return []
    facts = [*changed(failures), *(repeated(again) if again else ())]
    if same := [*kept(exercise, outcomes)]:
        return [*facts, *same]
    if back := [*returned(failures)]:
        return [*(fact for fact in facts if not isinstance(fact, Ignored)), *back]
    values = [o for o in failures if o.difference.kind in ("value", "shape", "length") or _items(o)]
    found = [*about_formulas(values), *about_results(values)]
    stops = len(values) < len(about_values(failures))  # others are errors, say, in which no pattern of values can hold
    in_some = bool(found) and (stops or found[0].partial)
    if not found or isinstance(found[0], (CutShort, GoesOn)) or (in_some and found[0].name == ANOTHER_SHAPE.name):
        found = [*about_lengths(values), *found]
    if values[:1] != failures[:1]:
        found = []
    elif stops:
        found = [replace(fact, partial=True) for fact in found if len(values) > 1 or fact.once]
    if any(isinstance(fact, Ignored) for fact in facts):  # why whole lines are wrong
        found = [fact for fact in found if fact not in (scale.OFFSET_BY_LINE, scale.SCALED_BY_LINE)]
    if any(isinstance(fact, Differs) for fact in facts):  # then this result, and which probes fail, say nothing
        return facts
    return [*facts, *[*fixed(values), *found][:1], *about_probes(outcomes, again, exercise)][:3]


def _items(outcome: Outcome) -> bool:
    """Whether an item of a list has the wrong type."""
    return outcome.difference.kind == "type" and isinstance(outcome.got.result, list) and bool(outcome.difference.where)


def _formula(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Fact]:
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    return formula(exercise, asked) if not exercise.is_class and can_be_asked(exercise, asked) else []


def _in_one_setting(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Fact]:
    """A pattern of all results in the first failure's setting: its function, or the value of a flag or a string."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failed = next(outcome for outcome in asked if not outcome.passed)
    for name in settings(exercise, asked):
        where = setting(exercise, failed.case, name)
        here = [outcome for outcome in asked if setting(exercise, outcome.case, name) == where]
        if FEWEST <= len(here) < len(asked) and not any(outcome.passed for outcome in here):
            found = [fact for fact in about_results(here) if fact.sure and not fact.partial]
            if found:
                return [replace(found[0], where=where)]
    return []
