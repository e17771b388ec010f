"""What makes pages light: formulas and widgets without scripts, a theme without what no page uses; one-file books."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from docutils import nodes

from book.figures.frames import Choices, Frames, Slider

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def book_code():
    sys.path += [str(ROOT / "book" / "tools"), str(ROOT / "book" / "extension")]
    import mathml
    import one_file
    import publish
    import unused_scripts

    return unused_scripts, mathml, one_file, publish


def test_frames_are_drawn_for_every_setting_and_begin_at_the_one_named():
    drawn = []

    def draw(letter, number):
        drawn.append((letter, number))
        return f"{letter}{number}", f"<i>{letter}{number}</i>"

    controls = [Choices("letter", {"A": "a", "B": "b"}, start=1), Slider("n", [5, 6, 7], "{} m")]
    frames = Frames("Pairs", "W99z", controls, draw)
    assert drawn == [(letter, number) for letter in "ab" for number in (5, 6, 7)]
    shown = frames.to_html()
    assert '<output aria-live="polite">b5</output><div class="frame"><i>b5</i></div>' in shown
    assert shown.count("<i>") == 7 and 'aria-valuetext="5 m"' in shown and 'data-counts="2,3"' in shown


def test_a_widget_without_controls_is_refused():
    with pytest.raises(ValueError, match="controls: expected at least one"):
        Frames("Nothing", "W99z", [], lambda: ("", ""))


def test_a_formula_that_cannot_be_converted_is_a_warning_and_one_that_can_is_mathml(book_code, monkeypatch):
    mathml = book_code[1]
    said = []
    monkeypatch.setattr(mathml.log, "warning", lambda *words, **_: said.append(words))
    assert "<mfrac>" in mathml.mathml(nodes.math("", r"\frac{QK^T}{\sqrt{d_k}}"), display=True) and not said
    assert mathml.mathml(nodes.math("", r"\nosuchcommand{x}"), display=False) == r"\nosuchcommand{x}" and said


def test_a_rule_stays_where_all_that_it_requires_is_on_some_page(book_code):
    prune = book_code[3].prune
    words = {"card", "open"}
    assert prune(".card > a, .gone a { color: red; /* why */ }", words) == ".card > a{color: red;}\n"
    assert prune(".card:not(.gone).open::before { x: y }", words) != ""
    assert prune("@media print { .gone { a: b } .card { c: d } }", words) == "@media print{.card{c: d}\n}\n"
    assert prune("@media print { .gone { a: b } } #gone { a: b } .card .gone { a: b }", words) == ""
    assert prune("h1 { a: b } [data-theme=dark] { c: d }", words).count("{") == 2


def test_an_imported_sheet_stands_in_front_and_every_address_is_moved_once(book_code, tmp_path):
    (tmp_path / "styles").mkdir()
    (tmp_path / "basic.css").write_text("a { background: url(file.png) }")
    (tmp_path / "styles" / "theme.css").write_text('@import "../basic.css";\nb { background: url("x.png") }')
    joined = book_code[3].at_home(tmp_path / "styles" / "theme.css", tmp_path)
    assert "".join(joined.split()) == 'a{background:url(file.png)}b{background:url("styles/x.png")}'


def test_a_page_keeps_the_scripts_that_it_needs_and_runs_none_before_it_is_read(book_code):
    lighten = book_code[0].lighten
    scripts = "".join(f'<script src="_static/{name}"></script>' for name in ("clipboard.min.js", "doctools.js"))
    head = f'<head><meta name="viewport" content="a"/><meta name="viewport" content="b"/>{scripts}</head>'
    plain, code = lighten(head), lighten(f'{head}<div class="highlight">')
    assert "clipboard" not in plain and '<script defer src="_static/clipboard.min.js">' in code
    assert plain.count("viewport") == 1 and '<script defer src="_static/doctools.js">' in plain


def test_a_page_is_written_light_so_that_it_has_colors_without_scripts(book_code):
    lightened = book_code[0].lighten(
        '<html lang="en" data-content_root="./">\n<head><meta name="viewport" content="a" /></head></html>'
    )
    assert lightened.startswith('<html data-theme="light" lang="en"')
    assert book_code[0].lighten(lightened).count("data-theme") == 1


def test_the_zip_holds_the_site_and_every_exercise(book, book_code, tmp_path):
    whole = book_code[2].pack(book.site, ROOT / "exercises", tmp_path)
    with zipfile.ZipFile(whole) as packed:
        names = set(packed.namelist())
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<article>a</article>", encoding="utf-8")
    book_code[2].offer(whole, tmp_path / "site")
    assert 'href="attention-by-hand.zip"' in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    exercises = {path.relative_to(ROOT).as_posix() for path in (ROOT / "exercises").glob("[0-9]*/*.ipynb")}
    pages = {f"book/{page}.html" for page in book.pages()} | {"book/_static/site.css"}
    assert len(exercises) > 10
    assert {f"attention-by-hand/{name}" for name in exercises | pages} <= names


@pytest.mark.browser
def test_a_page_is_printed_behind_a_title_page_and_links_within_the_whole(book, book_code, browser, tmp_path):
    pages = ["12_capstone", "00_start_here"]
    whole = book_code[2].in_one_piece(book.site, pages)
    assert 'href="#00_start_here"' in whole and whole.count("<h1") == 3
    assert whole.count(' id="00_start_here"') == 1
    assert whole.count("font-display: block") == 3  # paper waits for what a screen does without
    fonts = re.findall(r'url\("(_static/vendor/serif/[^"]*)', whole)
    assert len(fonts) == 3 and all((book.site / font).is_file() for font in fonts)
    assert "How this picture is drawn" not in whole and "The picture as text" in whole
    code = "import sys; from pathlib import Path; from one_file import print_book; "
    code += "print_book(Path(sys.argv[1]), Path(sys.argv[2]), ['references'])"
    command = [sys.executable, "-c", code, str(book.site), str(tmp_path / "book.pdf")]
    subprocess.run(command, check=True, cwd=ROOT / "book" / "tools")  # Playwright refuses to start twice in one process
    assert (tmp_path / "book.pdf").read_bytes().startswith(b"%PDF-")
    assert not (book.site / "in-one-piece.html").exists()


def test_nothing_is_misspelled_that_is_often_misspelled():
    told = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "codespell_lib",
                "--ignore-words-list",
                "te,ot,fo,ue,nd,ans,doub,ser,toi,aske,vermillion",
            ),
            *("--ignore-regex", r"`[^`]*`|\$[^$]*\$"),
            *map(str, [*sorted((ROOT / "book").rglob("*.md")), *sorted(ROOT.glob("*.md"))]),
        ],
        capture_output=True,
        text=True,
    )
    assert told.stdout == ""
