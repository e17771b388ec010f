"""The list of references, sorted by author, each under the name by which the pages cite it: [Vaswani et al., 2017]."""

import unicodedata
from collections.abc import Iterator

from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as Unsorted
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting import BaseSortingStyle
from sphinx.application import Sphinx


def cited_as(entry: Entry) -> str:
    """Return the text of a citation in brackets: one name, two, or the first and "et al.", and the year."""
    names = [
        " ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names])) for person in entry.persons["author"]
    ]
    named = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{named}, {entry.fields['year']}"


class AuthorYear(BaseLabelStyle):
    """A label is the citation itself."""

    def format_labels(self, entries: list[Entry]) -> Iterator[str]:
        """Yield each entry's label."""
        return map(cited_as, entries)


class ByLabel(BaseSortingStyle):
    """In the order of the alphabet, where ï is an i."""

    def sorting_key(self, entry: Entry) -> str:
        """Return what is compared."""
        letters = unicodedata.normalize("NFD", cited_as(entry)).casefold()
        return "".join(letter for letter in letters if not unicodedata.combining(letter))


class ByAuthor(Unsorted):
    """Pybtex's plain look, sorted by author and labeled as cited."""

    default_sorting_style = ByLabel
    default_label_style = AuthorYear


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the style under its name."""
    register_plugin("pybtex.style.formatting", "by_author", ByAuthor)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
