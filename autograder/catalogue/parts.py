"""The names that entries not yet in the catalogue's own words still use."""

from textwrap import dedent

from autograder.catalogue.exercise import Misconception
from autograder.catalogue.known_answers import right
from autograder.catalogue.probes import GRADIENTS, UNTOUCHED, normal, shares, turned
from autograder.catalogue.quotes import columns, first, row, sizes
from autograder.catalogue.quotes import row_sums as ragged

__all__ = [
    "GRADIENTS",
    "UNTOUCHED",
    "columns",
    "first",
    "known",
    "normal",
    "ragged",
    "right",
    "row",
    "shares",
    "sizes",
    "turned",
]


def known(name, source, message, reread, seen=None, shows=None):
    return Misconception(name, dedent(source).lstrip(), " ".join(message.split()), reread, seen, shows)
