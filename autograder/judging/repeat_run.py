"""Runs a failing probe again: with the same input under other seeds, with only one argument drawn again, and without
the call before it.

The results help to explain the failure (`explain`); they decide no points.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Exercise
from autograder.judging.closeness import same
from autograder.judging.observation import Observation, Outcome, Raised
from autograder.judging.observe import Candidate
from autograder.judging.probe_inputs import right_answer

OTHER_SEEDS = (1, 2, 3)  # of what an answer draws itself; it may draw the same under two of them
OTHER = 20_817  # the seed of inputs that are run for comparison
SHUFFLES = 6  # how often an argument that seems to have no effect is drawn anew


@dataclass(frozen=True)
class RepeatRun:
    """A failing probe run again: with the same input under other seeds, and with only one argument drawn anew.

    others: position of the argument -> (correct result, learner's result). alone: without the call before it; None if
    there is none.
    """

    outcome: Outcome
    same: tuple[Observation, ...]
    others: dict[int, tuple[Observation, Observation]]
    alone: Observation | None = None


def other_cases(case: Case, seed: int = OTHER) -> Iterator[tuple[int, Case]]:
    """For each tensor of a case, the case with new values in it: (its position, the case).

    Floats are drawn in reverse order of size, since an answer may depend only on their order. A mask becomes True
    everywhere.
    """
    generator = torch.Generator().manual_seed(seed)
    for place, value in enumerate(case.arguments):
        numbers = isinstance(value, Tensor) and value.is_floating_point() and value.numel()
        if numbers or (isinstance(value, Tensor) and value.dtype == torch.bool and not value.all()):
            drawn = torch.ones_like(value)
            if numbers:
                drawn = _the_other_way_round(value, generator)
            yield place, replace(case, arguments=(*case.arguments[:place], drawn, *case.arguments[place + 1 :]))


def _the_other_way_round(value: Tensor, generator: torch.Generator) -> Tensor:
    """Numbers of the same range in the opposite order, with a little noise; random ones if all are equal. None is 0."""
    finite = value.double().nan_to_num(0.0, 0.0, 0.0)
    low, high = finite.amin(), finite.amax()
    noise = torch.rand(value.shape, generator=generator, dtype=torch.float64) + 0.5
    turned = low + high - finite + 0.1 * (high - low) * noise if high > low else noise
    return torch.where(turned == 0, noise, turned).to(value.dtype)


def varied(case: Case, place: int) -> list[Case]:
    """Some cases that differ only in one argument, with all floats drawn again.

    No number is 0, since a number multiplied by 0 has no effect. The argument also comes with its numbers in another
    order, of other sizes and signs: a result may depend only on their order (argmax) or only on their signs (a vector
    of one number, divided by its length).
    """
    for other, drawn in other_cases(case):
        value = drawn.arguments[other]
        if other != place and value.is_floating_point():
            case = replace(case, arguments=(*case.arguments[:other], value, *case.arguments[other + 1 :]))
    opposite = [dict(other_cases(case, OTHER + seed))[place] for seed in range(4)]
    value = case.arguments[place]
    generators = [torch.Generator().manual_seed(OTHER + seed) for seed in range(SHUFFLES)]
    shuffled = [_anew(value, generator) for generator in generators if value.is_floating_point()]
    return [
        case,
        *opposite,
        *(replace(case, arguments=(*case.arguments[:place], each, *case.arguments[place + 1 :])) for each in shuffled),
    ]


def _anew(value: Tensor, generator: torch.Generator) -> Tensor:
    """Its numbers in another order, each times a number around 1 or around -1."""
    order = torch.randperm(value.numel(), generator=generator)
    sizes = torch.rand(value.numel(), generator=generator, dtype=torch.float64) + 0.5
    signs = torch.randint(2, (value.numel(),), generator=generator) * 2 - 1
    return (value.flatten()[order].double() * sizes * signs).view(value.shape).to(value.dtype)


def repeat(exercise: Exercise, candidate: Candidate, failed: Outcome, may_be_shown: bool) -> RepeatRun:
    """Run a failed probe again; one that stopped with an error, only alone. Raises EndpointGone when the other side is
    lost.

    may_be_shown: whether results for other inputs may be reported; for a hidden probe only whether two calls differ.
    """
    alone = None
    if failed.case.before:
        alone = candidate.observe(failed.probe, replace(failed.case, before=()), failed.expected, failed.cotangent)
    if isinstance(failed.got.result, Raised):
        return RepeatRun(failed, (), {}, alone)
    other_seeds = tuple(
        candidate.observe(failed.probe, failed.case, failed.expected, failed.cotangent, seed) for seed in OTHER_SEEDS
    )
    others = {}
    for place, case in other_cases(failed.case) if may_be_shown else ():
        expected = right_answer(exercise, failed.probe, case)
        got = candidate.observe(failed.probe, case, expected)
        if not same(got.result, failed.got.result) or _plays_no_part(exercise, candidate, failed, place):
            others[place] = expected, got
    return RepeatRun(failed, other_seeds, others, alone)


def _plays_no_part(exercise: Exercise, candidate: Candidate, failed: Outcome, place: int) -> bool:
    """Whether the result does not depend on an argument for other values of the remaining ones either."""
    answers = (
        candidate.observe(failed.probe, case, right_answer(exercise, failed.probe, case))
        for case in varied(failed.case, place)
    )
    first = next(answers)
    return all(same(first.result, other.result) for other in answers)  # the first that differs is the last one asked
