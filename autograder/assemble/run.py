"""A learner's own code in one file: `python -m autograder assemble` gathers what passes into my_transformer.py.

Every answer is judged separately with what it needs, and once more in the file if other code runs with it there.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder import catalogue, course
from autograder.assemble import gather, judges, write
from autograder.assemble.gather import Gathered, Unreadable
from autograder.assemble.judges import Judge
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.feedback.messages import explanation
from autograder.judging.observation import Structure
from autograder.judging.verdict import Verdict
from transformer_ref.atomic_write import atomic_write
from transformer_ref.learner.mine import FILE

KEY = b"assemble"  # hidden inputs are drawn from it: nothing is graded here, and the same notebooks give the same file
LONGEST = 160  # letters of a reason
OF_ATTENTION = frozenset({"attention biases", "attention projections"})  # what a `Structure` says of parameters
NO_NOTEBOOK = "its notebook is not here"
BLANK = "not written yet"
TRANSLATOR = (  # the exercises whose answers a translator can be made of
    "build-vocab encode-decode bpe-train bpe-encode softmax split-heads merge-heads multi-head-attention sinusoidal-pe "
    "add-positions padding-mask causal-mask decoder-mask masked-attention layer-norm feed-forward encoder-layer "
    "decoder-layer transformer shift-right masked-ce smooth-targets noam-lr token-batches train-step greedy-decode "
    "sample beam-search decode-step corpus-bleu"
).split()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    gather.add_folder(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=f"what to write (default: {FILE} in the folder of your notebooks)"
    )
    parser.add_argument(
        "--fill",
        nargs="*",
        metavar="EXERCISE",
        help="use the course's answer where yours is missing or wrong, for these exercises, such as decoder-layer, or "
        "for all that a translator needs; the file says where, and shows it",
    )


def run(chosen: argparse.Namespace) -> int:
    """Gather the answers, write the file and print its contents; 0 if something was written, else 1.

    Raises CourseError for a folder without notebooks, or an existing file that this command has not written.
    """
    folder, found = gather.own_notebooks(chosen.folder)
    output, assignments = chosen.output or folder / FILE, catalogue.ASSIGNMENTS
    filled = _asked_to_fill(chosen.fill, assignments)
    _refuse_foreign(output)
    judge, apart = judges.chosen()
    if not apart:
        print("The cells run with all of your rights here, as in Jupyter: assemble only notebooks that you wrote.")
    count = sum(len(assignment.exercise_ids) for assignment in assignments if assignment.id in found)
    print(f"Judging up to {count} answers from the notebooks in {folder.resolve()} ...", file=sys.stderr)
    with judge as trials:
        entries = list(_shown(_entries(trials, assignments, found, filled), count))
        text = _settle(trials, entries, sum(len(assignment.exercise_ids) for assignment in assignments))
    _report(assignments, found, entries)
    kept = [entry for entry in entries if entry.answer]
    if not any(entry.is_own for entry in kept):
        print("Nothing passes yet, so nothing was written.")
        if all(entry.reason == BLANK for entry in entries if entry.assignment.id in found):
            print(
                f"No answer is written in {folder.resolve()}. Are your notebooks elsewhere? `--from FOLDER` names "
                "their folder; `python -m autograder learn` makes one in your home folder."
            )
        return 1
    for exercise, names in text.renamed.items():
        for old, new in names.items():
            print(f"{exercise}: its {old} is called {new} in the file, where {old} is something else already.")
    atomic_write(output, text.text)
    own = sum(entry.is_own for entry in kept)
    count = f"{own} exercises" + (f" and {len(kept) - own} of the course's answers" if own < len(kept) else "")
    print(f"{output}: {count}. In Python: from {output.stem} import {kept[-1].exercise.names[0]}")
    if any("Transformer" in entry.exercise.names for entry in kept):
        print(f"next: python -m transformer_ref train --model {output} --output build/mine")
    return 0


@dataclass(eq=False)
class ExerciseResult:
    """The result for an exercise. answer: None if it is not in the file, for the `reason`.

    cells: the code cells of its notebook; fill: whether the course's answer may replace it. doubt: why it fails
    separately, if the cause may be an answer that it uses, which the course's replaces. attention_unread: it was
    judged only separately, since chapter 09 cannot load weights into the learner's attention, which it uses.
    """

    assignment: Assignment
    exercise: Exercise
    cells: Sequence[tuple[str, str, bool]] = ()
    fill: bool = False
    answer: Gathered | None = None
    reason: str = ""
    doubt: str = ""
    attention_unread: bool = False

    @property
    def is_own(self) -> bool:
        return self.answer is not None and not self.answer.instead_of

    def refuse(self, reason: str) -> None:
        """Take the answer out, and put the course's in if that is allowed; the course's own is not tried twice."""
        again = self.answer is not None and bool(self.answer.instead_of)
        self.answer, self.reason = None, reason
        if self.fill and not again:
            self.answer = gather.of_course(self.cells, self.assignment, self.exercise, reason)


def _shown(entries: Iterator[ExerciseResult], count: int) -> Iterator[ExerciseResult]:
    """Yield the same entries, and show in a terminal how many have been judged."""
    for done, entry in enumerate(entries, 1):
        if sys.stderr.isatty():
            end = "\n" if done == count else ""
            print(f"\r{done} of {count}, {entry.exercise.number}   ", end=end, file=sys.stderr, flush=True)
        yield entry


def _asked_to_fill(asked: Sequence[str] | None, assignments: Sequence[Assignment]) -> set[str]:
    """Ids of the exercises that the course's answers may fill. Raises CourseError for one that does not exist."""
    known = {name for assignment in assignments for name in assignment.exercise_ids}
    if unknown := sorted(set(asked or ()) - known):
        raise course.CourseError(
            f"fill: expected ids of exercises, such as {TRANSLATOR[0]}, got {', '.join(unknown)}; without any it is "
            "all that a translator needs."
        )
    return set() if asked is None else set(asked or TRANSLATOR) & known


def _entries(
    trials: Judge, assignments: Sequence[Assignment], found: Mapping[str, list[Path]], filled: set[str]
) -> Iterator[ExerciseResult]:
    """Each exercise of the notebooks found, judged separately; of the others, those to be filled."""
    for assignment in assignments:
        if assignment.id not in found:
            for name in assignment.exercise_ids:
                if name in filled:
                    yield (entry := ExerciseResult(assignment, assignment.load(name), fill=True))
                    entry.refuse(NO_NOTEBOOK)
            continue
        cells = list(course.code_cells(course.read_notebook(found[assignment.id][0])))
        for exercise in assignment.exercises:
            entry = ExerciseResult(assignment, exercise, cells, exercise.id in filled)
            try:
                entry.answer = gather.answer_of(cells, assignment, exercise)
                verdict = _judged(trials, exercise, "\n\n".join(each.text for each in entry.answer.statements))
                if not verdict.passed and entry.answer.uses & filled:
                    entry.doubt = _reason(verdict)
                elif not verdict.passed:
                    entry.refuse(_reason(verdict))
            except Unreadable as error:
                entry.refuse(str(error))
            yield entry


def _settle(trials: Judge, entries: Sequence[ExerciseResult], of: int) -> write.Written:
    """The file of all answers that also pass within it; the others are refused."""
    modules = sorted({name for assignment in catalogue.ASSIGNMENTS for name in assignment.visible_modules})
    while True:
        in_file = {entry.exercise.id for entry in entries if entry.answer}
        lacking = {entry: sorted(entry.answer.uses - in_file) for entry in entries if entry.answer}
        if any(lacking.values()):
            for entry, names in lacking.items():
                if names:
                    entry.refuse(f"it uses {', '.join(names)}, which is not in the file")
            continue
        kept = [entry for entry in entries if entry.answer]
        text = write.as_file([entry.answer for entry in kept], of)
        refused = set()
        for entry in _to_ask_again(kept, text):
            if entry.answer.uses & refused:
                continue  # no wonder; the next round says so
            verdict = _judged(trials, entry.exercise, text.text, modules)
            entry.attention_unread = not entry.doubt and only_attention_unread(verdict)
            if not (verdict.passed or entry.attention_unread):
                alone = f"it passes by itself, but not together with your other code: {_reason(verdict)}"
                entry.refuse(entry.doubt or alone)
                refused.add(entry.exercise.id)
        if not refused:
            return text


def _to_ask_again(kept: Sequence[ExerciseResult], text: write.Written) -> list[ExerciseResult]:
    """The entries that run other code in the file than they did separately, and those that depend on them; and one that
    shows that the whole file runs."""
    names = {name for entry in kept for name in entry.exercise.names}
    other = {entry.exercise.id for entry in kept if entry.answer.given & names} | set(text.renamed)
    other |= {entry.exercise.id for entry in kept if entry.doubt and entry.is_own}
    for entry in kept:  # in the order of the notebook, so what is used is before who uses it
        if entry.answer.uses & other:
            other.add(entry.exercise.id)
    return [entry for entry in kept if entry.exercise.id in other or entry is kept[-1]]


def _judged(trials: Judge, exercise: Exercise, source: str, modules: Sequence[str] = ()) -> Verdict:
    """The verdict on an answer. modules: those that the file of all chapters may import; a separate answer may import
    those of its chapter."""
    assignment = catalogue.assignment_of(exercise)
    if modules:
        assignment = replace(assignment, id="assemble", visible_modules=tuple(modules))
    return trials.judge(exercise, [], source, FILE, KEY, assignment)


def only_attention_unread(verdict: Verdict) -> bool:
    """Whether an answer could not be judged because chapter 09 cannot set the parameters of the attention that it uses.

    06.3 also accepts an attention without biases, or with all biases in one parameter. Then the answer has passed with
    the package's attention, and the attention has passed separately.
    """
    seen = [getattr(outcome.got, "result", None) for outcome in verdict.outcomes]
    troubles = [{each.what for each in one.troubles} for one in seen if isinstance(one, Structure)]
    return bool(seen) and len(troubles) == len(seen) and all(each and each <= OF_ATTENTION for each in troubles)


def _reason(verdict: Verdict) -> str:
    if verdict.exercise.trained:
        return "it needs what its notebook has trained, so it stays there"
    if verdict.blank:
        return BLANK
    said = " ".join(explanation(verdict).split())
    return said if len(said) <= LONGEST else f"{said[:LONGEST].rsplit(' ', 1)[0]} ..."


def _refuse_foreign(output: Path) -> None:
    try:
        foreign = write.WRITTEN not in output.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        foreign = True
    if foreign:
        raise course.CourseError(f"{output} was not written by this command. `--output FILE` names another file.")


def _report(assignments: Sequence[Assignment], found: dict[str, list[Path]], entries: Sequence[ExerciseResult]) -> None:
    """Print a line for each exercise: whether it is in the file, or why not, and where it uses the package's code."""
    in_file = {name for entry in entries if entry.answer for name in entry.exercise.names}
    for assignment in assignments:
        path, *others = found.get(assignment.id, ["no notebook here"])
        print(f"{assignment.id}: {path}" + (f" (not {', '.join(map(str, others))})" if others else ""))
        for entry in entries:
            if entry.assignment is not assignment:
                continue
            name = f"{entry.exercise.number} {', '.join(entry.exercise.names)}"
            if not entry.is_own and entry.answer:
                print(f"  ○ {name}: the course's answer, since yours is not in ({entry.reason})")
                continue
            if entry.answer is None:
                print(f"  {'·' if entry.reason == BLANK else '✗'} {name}: {entry.reason}")
                continue
            given = sorted(entry.answer.given)
            said = [f"{each}: {'yours' if each in in_file else 'the package’s'}" for each in given]
            said += (
                ["judged with the package’s attention, since the check cannot read yours"]
                if entry.attention_unread
                else []
            )
            print(f"  ✓ {name}" + (f" (with {', '.join(said)})" if said else ""))
