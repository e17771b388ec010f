"""Finds the first pattern that the results of all failed checks show."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from autograder.catalogue.defaults import FAR_AWAY
from autograder.diagnosis.evidence import FEWEST, Fact
from autograder.diagnosis.output_patterns import axes, order, scale
from autograder.diagnosis.output_patterns.by_argument import Quotient, by_argument
from autograder.diagnosis.output_patterns.lists import about_items, about_numbers
from autograder.diagnosis.output_patterns.pairs import is_comparable, tensors
from autograder.diagnosis.output_patterns.reductions import Afterward, afterward
from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

Pattern = Callable[[Tensor, Tensor, Outcome], Iterator[Fact]]  # (a result, the right one, their check) -> what it shows
PATTERNS: tuple[Pattern, ...] = (  # the most telling first
    axes.transposed,
    scale.infinite,
    axes.reshaped,
    axes.cut,
    axes.alike,
    afterward,
    axes.first_only,
    order.reverse,
    scale.scaled,
    scale.offset,
    by_argument,
    order.shifted,
    order.elsewhere,
    scale.unsigned,
    axes.one_place,
    axes.diagonal,
    axes.of_another_shape,
    scale.nearly,
    scale.by_check,
    scale.by_line,
    scale.affine,
    scale.one_value,
)
WHOLE = (  # seen wherever there are two of each
    axes.transposed,
    axes.cut,
    axes.alike,
    order.reverse,
    scale.scaled,
    scale.offset,
    scale.unsigned,
    scale.one_value,
)


VAGUE = (scale.by_line,)  # what it supposes is a guess, unless all failing checks show it


def about_results(failures: Sequence[Outcome]) -> list[Fact]:
    """Patterns that relate all these results to the expected ones."""
    return [*_about_values(failures), *about_items(failures), *about_numbers(failures)]


def _about_values(failures: Sequence[Outcome]) -> list[Fact]:
    """A pattern of the results; of several results, of the first wrong one, else of the one that it may be computed
    from."""
    several = [len(outcome.got.result) for outcome in failures if isinstance(outcome.got.result, tuple)]
    parts = range(2, min(several) + 1) if several and len(several) == len(failures) else ()
    found = _about_part(failures, 0)
    for part in parts if not found else ():
        found = [replace(fact, part=part) for fact in _about_part(failures, part)]
        if found:
            break
    return found


def _about_part(failures: Sequence[Outcome], part: int) -> list[Fact]:
    """The first pattern in every failing tensor that is large and varied enough and has no infinity.

    If one of the other tensors does not have it, the fact is partial.
    """
    finite = [outcome for outcome in failures if is_comparable(outcome.expected.result)]
    pairs = [pair for outcome in finite if (pair := tensors(outcome, part)) is not None]
    if not pairs or len(pairs) != len(finite):
        return []
    pairs = [pair for pair in pairs if not (part and near(*pair))]  # a later result may be correct
    in_some: list[Fact] = []
    for pattern in PATTERNS:
        if pattern is scale.by_check and any(isinstance(fact, Quotient) for fact in in_some):
            continue  # a factor that is known, though not where it is 1
        shown = [(list(dict.fromkeys(pattern(*pair))), pair[1]) for pair in pairs]
        telling = [facts for facts, expected in shown if _tells(expected, pattern in WHOLE)]
        telling = telling or [facts for facts, expected in shown if _may_tell(facts, expected)]
        common = [fact for fact in telling[0] if all(fact in facts for facts in telling)] if telling else []
        holding = {
            fact: [pair for pair, (facts, _) in zip(pairs, shown, strict=True) if fact in facts] for fact in common
        }
        common = [fact for fact in common if not _is_vacuous(fact, holding[fact])]
        if not common or (isinstance(common[0], axes.BySizes) and sum(type(f) is type(common[0]) for f in common) > 1):
            continue  # of axes of equal size it may be the one or the other
        if common[0] == scale.NEARLY and all(float(expected.abs().max()) >= FAR_AWAY for _, expected in shown):
            continue  # the digits that a large number lost
        fact = common[0]
        bearing = [fact in facts for facts, _ in shown]
        fact = replace(fact, sure=sum(bearing) > 1 or fact.once)
        if pattern in VAGUE and not (fact.sure and all(bearing)):
            continue
        if sum(bearing) == len(failures):
            return [fact]
        if fact.sure and bearing[0] and pairs[0][2] is failures[0]:
            in_some.append(replace(fact, partial=True))
    return in_some[:1]


def _is_vacuous(fact: Fact, pairs: Sequence[tuple[Tensor, Tensor, Outcome]]) -> bool:
    """Whether it speaks of lines where there is one or each has one number, or of one position along an axis that never
    has a second one."""
    if fact in (scale.OFFSET_BY_LINE, scale.SCALED_BY_LINE, scale.LINES_OF_0):
        return not any(pair[1].ndim > 1 and fact in scale.by_line(*pair, least=2) for pair in pairs)
    along = isinstance(fact, (axes.OnlyThe, axes.FirstOnly)) or (isinstance(fact, Afterward) and fact.along_an_axis)
    return along and all(right.ndim > fact.axis and right.shape[fact.axis] == 1 for _, right, _ in pairs)


def _may_tell(facts: Sequence[Fact], expected: Tensor) -> bool:
    """Whether a pattern in a small result is unlikely to be a coincidence."""
    return bool(facts) and (expected.unique().numel() > 1 or any(fact.once for fact in facts))


def _tells(expected: Tensor, whole: bool) -> bool:
    """Whether a result is large and varied enough to show that a pattern does not hold."""
    smallest = min(expected.shape, default=0)
    return smallest >= 2 if whole else smallest >= FEWEST and expected.unique().numel() >= FEWEST
