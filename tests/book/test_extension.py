"""What book/extension adds to a page: times, numbers of formulas, names of folds, references, predictions."""

import importlib
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from autograder import catalogue

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = re.findall(r"- file: (\d\d_\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)


@pytest.fixture(scope="module")
def reading_time():
    sys.path.append(str(ROOT / "book" / "extension"))
    import reading_time

    return reading_time


def test_words_code_and_figures_take_time_and_folded_code_takes_none(reading_time):
    page = "---\nkernelspec: x\n---\n\n(label)=\n# A title\n\n:::{note} Four words more here\nand $x$ too\n:::\n"
    assert reading_time.contents(page) == (2 + 4 + 3, 0, 0)
    cell = "```{code-cell} python\n%sprint(1)\n\nprint(2)\n```\n"
    assert reading_time.contents(cell % "") == (0, 2, 0)
    assert reading_time.contents(cell % ":tags: [hide-cell]\n") == (0, 0, 0)
    assert reading_time.contents(cell % ":tags: [hide-input]\n") == (0, 0, 1)
    assert reading_time.contents("$$\nx\n$$ (eq-x)\n")[2] == 1
    assert reading_time.minutes_to_read("word " * reading_time.WORDS * 5) == 5
    assert reading_time.minutes_to_read("word " * (reading_time.WORDS * 5 + 1)) == 10


@every_chapter
def test_a_chapter_s_time_is_that_of_its_words_and_of_its_exercises(book, reading_time, chapter):
    said = " ".join(book.soup(chapter).select_one(".chapter-question + .chapter-time").get_text().split())
    reading, solving, points = map(
        int,
        re.search(
            r"(\d+) minutes to read(?: \(\d+ with the asides\))?, (\d+) for \w+ exercises \((\d+)", said
        ).groups(),
    )
    assignment = catalogue.find_assignment(chapter)
    exercises = (*assignment.exercises, *assignment.by_hand)
    assert (solving, points) == (sum(e.minutes for e in exercises), sum(e.points for e in exercises))
    shown = BeautifulSoup(str(book.soup(chapter).select_one("article")), "html.parser")
    for node in shown.select(".cell, script, .math, .widget, details.aside"):
        node.decompose()
    at_least = len(shown.get_text().split()) / 250  # minutes for a fast reader, who skips all code
    assert at_least < reading < 7 * at_least


@every_chapter
def test_formulas_are_numbered_within_their_chapter(book, chapter):
    number = int(chapter[:2])
    shown = [node.get_text().rstrip("#") for node in book.soup(chapter).select(".eqno")]
    assert shown == [f"({number}.{place})" for place in range(1, len(shown) + 1)]


@every_chapter
def test_a_reference_to_a_formula_names_it_and_leads_to_it(book, chapter):
    page = book.soup(chapter)
    for link in page.select("a.reference.internal[href*='#equation-']"):
        (target,) = page.select(f"[id='{link['href'].split('#')[1]}']")
        number = target.select_one(".eqno").get_text().rstrip("#").strip("()")
        assert link.get_text() == f"Formula {number}"


def test_a_fold_says_what_it_hides_and_a_screen_reader_hears_the_same(book):
    for name in book.pages():
        for summary in book.soup(name).select("summary"):
            assert not summary.get("aria-label")
            assert summary.get_text(strip=True) and "code cell" not in summary.get_text()


def test_references_stand_in_the_order_of_their_authors_under_the_names_they_are_cited_by(book):
    page = book.soup("references")
    listed = {node["id"]: node.select_one(".label").get_text().strip("[] \n") for node in page.select(".citation[id]")}
    assert len(listed) > 25 and len(set(listed.values())) == len(listed)
    plain = [
        unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().casefold() for label in listed.values()
    ]
    assert plain == sorted(plain)
    cited = 0
    for name in book.pages():
        for link in book.soup(name).select("a[href*='#id'][href*='references.html']"):
            label = listed[link["href"].split("#")[1]]
            assert label.endswith(" ".join(link.get_text().split())), f"{name}: {link.get_text()} leads to [{label}]"
            cited += 1
    assert cited > 40


def test_the_landing_page_and_the_road_name_the_same_chapters_and_questions(book):
    cards = {}
    for card in book.soup("index").select(".course-map li"):
        question = card.find("span").get_text(strip=True)
        title = card.get_text(" ", strip=True).partition(question)[0].strip()
        cards[int(card["data-number"])] = (title, question, bool(card.find("a")), card["class"][0])
    for stop in book.soup("00_start_here").select(".course-road li"):
        number, question = stop.find("b").get_text(), stop.find("span").get_text(strip=True)
        title = stop.get_text(" ", strip=True).removeprefix(number).removesuffix(question).strip()
        assert (title, question, bool(stop.find("a"))) == cards[int(number)][:3]
    published = {int(page[:2]) for page in CHAPTERS}
    assert {place for place, card in cards.items() if card[2]} == published
    assert {place for place, card in cards.items() if card[3] == "open"} == published


@pytest.fixture
def self_contained(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "extension"))
    return importlib.import_module("self_contained")


@pytest.fixture
def build(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "tools"))
    return importlib.import_module("build")


def test_pages_are_read_again_where_a_package_has_changed(build, tmp_path, monkeypatch):
    for package in build.PACKAGES:
        (tmp_path / package).mkdir(parents=True)
    (tmp_path / "transformer_ref" / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(build, "ROOT", tmp_path)
    before = build.made_of()
    assert build.made_of() == before
    (tmp_path / "transformer_ref" / "a.py").write_text("x = 2\n")
    assert build.made_of() != before


def test_pages_that_are_read_again_find_their_executed_cells(build, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(build, "EXECUTED", tmp_path / "book" / "_build" / "executed")
    kept = "book/_build/executed/digest/global.db"
    for name in (kept, "book/_build/html/index.html", "book/_build/.doctrees/a", "book/log", "book-plain/doctrees/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    build.forget_pages()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [kept]


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("transformer_ref/model/attention.py", True),
        ("book/figures/heads.py", True),
        ("transformer_ref/recorded/new.json", True),
        ("autograder/feedback/report.py", True),
        ("autograder/inside/wire.py", True),
        ("autograder/catalogue/ch00_start_here/shapes.py", True),
        ("autograder/catalogue/ch05_self_attention/attend.py", False),
        ("autograder/grade/run.py", False),
    ],
)
def test_cells_run_again_where_what_they_import_has_changed(self_contained, tmp_path, monkeypatch, file, runs):
    monkeypatch.setattr(self_contained, "ROOT", tmp_path)
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("x = 1\n")
    before = self_contained.code_digest()
    (tmp_path / file).write_text("x = 2\n")
    assert (self_contained.code_digest() != before) is runs


def test_every_file_of_ours_that_a_cell_imports_is_among_those_that_decide_whether_cells_run(self_contained):
    pages = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "book").rglob("*.md")))
    imports = set(re.findall(r"^(?:from|import) (?:autograder|book|transformer_ref)\b[^\n(]*$", pages, re.MULTILINE))
    assert len(imports) > 20
    shows = "for module in list(sys.modules.values()): print(getattr(module, '__file__', None) or '')"
    entries = "from autograder import catalogue; catalogue.find_assignment('00_start_here').exercises"
    program = "\n".join(["import sys", *sorted(imports), entries, shows])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    ours = [Path(line) for line in done.stdout.splitlines() if line]
    ours = {path for path in ours if path.is_relative_to(ROOT) and ".venv" not in path.parts}
    assert len(ours) > 100 and ours <= set(self_contained.code_files())


LONG = ("09_blocks", "10_training", "11_inference")
MARK = "```{aside-section}"
WITH_ASIDES = [
    path.stem for path in sorted((ROOT / "book").glob("[0-9]*.md")) if MARK in path.read_text(encoding="utf-8")
]
MOST_WORDS = 3_800  # of a chapter's core


def test_the_core_of_a_page_is_what_is_not_folded(reading_time):
    mark = "```{aside-section}\n```\n"
    page = f"# T\none\n\n(sec-a)=\n## A\n{mark}\n{'word ' * reading_time.WORDS * 2}\n\n(sec-b)=\n## B\ntwo\n\n"
    page += ":::{dropdown} Answer\nno\n:::\n"
    assert reading_time.contents(reading_time.core(page))[0] == len("T one B two".split())
    assert reading_time.minutes_of_aside(page, ["sec-a"]) == 3
    with pytest.raises(ValueError, match="label"):
        reading_time.minutes_of_aside(page, ["sec-c"])
    assert reading_time.minutes_of_core(page) == 5
    assert reading_time.minutes_of_core(page.replace(mark, "")) == reading_time.minutes_to_read(page)


@pytest.mark.parametrize("chapter", LONG)
def test_a_long_chapter_has_a_core_of_readable_length(reading_time, chapter):
    page = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8")
    assert reading_time.contents(reading_time.core(page))[0] <= MOST_WORDS


@pytest.mark.parametrize("chapter", WITH_ASIDES)
def test_an_aside_is_a_closed_fold_below_its_title_that_says_how_long_it_takes(book, chapter):
    page = book.soup(chapter)
    marked = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8").count(MARK)
    sections = page.select("section.aside-section")
    assert len(sections) == marked > (5 if chapter in LONG else 0)
    for section in sections:
        assert [child.name for child in section.find_all(True, recursive=False)][-2:] == ["h2", "details"]
        fold = section.find("details", recursive=False)
        assert not fold.has_attr("open") and len(fold.get_text().split()) > 30
        assert re.fullmatch(r"Aside, \d+ min: you may skip it", fold.summary.get_text())
    assert "with the asides" in page.select_one(".chapter-time").get_text()


def test_the_section_of_an_exercise_is_no_aside(reading_time):
    """A report may send to an aside, since the link opens it; what an exercise is about may not be skipped."""
    needed = {exercise.section.label for assignment in catalogue.ASSIGNMENTS for exercise in assignment.exercises}
    folded = {
        label
        for chapter in WITH_ASIDES
        for part in reading_time.SECTION.split((ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8"))
        if reading_time.ASIDE.search(part)
        for label in re.findall(r"^\(([\w-]+)\)=$", part, re.MULTILINE)
    }
    assert len(folded) > 30 and not needed & folded


@pytest.mark.browser
def test_a_link_to_an_aside_opens_it_and_so_does_printing(address, visit):
    chapter = visit(f"{address}/09_blocks.html").page
    closed = chapter.locator("details.aside:not([open])")
    count = closed.count()
    assert count > 5 and count == chapter.locator("details.aside").count()
    chapter.evaluate("location.hash = 'sec-09-depth'")
    expect(closed).to_have_count(count - 1)
    expect(chapter.locator(".aside-section:has(#sec-09-depth) > details.aside[open]")).to_have_count(1)
    chapter.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(closed).to_have_count(0)
