"""A learner's progress: every exercise of the notebook, every chapter of the course, and what comes next."""

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from autograder import catalogue
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.catalogue.sections import chapter_title
from autograder.feedback import render
from autograder.notebook import progress_store
from autograder.notebook.progress_store import Earned, Notebooks
from autograder.policy import deadlines

NOTHING = "No check has been run here yet. Run the one below an answer, then ask again."
SOLVED, BEGUN, CHANGED, UNTOUCHED = "solved", "begun", "changed", "untouched"
SIGNS = {SOLVED: "✓", BEGUN: "·", CHANGED: "·", UNTOUCHED: " "}
ALL = "That is all of it."
MACHINE = "09_blocks"  # whose page shows the whole machine
PLAIN = "font-weight:inherit;"  # a header for who listens, and a cell like the others for who sees


@dataclass(frozen=True)
class Row:
    """An exercise of this notebook, or a chapter. said: its status; link: its notebook, or ""."""

    state: str
    number: str
    name: str
    said: str
    link: str = ""
    share: float = 0.0


@dataclass(frozen=True)
class Standing:
    """exercises: of this notebook, which `title` names. trouble: why earlier sessions are not counted, or ""."""

    title: str
    points: str
    exercises: Sequence[Row]
    chapters: Sequence[Row]
    solved: str
    next: str
    trouble: str
    due: str = ""
    built: frozenset[str] | None = None  # exercises that are solved, where the notebook builds the whole machine


def standing(earned: Mapping[str, tuple[float, float]], namespace: Mapping[str, Any]) -> dict[str, str]:
    """The progress as text and as HTML.

    earned: exercise id -> (points earned, points that its check decides), in this session; a check of visible probes
    decides less than all points. namespace: the notebook's, by whose names the notebook is recognized.
    """
    known = Known(earned, namespace, Notebooks(progress_store.place()))
    assignment = _notebook(earned, namespace)
    if assignment is None and not known.entries:
        said = f"{NOTHING} {known.trouble}".strip()
        return {"text": said, "html": f"<p>{html.escape(said)}</p>"}
    found = _standing(assignment, known)
    return {"text": _as_text(found), "html": _as_html(found)}


class Known:
    """The status of every exercise: from this session, else from earlier ones if the code is unchanged."""

    def __init__(
        self, earned: Mapping[str, tuple[float, float]], namespace: Mapping[str, Any], notebooks: Notebooks
    ) -> None:
        self._namespace, self.notebooks = namespace, notebooks
        before = notebooks.remembered
        self.entries = {**before.entries, **{name: Earned(*points) for name, points in earned.items()}}
        self.trouble = (
            f"{before.trouble}, so what earlier sessions earned is not counted. Remove it, and checks write a new one."
            if before.trouble
            else ""
        )
        self._codes = {
            name: entry.code
            for name, entry in before.entries.items()
            if earned.get(name, (entry.points, entry.of)) == (entry.points, entry.of)
        }

    def state(self, assignment: Assignment, exercise_id: str) -> str:
        """Whether it is solved, was solved by other code, is incomplete, or was never checked."""
        entry = self.entries.get(exercise_id)
        if entry is None:
            return UNTOUCHED
        if entry.points < entry.of:
            return BEGUN
        return SOLVED if self._is_same(assignment, exercise_id) else CHANGED

    def _is_same(self, assignment: Assignment, exercise_id: str) -> bool:
        code = self._codes.get(exercise_id, "")
        if not code:
            return True
        now = [name for name in _names(exercise_id) if _is_own(name, self._namespace)]
        here = progress_store.code_of(now, self._namespace)
        return here == code if here else self.notebooks.holds(assignment, code)


def _standing(assignment: Assignment | None, known: Known) -> Standing:
    assignments = catalogue.assignments()
    states = {each.id: [known.state(each, name) for name in each.exercise_ids] for each in assignments}
    count = sum(state == SOLVED for each in states.values() for state in each)
    title = points = ""
    rows: list[Row] = []
    if assignment is not None:
        title = _title(assignment)
        rows = [_exercise(exercise, known, assignment) for exercise in assignment.exercises]
        got = sum(known.entries[name].points for name in assignment.exercise_ids if name in known.entries)
        points = f"{round(got, 2):g} of {assignment.points:g} points"
    return Standing(
        title,
        points,
        rows,
        [_chapter(each, states[each.id], known.notebooks.folder) for each in assignments],
        f"{count} of {sum(map(len, states.values()))} exercises solved",
        _next(assignment, assignments, states, known),
        known.trouble,
        _due(assignment, known.notebooks.folder) if assignment is not None else "",
        _built(assignments, states) if assignment is not None and assignment.id == MACHINE else None,
    )


def _built(assignments: Sequence[Assignment], states: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """The exercises of all chapters that are solved, or were solved by code that has changed since."""
    return frozenset(
        name
        for each in assignments
        for name, state in zip(each.exercise_ids, states[each.id], strict=True)
        if state in (SOLVED, CHANGED)
    )


def _due(assignment: Assignment, folder: Path) -> str:
    """The due date in the notebook, and the time left; "" if it has none."""
    path = progress_store.notebook_of(folder, assignment)
    return deadlines.said(path, datetime.now(timezone.utc).replace(tzinfo=None)) if path else ""


def _notebook(earned: Mapping[str, tuple[float, float]], namespace: Mapping[str, Any]) -> Assignment | None:
    """The assignment with most checked exercises, else with most defined names, else that of this folder; or None."""

    def known(assignment: Assignment) -> tuple[int, int, bool]:
        ids = assignment.exercise_ids
        defined = sum(any(_is_own(name, namespace) for name in _names(each)) for each in ids)
        return sum(each in earned for each in ids), defined, assignment.id == Path.cwd().name

    best = max(catalogue.assignments(), key=known)
    return best if any(known(best)) else None


def _is_own(name: str, namespace: Mapping[str, Any]) -> bool:
    """Whether it is defined here, and not imported: chapter 05 imports the softmax of chapter 04."""
    return name in namespace and getattr(namespace[name], "__module__", "") == namespace.get("__name__")


def _names(exercise_id: str) -> tuple[str, str]:
    """The names of an exercise's functions or classes, without reading its entry."""
    return exercise_id.replace("-", "_"), exercise_id.title().replace("-", "")


def _title(assignment: Assignment) -> str:
    number = assignment.id[:2] if assignment.id[:2].isdigit() else ""
    return f"{number} {chapter_title(number) or assignment.notebook.replace('_', ' ').capitalize()}".strip()


def _exercise(exercise: Exercise, known: Known, assignment: Assignment) -> Row:
    state, entry = known.state(assignment, exercise.id), known.entries.get(exercise.id)
    if entry is None:
        return Row(state, exercise.number, exercise.id, f"0 of {exercise.points:g}, not checked yet")
    later = exercise.points - entry.of
    more = f", {later:g} more when it is graded" if later > 0 else ""
    changed = ", by code that has changed since: check it again" if state == CHANGED else ""
    said = f"{round(entry.points, 2):g} of {entry.of:g}{more}{changed}"
    return Row(state, exercise.number, exercise.id, said, share=entry.points / entry.of if entry.of else 0.0)


def _chapter(assignment: Assignment, states: Sequence[str], folder: Path) -> Row:
    solved = states.count(SOLVED)
    state = SOLVED if solved == len(states) else UNTOUCHED if set(states) == {UNTOUCHED} else BEGUN
    number, _, name = _title(assignment).partition(" ")
    return Row(state, number, name, f"{solved} of {len(states)}", _link(assignment, folder), solved / len(states))


def _link(assignment: Assignment, folder: Path) -> str:
    """The relative path of its notebook; "" if it is not here."""
    path = progress_store.notebook_of(folder, assignment)
    return Path(os.path.relpath(path)).as_posix() if path else ""


def _next(
    assignment: Assignment | None, assignments: Sequence[Assignment], states: Mapping[str, Sequence[str]], known: Known
) -> str:
    """The first exercise of this notebook that is not solved, else the first notebook that is not."""
    if assignment is not None:
        for exercise, state in zip(assignment.exercises, states[assignment.id], strict=True):
            if state != SOLVED:
                return f"Next: {exercise.number} {exercise.id}."
    done = ""
    if assignment is not None and any(known.entries[each.id].of < each.points for each in assignment.exercises):
        done = "Hidden checks decide the rest when the notebook is graded. "
    left = [each for each in assignments if set(states[each.id]) != {SOLVED}]
    later = assignments[assignments.index(assignment) :] if assignment in assignments else assignments
    following = next((each for each in later if each in left), left[0] if left else None)
    return f"{done}{f'Next: the notebook {_title(following)}.' if following else ALL}"


# --- how it looks ----------------------------------------------------------------------------------------------------


def _as_text(found: Standing) -> str:
    lines = [f"{found.title}: {found.points}", *_lines(found.exercises)] if found.title else []
    lines[1:1] = [f"  {found.due}"] if found.due else []
    lines += [f"The course: {found.solved}", *_lines(found.chapters)]
    lines += [f"Your machine: {_machine_said(found.built)}"] if found.built is not None else []
    lines += [found.next]
    return "\n".join([*lines, *([found.trouble] if found.trouble else [])])


def _lines(rows: Sequence[Row]) -> list[str]:
    width = max(len(row.name) for row in rows)
    digits = max(len(row.number) for row in rows)
    return [f"  {SIGNS[row.state]} {row.number:<{digits}}  {row.name:<{width}}  {row.said}" for row in rows]


def _as_html(found: Standing) -> str:
    blocks = []
    if found.title:
        blocks += [_heading(found.title, found.points)]
        blocks += [f"<p style='margin:0 0 .3em;'>{html.escape(found.due)}</p>"] if found.due else []
        blocks += [_table(found.exercises)]
    blocks += [_heading("The course", found.solved), _table(found.chapters, bars=True)]
    if found.built is not None:
        blocks += [_heading("Your machine", _machine_said(found.built)), _machine(found)]
    blocks += [f"<p style='margin:.5em 0 0;'><strong>{html.escape(found.next)}</strong></p>"]
    blocks += [f"<p style='margin:.3em 0 0;'>{html.escape(found.trouble)}</p>"] if found.trouble else []
    return f'<div style="{render.BOX % render.EDGE}">{"".join(blocks)}</div>'


def _machine_said(built: frozenset[str]) -> str:
    from transformer_ref.visualization import machine

    return f"{len(machine.solved_parts(built))} of {len(machine.PARTS)} parts"


def _machine(found: Standing) -> str:
    """The figure of the whole model; ticked parts are the learner's own, and boxes link to notebooks."""
    from transformer_ref.visualization import machine  # here: no other notebook draws it

    links = {row.number: row.link for row in found.chapters}
    figure = machine.machine(lambda key: links.get(machine.PARTS[key].chapter) or "#", found.built or ())
    return figure._repr_html_()


def _heading(title: str, said: str) -> str:
    style = "display:flex;flex-wrap:wrap;gap:0 1.5em;justify-content:space-between;margin:.4em 0 .2em;"
    return f'<div style="{style}"><strong>{html.escape(title)}</strong><span>{html.escape(said)}</span></div>'


def _table(rows: Sequence[Row], bars: bool = False) -> str:
    style = "border-collapse:collapse;border:0;font-size:1em;color:inherit;width:100%;margin:0;table-layout:auto;"
    return f'<table style="{style}">{"".join(_table_row(row, bars) for row in rows)}</table>'


def _table_row(row: Row, bars: bool) -> str:
    cell = "text-align:left;padding:.1em .6em .1em 0;border:0;background:none;vertical-align:middle;"
    name = html.escape(row.name)
    if row.link:
        name = f'<a href="{html.escape(row.link)}" style="{render.LINK}">{name}</a>'
    bar = f'<td style="{cell}width:30%;">{render.bar(row.share)}</td>' if bars else ""
    sign = f'<span role="img" aria-label="{row.state}">{SIGNS[row.state].strip()}</span>'
    return (
        f'<tr style="background:none;"><td style="{cell}width:1.2em;font-weight:700;">{sign}</td>'
        f'<td style="{cell}">{html.escape(row.number)}</td><th scope="row" style="{cell}{PLAIN}">{name}</th>{bar}'
        f'<td style="{cell}white-space:normal;">{html.escape(row.said)}</td></tr>'
    )
