"""Builds the notebook that is graded: the released one with what a student wrote, and nothing else of the submission.

Given cells, their order, ids, points and tags come from the released notebook. From the submission come only the texts
of answers, of other unlocked cells and of the student's own cells, which keep their place among their neighbors.
"""

import copy
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from autograder.intake import attachments, conflict, salvage
from autograder.intake.matching import Given, Matching, bare
from autograder.intake.salvage import Salvaged, SubmittedCell
from autograder.intake.scripts import is_python

NOTE_ID = "about-your-submission"
NO_FILE = "There was no notebook in what you handed in."
# Feedback shows every cell, and coloring code takes its time: what is longer is left out.
MAX_CELL = 100_000  # characters
MAX_OWN = 1_000_000  # characters of all the student's own cells
MAX_OWN_CELLS = 500
MAX_ENDS = 20  # cells that a function may have been cut into: each is parsed with all that comes before it

_NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


class Rebuilt(NamedTuple):
    """A notebook for grading, sentences for its author about what was corrected, the ids of the cells with answers, and
    whether anything in the file belongs to the assignment."""

    notebook: NotebookNode
    reasons: tuple[str, ...]
    answered: frozenset[str]
    belongs: bool


def rebuild(submitted: bytes | None, released: NotebookNode) -> Rebuilt:
    """The released notebook with the student's sources in it, for any bytes; None stands for no file.

    released: in nbformat, with ids; not modified. No submission raises an exception.
    """
    readings = [Salvaged((), (NO_FILE,))] if submitted is None else salvage.read(submitted)
    rebuilt = [_Rebuilding(reading.pieces, released, reading.reasons).run() for reading in readings]
    return rebuilt[0] if len(rebuilt) == 1 else _settled(readings, rebuilt, released)


def _settled(readings: Sequence[Salvaged], rebuilt: Sequence[Rebuilt], released: NotebookNode) -> Rebuilt:
    """The first side of a merge conflict, with the answers that only another side has."""
    pieces, best = list(readings[0].pieces), rebuilt[0]
    for reading, other in zip(readings[1:], rebuilt[1:], strict=True):
        lacking = other.answered - best.answered
        for piece in reading.pieces:
            if (name := piece.grade_id or piece.id) in lacking:
                place = next((place for place, own in enumerate(pieces) if name in (own.grade_id, own.id)), len(pieces))
                pieces[place : place + 1] = [piece]
        best = _Rebuilding(pieces, released, readings[0].reasons).run()
        if len(other.answered) > len(best.answered):
            pieces, best = list(reading.pieces), other
    return best._replace(reasons=(conflict.SAID, *best.reasons))


def with_note(notebook: NotebookNode, reasons: Sequence[str]) -> NotebookNode:
    """The notebook with the reasons in its first cell, where feedback shows them; unchanged if there are none."""
    if reasons:
        notebook = copy.deepcopy(notebook)
        text = "\n".join(["**About what you handed in**", "", *(f"- {reason}" for reason in reasons)])
        notebook.cells.insert(0, new_markdown_cell(text, id=NOTE_ID))
    return notebook


class _Rebuilding:
    """The state of rebuilding one submission."""

    def __init__(self, pieces: Sequence[SubmittedCell], released: NotebookNode, reasons: Sequence[str]) -> None:
        self.released, self.reasons = released, list(reasons)
        self.pieces = [piece for piece in pieces if piece.id != NOTE_ID and len(piece.source) <= MAX_CELL]
        if any(len(piece.source) > MAX_CELL for piece in pieces):
            self.reasons.append(f"Cells of more than {MAX_CELL:,} characters were left out.")
        self.matching = Matching(self.pieces, released)
        self.given, self.claims = self.matching.given, self.matching.claims
        self.statements = {bare(each) for given in self.given if given.locked for each in _statements(given.bare)}
        self.answers: dict[str, str] = {}
        self.elsewhere: set[int] = set()  # places whose code has gone into an answer

    def run(self) -> Rebuilt:
        claimed = [(piece, claim) for piece, claim in zip(self.pieces, self.claims, strict=True) if claim]
        if self.pieces and not claimed:
            self.reasons.append("Nothing in this file belongs to this assignment. Is it the right one?")
        elif any(not (claim.is_text or piece.id or piece.grade_id) for piece, claim in claimed):
            self.reasons.append("The cells had lost their names. They were matched by what is in them.")
        for given in self.given:
            if given.is_answer:
                self._answer(given)
        self._tell_of_damage()
        notebook = self._notebook()
        left_out = attachments.within_bounds(cell for cell in notebook.cells if cell.cell_type == "markdown")
        if left_out:
            most = attachments.MAX_PICTURES * 3 // 4_000_000
            self.reasons.append(attachments.LEFT_OUT.format(most, _list(left_out)))
        return Rebuilt(notebook, tuple(dict.fromkeys(self.reasons)), frozenset(self.answers), bool(claimed))

    def _answer(self, given: Given) -> None:
        """Determine an answer's text: from its matched cells, else from the cells that define its names."""
        written = self._written(given)
        filled = [place for place in written if not self._is_unfilled(place, given)]
        is_defined = not given.defines or any(given.defines & self.matching.defined[place] for place in filled)
        places = [] if filled and is_defined else self.matching.defining(given)
        if written and not places:
            written = filled or written
            self._answer_from_own(given, self._before_check(given, written) or written)
            return
        places = self._before_check(given, places) or places
        if places:
            self.matching.release(given, filled)  # what is there prepares the answer, at most
            parts = [self._with_its_end(place, given) for place in places]
            joined = "\n\n".join(parts)
            self.answers[given.name] = joined if is_python(joined) else parts[-1]
            self.elsewhere.update(places)
            for place in places:
                if self.matching.is_own(place):
                    self.matching.claim(place, given)
            self.reasons.append(f"Your answer to `{given.name}` was found in another cell than its own.")

    def _written(self, given: Given) -> list[int]:
        """The cells matched with an answer whose text differs from the released one, separately and joined."""
        texts = {place: bare(self._text(place, given)) for place in given.found}
        if "\n".join(texts.values()) == given.bare:  # the blank one, cut into pieces
            return []
        if len(texts) == 1:  # the same, where what was cut off has lost its name
            whole, ends = self._and_its_ends(*given.found, given)
            if bare(whole) == given.bare:
                self.matching.copies.update(ends)
                return []
        return [place for place, text in texts.items() if text not in (given.bare, "")]

    def _is_unfilled(self, place: int, given: Given) -> bool:
        """Whether a cell is the blank answer with text around it that defines nothing else."""
        text = bare(self._text(place, given))
        return given.bare in text and text.count("def ") == given.bare.count("def ")

    def _with_its_end(self, place: int, given: Given) -> str:
        """A cell's text as this answer; if a function in it was split, together with the other half."""
        text, ends = self._and_its_ends(place, given)
        self.matching.copies.update(ends)
        return text

    def _and_its_ends(self, place: int, given: Given) -> tuple[str, list[int]]:
        """The same text, and the indices of the cells with the other half."""
        text, ends = self._text(place, given), []
        for end in range(place + 1, len(self.pieces))[:MAX_ENDS]:
            rest = self.matching.code[end]
            if not (self.matching.is_own(end) and rest[:1].isspace() and not is_python(rest)):
                break
            joined = f"{text}\n{rest}"
            if len(joined) > MAX_CELL or not is_python(joined):
                break
            text = joined
            ends.append(end)
        return text, ends

    def _answer_from_own(self, given: Given, places: Sequence[int]) -> None:
        """Among several cells for this answer, the last one that defines its names; the others stay as own cells.

        A function whose cell was split is joined again.
        """
        parts = [self._text(place, given) for place in places]
        if len(places) == 1:
            parts = [self._with_its_end(places[0], given)]
        defining = [place for place in places if given.defines & self.matching.defined[place]]
        chosen = {(defining or places)[-1]}
        self.answers[given.name] = parts[0] if len(parts) == 1 else self._text(*chosen, given)
        joined = "\n".join(parts)
        if len(parts) > 1 and not all(map(is_python, parts)) and is_python(joined):
            self.answers[given.name], chosen = joined, set(places)
        self.matching.release(given, set(given.found) - chosen)
        if len(places) > 1:
            self.reasons.append(f"`{given.name}` was there {len(places)} times. Each of them counts, in its place.")
        if given.is_code and any(self.pieces[place].kind != "code" for place in chosen):
            self.reasons.append(f"`{given.name}` was no longer a code cell. It was graded as one.")

    def _before_check(self, given: Given, places: Sequence[int]) -> list[int]:
        """The cells before the answer's check, since a check judges what is defined when it runs."""
        check = next((other for other in self.given[given.place :] if other.is_check and other.found), None)
        return [place for place in places if check is None or place < check.found[0]]

    def _text(self, place: int, given: Given) -> str:
        """A cell's text as this answer."""
        claim = self.claims[place]
        if claim and claim.locked and self.pieces[place].kind == "code":
            return self._added(place)
        return self.matching.code[place] if given.is_code else self.pieces[place].source

    def _added(self, place: int) -> str:
        """The code that a student added to a released cell; empty for a comment, a change of text, or nothing."""
        found = [each for each in _statements(self.matching.code[place]) if bare(each) not in self.statements]
        added = "\n".join(found).strip("\n")
        is_code = self.pieces[place].kind == "code" and any(bare(each) and each[0] != "#" for each in found)
        if not is_code:
            return ""
        return added if is_python(added) else self.pieces[place].source

    def _tell_of_damage(self) -> None:
        if not any(self.claims):
            return
        needed = [given for given in self.given if not (given.is_text or given.name in self.answers)]
        missing = [given.name for given in needed if not given.found]
        if missing:
            self.reasons.append(f"Missing cells were put back: {_list(missing)}.")
        changed = [
            given.name for given in self.given if given.locked and any(map(self.matching.is_changed, given.found))
        ]
        if changed:
            self.reasons.append(f"Given cells that were changed are restored as released: {_list(changed)}.")
        order = [claim.place for place, claim in enumerate(self.claims) if claim and place not in self.elsewhere]
        if order != sorted(order):
            self.reasons.append("Cells that were moved are back in the released order.")

    def _notebook(self) -> NotebookNode:
        around = {key: copy.deepcopy(value) for key, value in self.released.items() if key != "cells"}
        notebook = NotebookNode(**around, cells=[])
        taken = {given.cell.get("id") for given in self.given}
        ids = (name for number in count(1) if (name := f"own-{number}") not in taken)
        before, after = self._own_cells()
        for given in self.given:
            cell = copy.deepcopy(given.cell)
            if given.name in self.answers:
                cell.source = self.answers[given.name]
            elif given.is_text and given.found:
                cell.source = self.pieces[given.found[0]].source
            if cell.cell_type == "markdown" and not given.locked and (pictures := self._pictures(given)):
                cell.attachments = pictures
            notebook.cells += _new_cells(before[given.place], ids)
            notebook.cells.append(cell)
            notebook.cells += _new_cells(after[given.place], ids)
        return notebook

    def _pictures(self, given: Given) -> NotebookNode:
        """The pictures pasted into a text answer, or into a text that is not graded."""
        found: dict[str, dict[str, str]] = {}
        for place in given.found:
            found |= self.pieces[place].attachments
        return from_dict(found)

    def _own_cells(self) -> tuple[list[list[SubmittedCell]], list[list[SubmittedCell]]]:
        """The student's own cells before and after each released one.

        A cell stays after the released one that it followed or, if that one was moved behind the next, before the next.
        """
        before: list[list[SubmittedCell]] = [[] for _ in self.given]
        after: list[list[SubmittedCell]] = [[] for _ in self.given]
        last, own, room = None, 0, MAX_OWN
        for place, piece in enumerate(self.pieces):
            claim = self.claims[place]
            if claim:
                last = claim
                if claim.locked and place not in self.elsewhere and (added := self._added(place)):
                    (before if claim.is_check else after)[claim.place].append(SubmittedCell(added, "code"))
            elif place not in self.matching.copies and piece.source.strip():
                own, room = own + 1, room - len(piece.source)
                if own > MAX_OWN_CELLS or room < 0:
                    self.reasons.append("There were too many cells of your own; the last of them were left out.")
                    break
                upcoming = next((claim for claim in self.claims[place:] if claim), None)
                if upcoming and (last is None or last.place >= upcoming.place):
                    before[upcoming.place].append(piece)
                else:
                    after[(last or self.given[-1]).place].append(piece)
        return before, after


def _new_cells(pieces: Sequence[SubmittedCell], ids: Iterator[str]) -> list[NotebookNode]:
    cells = [_NEW_CELL[piece.kind](piece.source, id=next(ids)) for piece in pieces]
    for cell, piece in zip(cells, pieces, strict=True):
        if piece.attachments:
            cell.attachments = from_dict(piece.attachments)
    return cells


def _statements(source: str) -> list[str]:
    """Groups of lines: each line with the indented and blank ones below it."""
    found: list[list[str]] = []
    for line in source.splitlines():
        if found and (not line.strip() or line[0].isspace()):
            found[-1].append(line)
        else:
            found.append([line])
    return ["\n".join(lines) for lines in found]


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
