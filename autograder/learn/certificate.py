"""A certificate: `python -m autograder certificate` writes one page about a learner's own notebooks.

Every answer is judged now, as `assemble` judges it: by itself, with what it needs of its notebook. The page says what
passed and how well the learner's translator does, and holds the same as data, with a digest. `--verify PAGE --from
NOTEBOOKS` judges the notebooks again and says where the page differs: anyone can do that who has both.
"""

import argparse
import datetime
import hashlib
import html
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from autograder import catalogue, course
from autograder.assemble import gather, judges
from autograder.assemble.gather import Unreadable
from autograder.catalogue.exercise import Assignment
from autograder.catalogue.sections import chapter_title
from autograder.learn import print_page
from autograder.notebook.progress_store import digest

KEY = b"certificate"  # hidden inputs are drawn from it, so that the same notebooks earn the same points anywhere
OUTPUT = Path("certificate.html")
DATA = re.compile(r'<script type="application/json" id="record">(.*?)</script>', re.DOTALL)
SIGNS = {"passed": "✓", "partly": "◐", "wrong": "✗", "blank": "·", "elsewhere": "–"}
MEANINGS = {
    "passed": "passed",
    "partly": "some of its points",
    "wrong": "does not pass",
    "blank": "not written",
    "elsewhere": "not judged: it needs what its notebook trains",
}
PROVES = (
    "The digest belongs to the record in this page: if a number in it changes, so does the digest. It does not prove "
    "who wrote the notebooks. Anyone who has them can judge them again:"
)
WORDS = ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (2.0, 0.0))  # I closed the windows: the course's first attention map
STYLE = """
:root { color-scheme: light dark; --ink: #14181e; --soft: #52606d; --paper: #fff; --line: #cbd2d9; --blue: #0072b2 }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e8edf2; --soft: #a9b4c0; --paper: #14181e; --line: #3b4653; --blue: #56b4e9 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.45 system-ui, sans-serif }
header { display: flex; gap: 1.2rem; align-items: center; border-bottom: 2px solid var(--ink); padding-bottom: .8rem }
header svg { width: 4.5rem; height: 4.5rem; flex: none }
h1 { font: 1.9rem/1.2 Georgia, serif; margin: 0 }
h2 { font-size: 1.05rem; margin: 1.2rem 0 .4rem }
p { margin: .5rem 0 } .soft, caption { color: var(--soft); font-size: .9rem }
.score { font: 1.5rem/1.3 Georgia, serif }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
caption { text-align: left; padding-bottom: .3rem }
th, td { text-align: left; padding: .12rem .4rem; border-bottom: 1px solid var(--line); vertical-align: top }
thead th { font-size: .85rem; color: var(--soft) } tbody th { font-weight: 500 }
.number { text-align: right; white-space: nowrap }
.marks span { display: inline-block; width: 1.1em; text-align: center } .passed { color: var(--blue); font-weight: 700 }
code { font: .85rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
@media print { @page { size: A4; margin: 14mm } body { padding: 0; font-size: 10pt } th, td { padding: .05rem .3rem } }
"""


@dataclass(frozen=True)
class Row:
    """The result of an exercise. code: a digest of the answer without comments and layout, "" if there is none."""

    exercise: str
    number: str
    state: str
    points: float
    of: float
    code: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    gather.add_folder(parser)
    parser.add_argument("--name", default="", help="your name; it is printed and not verified")
    parser.add_argument(
        "--translator",
        type=Path,
        metavar="DIR",
        help="folder of a model trained by `transformer_ref train`, whose scores are added",
    )
    parser.add_argument("--model", type=Path, metavar="FILE", help="file with your code, if the translator runs it")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help=f"(default: {OUTPUT})")
    parser.add_argument(
        "--pdf", action="store_true", help="write a PDF beside the page, too; needs Chrome, Chromium or Edge"
    )
    parser.add_argument(
        "--verify", type=Path, metavar="PAGE", help="run the checks again and report where this page differs"
    )


def run(chosen: argparse.Namespace) -> int:
    """Judge and write the page, or verify one: 0 if it is written or agrees, 1 if it differs.

    Raises CourseError for a folder without notebooks, a page that is not a certificate, a translator without scores, a
    PDF without a browser.
    """
    printer = print_page.browser() if chosen.pdf else ""  # before minutes of judging
    record = read(chosen.verify) if chosen.verify else None
    _, found = gather.own_notebooks(chosen.folder)
    scores = _scores(chosen.translator, chosen.model) if chosen.translator else []
    rows = list(_judged(found))
    if record is not None:
        return _compare(record, rows, scores)
    now = {
        "course": "Attention by Hand",
        "version": version(),
        "name": " ".join(chosen.name.split()),
        "date": datetime.date.today().isoformat(),
        "exercises": [asdict(row) for row in rows],
        "translator": scores,
    }
    chosen.output.write_text(page(now), encoding="utf-8")
    passed = sum(row.state == "passed" for row in rows)
    print(f"{chosen.output}: {passed} of {len(rows)} exercises pass, digest {shown(digest_of(now))}")
    if printer:
        pdf = chosen.output.with_suffix(".pdf")
        print_page.to_pdf(chosen.output, pdf, printer)
        print(f"{pdf}: the same to print; only the page can be verified")
    return 0


def _judged(found: Mapping[str, list[Path]]) -> Iterator[Row]:
    """Judge every exercise of the course; prints a line for each chapter."""
    judge, apart = judges.chosen()
    if not apart:
        print("The cells run with all of your rights here, as in Jupyter: judge only notebooks that you trust.")
    with judge as trials:
        for assignment in catalogue.ASSIGNMENTS:
            rows = list(_of_chapter(trials, assignment, found))
            passed = sum(row.state == "passed" for row in rows)
            print(f"{assignment.id}: {passed} of {len(rows)} exercises pass", flush=True)
            yield from rows


def _of_chapter(trials: judges.Judge, assignment: Assignment, found: Mapping[str, list[Path]]) -> Iterator[Row]:
    paths = found.get(assignment.id)
    cells = list(course.code_cells(course.read_notebook(paths[0]))) if paths else []
    for exercise in assignment.exercises:
        named = dict(exercise=exercise.id, number=exercise.number, of=exercise.points)
        try:
            answer = gather.answer_of(cells, assignment, exercise)
        except Unreadable:
            yield Row(**named, state="wrong" if cells else "blank", points=0.0)
            continue
        source = "\n\n".join(statement.text for statement in answer.statements)
        if exercise.trained:
            yield Row(**named, state="elsewhere", points=0.0, code=digest(source))
            continue
        verdict = trials.judge(exercise, [], source, assignment.notebook, KEY)
        state = "passed" if verdict.passed else "blank" if verdict.blank else "partly" if verdict.points else "wrong"
        yield Row(**named, state=state, points=round(verdict.points, 2), code="" if verdict.blank else digest(source))


def _scores(checkpoint: Path, model: Path | None) -> list[str]:
    """The lines of `transformer_ref evaluate` with a translator's scores on the test set."""
    command = [sys.executable, "-m", "transformer_ref", "evaluate", "--checkpoint", str(checkpoint), "--split", "test"]
    print(f"{checkpoint}: translating the test set ...", flush=True)
    ran = subprocess.run([*command, *(["--model", str(model)] if model else [])], capture_output=True, text=True)
    if ran.returncode:
        raise course.CourseError(f"The translator was not scored. {ran.stderr.strip().splitlines()[-1]}")
    lines = [re.sub(r" in [\d.]+ s,", ",", " ".join(line.split())) for line in ran.stdout.splitlines()]
    return [line for line in lines if line and not line.startswith(("added to", "("))]


def version() -> str:
    """The version of the course that judges."""
    try:
        return version_of("attention-by-hand")
    except PackageNotFoundError:  # a folder that is not installed
        return "unknown"


def digest_of(record: Mapping[str, Any]) -> str:
    """The digest of a record: 64 characters that change with any number or name."""
    told = json.dumps(record, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(told.encode()).hexdigest()


def shown(digest: str) -> str:
    """The beginning of a digest in readable groups, long enough that no other record for it can be found."""
    return " ".join(digest[place : place + 4] for place in range(0, 32, 4))


def read(path: Path) -> dict[str, Any]:
    """The record in a page. Raises CourseError if there is none, or if the page's digest is not that of its record."""
    try:
        found = DATA.search(path.read_text(encoding="utf-8"))
        told = json.loads(found[1]) if found else {}
        record, said = told["record"], told["digest"]
        rows = [Row(**row) for row in record["exercises"]]
    except OSError as error:
        raise course.CourseError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise course.CourseError(f"{path} is not a certificate of this course.") from error
    if said != digest_of(record):
        raise course.CourseError(f"{path} was changed: its record has the digest {shown(digest_of(record))}.")
    return record | {"exercises": rows}


def _compare(record: Mapping[str, Any], rows: list[Row], scores: list[str]) -> int:
    """Print the differences between a certificate and the current results of its notebooks."""
    now, differences = {row.exercise: row for row in rows}, []
    for row in record["exercises"]:
        other = now.get(row.exercise)
        if other is None:
            differences.append(f"{row.number} {row.exercise}: the course here has no such exercise")
        elif (row.state, row.points) != (other.state, other.points):
            said = f"{row.points:g} points in the certificate, {other.points:g} now"
            differences.append(f"{row.number} {row.exercise}: {MEANINGS[row.state]}, {said}")
        elif row.code != other.code:
            differences.append(f"{row.number} {row.exercise}: the notebook has other code, which earns the same")
    if scores and scores != record["translator"]:
        then = "; ".join(record["translator"]) or "none"
        differences.append(f"translator: {then} in the certificate, {'; '.join(scores)} now")
    for line in differences:
        print(f"differs: {line}")
    if record["version"] != version():
        print(f"The certificate was made by version {record['version']}; this is {version()}.")
    if record["translator"] and not scores:
        print("The translator's scores were not computed again: --translator DIR names the model.")
    print(f"{len(differences)} differences." if differences else "The notebooks earn what the certificate says.")
    return int(bool(differences))


def page(record: Mapping[str, Any]) -> str:
    """The certificate as a self-contained page that prints on one sheet."""
    rows = [Row(**row) for row in record["exercises"]]
    held = json.dumps({"record": record, "digest": digest_of(record)}, ensure_ascii=True).replace("<", "\\u003c")
    name = html.escape(record["name"]) or "A learner"
    passed, earned = sum(row.state == "passed" for row in rows), sum(row.points for row in rows)
    day = datetime.date.fromisoformat(record["date"])
    chapters = "\n".join(_chapter(assignment, rows) for assignment in catalogue.ASSIGNMENTS)
    legend = ", ".join(f"{sign} {MEANINGS[state]}" for state, sign in SIGNS.items())
    scores = "".join(f"<li>{html.escape(line)}</li>" for line in record["translator"])
    translator = f"<h2>A translator made of this code</h2><ul>{scores}</ul>" if scores else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Certificate: Attention by Hand</title><style>{STYLE}</style></head><body>
<header>{_logo()}<div><h1>Attention by Hand</h1><p class="soft">Certificate, {day.day} {day:%B %Y}, made by version
{html.escape(record["version"])} of the course</p></div></header>
<main><p class="score"><b>{name}</b>: {passed} of the {len(rows)} exercises pass every check, with {earned:g} of
{sum(row.of for row in rows):g} points.</p>
<table><caption>Each mark is an exercise: {legend}.</caption>
<thead><tr><th scope="col">Chapter</th><th scope="col">Exercises</th><th scope="col" class="number">Passed</th>
<th scope="col" class="number">Points</th></tr></thead>
<tbody>{chapters}</tbody></table>
{translator}
<h2>Verify it</h2><p class="soft">{PROVES}</p>
<p><code>python -m autograder certificate --verify {html.escape(OUTPUT.name)} --from NOTEBOOKS</code></p>
<p>Digest <code>{shown(digest_of(record))}</code></p></main>
<script type="application/json" id="record">{held}</script></body></html>
"""


def _chapter(assignment: Assignment, rows: list[Row]) -> str:
    mine = [row for row in rows if row.exercise in assignment.exercise_ids]
    number = assignment.id[:2]
    title = html.escape(f"{number} {chapter_title(number) or assignment.notebook.replace('_', ' ')}")
    marks = "".join(
        f'<span class="{row.state}" role="img" aria-label="{row.number}: {MEANINGS[row.state]}" title="{row.number} '
        f'{row.exercise}: {MEANINGS[row.state]}">{SIGNS[row.state]}</span>'
        for row in mine
    )
    passed, points = sum(row.state == "passed" for row in mine), sum(row.points for row in mine)
    return (
        f'<tr><th scope="row">{title}</th><td class="marks">{marks}</td><td class="number">{passed} of {len(mine)}</td>'
        f'<td class="number">{points:g} of {sum(row.of for row in mine):g}</td></tr>'
    )


def _logo() -> str:
    """The logo: the course's first attention map, the computed weights of four words."""
    boxes = []
    for row, query in enumerate(WORDS):
        powers = [math.exp(sum(map(math.prod, zip(query, key, strict=True))) / math.sqrt(2)) for key in WORDS]
        for column, power in enumerate(powers):
            opacity = 0.15 + 0.85 * power / sum(powers)
            box = f'x="{column * 10 + 6}" y="{row * 10 + 6}" width="9" height="9" rx="2"'
            boxes.append(f'<rect {box} fill="#0072b2" fill-opacity="{opacity:.2f}"/>')
    sides = '<rect x="1" y="6" width="3" height="39" fill="#0072b2"/>'
    sides += '<rect x="6" y="1" width="39" height="3" fill="#e69f00"/>'
    return f'<svg viewBox="0 0 46 46" aria-hidden="true">{sides}{"".join(boxes)}</svg>'
