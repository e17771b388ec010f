"""A picture pasted into a text cell: it is kept, within bounds, and one that is missing costs nobody the page."""

import base64
import json

import nbformat
import pytest

from autograder import catalogue, course
from autograder.intake import attachments, decode, rebuild
from autograder.prepare.sample_class import ROOT
from autograder.reports import sanitize

PICTURE = base64.b64encode(b"\x89PNG\r\n" + bytes(40)).decode()


def handed_in(pictures, kind="own"):
    """The released notebook of chapter 12 with a picture in the report, or in an extra cell."""
    assignment = catalogue.find_assignment("12_capstone")
    released = nbformat.read(course.notebook_path(ROOT, "exercises", assignment), as_version=4)
    notebook = json.loads(nbformat.writes(released))
    text = "![what I saw](attachment:curve.png)"
    if kind == "own":
        cell = {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": text, "attachments": pictures}
        notebook["cells"].append(cell)
    else:
        report = assignment.by_hand[0].id
        (cell,) = [each for each in notebook["cells"] if each["metadata"].get("nbgrader", {}).get("grade_id") == report]
        cell |= {"source": text, "attachments": pictures}
    rebuilt = rebuild.rebuild(json.dumps(notebook).encode(), released)
    nbformat.validate(rebuilt.notebook)
    (found,) = [each for each in rebuilt.notebook.cells if each.source == text]
    return found, rebuilt.reasons


@pytest.mark.parametrize("kind", ["own", "report"])
def test_a_pasted_picture_reaches_the_person_who_grades(kind):
    cell, reasons = handed_in({"curve.png": {"image/png": PICTURE}}, kind)
    assert cell.attachments == {"curve.png": {"image/png": PICTURE}} and not reasons
    assert f'src="data:image/png;base64,{PICTURE}"' in shown(cell)


def shown(cell):
    return sanitize.markdown2html({"cell": cell}, cell["source"])


@pytest.mark.parametrize(
    "pictures",
    [
        None,
        5,
        {},
        {"curve.png": {}},
        {"curve.png": 7},
        {"curve.png": {"image/svg+xml": "PHN2Zz4="}},
        {"curve.png": {"text/html": "PHN2Zz4="}},
        {"curve.png": {"image/png": '" onload="alert(1)'}},
        {"curve.png": {"image/png": "A" * (attachments.MAX_PICTURE + 1)}},
        {"other.png": {"image/png": PICTURE}},
    ],
    ids=range(10),
)
def test_a_picture_that_is_missing_or_cannot_be_shown_is_said_to_be_missing(pictures):
    cell, _ = handed_in(pictures)
    html = shown(cell)
    assert "(the picture curve.png is missing)" in html and "<img" not in html
    unrepaired = {"cell_type": "markdown", "source": cell.source, "attachments": pictures}  # by plain nbgrader
    assert "is missing)" in shown(unrepaired)


def test_of_too_many_pictures_the_first_are_kept_and_the_others_named(monkeypatch):
    monkeypatch.setattr(attachments, "MAX_PICTURES", 3000)
    many = {f"{number}.png": {"image/png": "A" * 700} for number in range(6)}
    cell, reasons = handed_in({**many, "curve.png": {"image/png": PICTURE}})
    assert list(cell.attachments) == ["0.png", "1.png", "2.png", "3.png", "curve.png"]
    assert "left out: `4.png`, `5.png`" in reasons[-1]


@pytest.mark.parametrize("name", ["%3Cscript%3E.png", "a%22b.png", "ü ö.png"])
def test_the_name_of_a_missing_picture_is_letters(name):
    html = sanitize.markdown2html({"cell": {}}, f"![x](<attachment:{name}>)")
    assert "<script" not in html and "is missing)" in html


def test_a_script_whose_first_letter_shares_a_byte_with_the_mark_keeps_it():
    for letter in ("ﬁ", "ﻼ", "｡"):  # their first byte is EF, as the mark's
        assert decode.text_of("\ufeff".encode() + letter.encode()) == (letter, True)
