"""Known mistakes that are made on scores, in whatever exercise makes them."""

from collections.abc import Callable, Iterator

from autograder.catalogue.exercise import Evidence, Misconception, Section, usual_quote
from autograder.catalogue.known_answers import Answer, mistake

ON_SCORES = (  # name, what is done to them, what it does
    (
        "negative scores cut off",
        "scores.clamp(min=0)",
        "Negative scores became 0, so a key that points *away* counts like one at a right angle. A score "
        "keeps its sign.",
    ),
    (
        "signs of the scores dropped",
        "scores.abs()",
        "The signs of the scores were dropped, so a key that points *away* counts as one that fits. A score "
        "keeps its sign.",
    ),
    (
        "scores squared",
        "scores ** 2",
        "The scores were squared, so a key that points *away* counts as one that fits. Use the dot product as it is.",
    ),
    (
        "root of the scores",
        "scores ** 0.5",
        """The root was taken of the scores themselves, and of a negative one there is none. If the root of a width was
        meant, it applies only to that number, under the fraction bar.""",
    ),
    (
        "scores made shares of their length",
        "F.normalize(scores, dim=-1)",
        "Each row of scores was brought to length 1, so how sharply a query chooses is lost. One number divides all "
        "scores alike.",
    ),
    (
        "largest score taken as the unit",
        "scores / scores.abs().amax(dim=-1, keepdim=True)",
        "Each row was divided by its own largest score, so how sharply a query chooses is lost. One number divides "
        "all alike.",
    ),
)


def wrong_scores(
    right: Answer, line: str, reread: Section, quotes: Callable[[Evidence], str] | None = usual_quote
) -> Iterator[Misconception]:
    """The correct answer with its `scores` modified after a line, in each usual way."""
    for name, done, message in ON_SCORES:
        yield mistake(name, right.after(line, f"scores = {done}"), reread, message, quotes=quotes)
