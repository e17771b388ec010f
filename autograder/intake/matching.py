"""Which handed-in cell is which cell of the released notebook: by name, by text, by what it defines, by likeness."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nbformat import NotebookNode
from rapidfuzz import fuzz

from autograder.intake.salvage import SubmittedCell
from autograder.intake.scripts import is_python

ALIKE = 60.0  # percent of likeness from which a cell without a name is taken for a given one
LIKENESS_READS = 2_000  # characters, and
LIKENESS_CELLS = 500  # cells: comparing every pair takes its time

_DEFINED = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_BOUND = re.compile(r"^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(eq=False)
class Given:
    """A cell of the released notebook; `found`: indices of the submitted cells that are matched with it."""

    cell: NotebookNode
    place: int
    found: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        graded = self.cell.metadata.get("nbgrader", {})
        self.name: str = graded.get("grade_id") or self.cell.get("id", "")
        self.locked = bool(graded.get("locked"))
        self.is_answer = bool(graded.get("solution"))
        self.is_check = self.locked and bool(graded.get("grade"))
        self.is_code = self.cell.cell_type == "code"
        self.bare = bare(self.cell.source)
        self.defines = set(_DEFINED.findall(self.cell.source)) if self.is_answer else set()

    @property
    def is_text(self) -> bool:
        """Whether a text cell is one that a student may edit, but need not."""
        return not (self.locked or self.is_answer)


class Matching:
    """`claims`: for each submitted cell the released one that it matches, None if it is the student's own; `copies`:
    indices of further copies of released cells, which are ignored."""

    def __init__(self, pieces: Sequence[SubmittedCell], released: NotebookNode) -> None:
        self.pieces = pieces
        self.given = [Given(cell, place) for place, cell in enumerate(released.cells)]
        self.claims: list[Given | None] = [None] * len(pieces)
        self.copies: set[int] = set()
        self.code = [as_code(piece) for piece in pieces]
        self.defined = [_names(code) for code in self.code]
        self._match_names()
        self._match_texts()
        self._match_definitions()
        self._match_likeness()

    def claim(self, place: int, given: Given) -> None:
        """Match a submitted cell with a released one."""
        self.claims[place] = given
        given.found.append(place)

    def release(self, given: Given, places: Iterable[int]) -> None:
        """Undo the match of these cells; those that are blank copies of the released one are dropped."""
        for place in places:
            self.claims[place] = None
            given.found.remove(place)
            if bare(self.pieces[place].source) in (given.bare, ""):
                self.copies.add(place)

    def is_own(self, place: int) -> bool:
        """Whether a submitted cell is the student's own."""
        return self.claims[place] is None and place not in self.copies

    def is_changed(self, place: int) -> bool:
        """Whether a matched cell differs from the released one."""
        return bare(self.pieces[place].source) != self.claims[place].bare

    def defining(self, given: Given) -> list[int]:
        """Indices of the cells that define the names of an answer, except blank and released cells."""
        return [
            place
            for place, names in enumerate(self.defined)
            if given.defines & names
            and (self.is_own(place) or (self.claims[place] not in (None, given) and self.is_changed(place)))
            and (self.pieces[place].kind == "code" or is_python(self.code[place]))
        ]

    def _match_names(self) -> None:
        """Match cells by grade id, else by cell id. A released text that became code, or a second one, is the student's
        own."""
        by_name = {given.name: given for given in self.given if given.name}
        for place, piece in enumerate(self.pieces):
            given = by_name.get(piece.grade_id) or by_name.get(piece.id)
            if given and not (given.is_text and (given.found or given.cell.cell_type != piece.kind)):
                self.claim(place, given)

    def _match_texts(self) -> None:
        """Match cells with equal text, in order, which is better evidence than a name; further cells with that text are
        copies."""
        texts = {given.bare for given in self.given if given.bare}
        same = [place for place, piece in enumerate(self.pieces) if bare(piece.source) in texts]
        for place in same:
            claim = self.claims[place]
            if claim and (self.is_changed(place) or claim.found[0] != place):
                self.release(claim, [place])
        waiting: dict[str, list[Given]] = {text: [] for text in texts}
        for given in self.given:
            if not given.found and given.bare:
                waiting[given.bare].append(given)
        for place in same:
            text = bare(self.pieces[place].source)
            if self.claims[place] is None and waiting[text]:
                self.claim(place, waiting[text].pop(0))
            elif self.claims[place] is None:
                self.copies.add(place)

    def _match_definitions(self) -> None:
        """Match cells by the names that they define, for answers without a match by id."""
        for given in [given for given in self.given if given.is_answer and not given.found]:
            for place in self.defining(given):
                if self.is_own(place):
                    self.claim(place, given)

    def _match_likeness(self) -> None:
        """Match cells by similarity, the most similar first; among equals, in order."""
        missing = [given for given in self.given if not given.found]
        asked = set().union(*(given.defines for given in self.given))
        own = [place for place in range(len(self.pieces)) if self.is_own(place) and not asked & self.defined[place]]
        pairs = []
        for given in missing:
            for place in own[:LIKENESS_CELLS]:
                if self.pieces[place].kind != given.cell.cell_type:
                    continue
                texts = given.cell.source[:LIKENESS_READS], self.pieces[place].source[:LIKENESS_READS]
                likeness = fuzz.ratio(*texts, score_cutoff=ALIKE)
                away = abs(given.place / len(self.given) - place / len(self.pieces))
                pairs.append((-likeness, away, given.place, place))
        for likeness, _, number, place in sorted(pairs):
            if likeness and self.claims[place] is None and not self.given[number].found:
                self.claim(place, self.given[number])


def bare(source: str) -> str:
    """A text without blank lines and trailing blanks, which editors may change."""
    return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())


def as_code(piece: SubmittedCell) -> str:
    """A cell's text as code: of a text cell with fences, the text between them, also if the cell has lost its type."""
    fenced = "\n\n".join(_FENCED.findall(piece.source))
    if piece.kind == "code":
        return fenced if fenced and is_python(fenced) and not is_python(piece.source) else piece.source
    return fenced or piece.source


def _names(source: str) -> set[str]:
    """The names that a cell defines at its top level, found without parsing, since incomplete code counts too."""
    return {*_DEFINED.findall(source), *_BOUND.findall(source)}
