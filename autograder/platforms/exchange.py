"""Returns feedback through nbgrader's exchange: all students find their own page, and the teacher is told who gets
none.

nbgrader names a page after the notebook as *we* call it, and a student's nbgrader looks for one after the notebook as
*they* called it. So there is a page under each name that its student submitted. A student whose folder lacks the secret
of the exchange is named; nbgrader would end with an error, and everybody after them would get nothing.
"""

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash

SECRET, STAMP = "submission_secret.txt", "timestamp.txt"
MOST_NAMES = 50  # notebooks of one submission
MOST_OF_A_SECRET = 4_096  # letters
NO_PAGE = "no feedback page: nbgrader generate_feedback {}"
NO_SECRET = "no {} of the exchange came with the work, so nothing can be returned there"


def install() -> None:
    """Let `nbgrader release_feedback` use this module."""
    plain = ExchangeReleaseFeedback.copy_files
    if hasattr(plain, "__wrapped__"):
        return

    @functools.wraps(plain)
    def copy_files(exchange: ExchangeReleaseFeedback) -> None:
        places = exchange.coursedir
        without = dict(_without(places))
        before = places.student_id_exclude
        places.student_id_exclude = ",".join(filter(None, [before, *without]))
        try:
            plain(exchange)
        finally:
            places.student_id_exclude = before
        for student in _students(places):
            if student not in without:
                _under_their_names(places, student, Path(exchange.dest_path))
        for student, reason in without.items():
            exchange.log.error(f"{student} gets no feedback: {reason}")

    ExchangeReleaseFeedback.copy_files = copy_files


def _students(places: CourseDirectory) -> list[str]:
    """Everyone who handed in or has a page, among those who are chosen."""
    chosen, left_out = places.student_id or "*", set(places.student_id_exclude.split(","))
    found = set()
    for step in (places.submitted_directory, places.feedback_directory):
        folder = Path(places.format_path(step, chosen, places.assignment_id))
        found |= {path.parent.name for path in folder.parents[1].glob(f"{chosen}/{places.assignment_id}")}
    return sorted(found - left_out)


def _without(places: CourseDirectory) -> Iterator[tuple[str, str]]:
    """Students without a page, and why."""
    for student in _students(places):
        folder = Path(places.format_path(places.feedback_directory, student, places.assignment_id))
        if not any(folder.glob("*.html")):
            yield student, NO_PAGE.format(places.assignment_id)
            continue
        missing = [name for name in (SECRET, STAMP) if not (folder / name).is_file()]
        if missing:
            yield student, NO_SECRET.format(" and no ".join(missing))


def _under_their_names(places: CourseDirectory, student: str, outbound: Path) -> None:
    folder = Path(places.format_path(places.feedback_directory, student, places.assignment_id))
    pages = sorted(folder.glob("*.html"))
    handed_in = Path(places.format_path(places.submitted_directory, student, places.assignment_id))
    names = {path.stem for path in sorted(handed_in.glob("*.ipynb"))[:MOST_NAMES]} - {page.stem for page in pages}
    if len(pages) != 1:  # which of several is meant, a changed name does not say
        return
    secret = (folder / SECRET).read_text(encoding="utf-8", errors="replace")[:MOST_OF_A_SECRET]
    for name in names:
        to = outbound / f"{notebook_hash(secret=secret, notebook_id=name)}.html"
        partial = to.with_name(f"{to.stem}-tmp.html")
        shutil.copy(pages[0], partial)
        partial.replace(to)
