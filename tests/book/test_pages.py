"""What the built pages say, read without a browser."""

import copy
import hashlib
import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from autograder import catalogue
from transformer_ref.recording import recording

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "book" / "assets" / "vendor"
CHAPTER = "05_self_attention"
CHAPTERS = re.findall(r"- file: (\d\d_\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)
COMPUTED = ["ladder", "today"]  # pages that are not chapters and compute their numbers

SECTIONS = {
    "sec-05-project": "Queries, keys and values",
    "sec-05-why-divide": "Scaled dot products: why divide?",
    "sec-05-which-axis": "Softmax over the keys: who shares out what?",
    "sec-05-mix": "The weighted average: mixing the values",
    "sec-05-parameters": "Learned projections: where is the learning?",
    "sec-05-lookup": "Attention as a soft dictionary",
    "sec-05-order": "Permutations: does order matter?",
    "sec-05-shapes": "The shapes of attention",
    "sec-05-stable": "Attention with large scores",
    "sec-05-exercises": "Exercises",
}

# The numbers the chapter is built on, as they must come out of its own cells.
WORKED_EXAMPLES = {
    "(a) house": ["0.552", "0.272", "0.088", "(0.31, 1.96)"],
    "(a) technology": ["0.437", "0.215", "(1.60, 0.28)"],
    "(b) row I": [r"I +0\.221 +0\.221 +0\.109 +0\.449"],
    "(b) row closed": [r"closed +0\.165 +0\.335 +0\.165 +0\.335"],
    "(b) row the": [r"the +0\.165 +0\.335 +0\.335 +0\.165"],
    "(b) row windows": [r"windows +0\.157 +0\.157 +0\.038 +0\.647"],
    "(b) outputs I, closed": [r"I +1\.340 +0\.330", r"closed +1\.170 +0\.500"],
    "(b) outputs the, windows": [r"the +0\.830 +0\.670", r"windows +1\.609 +0\.196"],
    "(c) keys exchanged": [r"windows +0\.098 +0\.402 +0\.402 +0\.098"],
    "(d) Thinking, Machines": ["0.8808 0.1192", "1.0000 0.0000", "0.5622 0.4378", "nan"],
    "(e) the slide's error": ["2e-36", "9e-27", "1e-10", "0.94607", "33.0", "33.5", "26.3"],
}

# Numbers in the prose that no cell of the page prints, and why.
NOT_PRINTED = {
    "05_self_attention": {"1.01": "a sum that would be a bug", "0.17": "what a learner sees: 1 divided by 6"},
    "06_multi_head_attention": {"1.099": "the natural logarithm of 3"},
    "12_capstone": {
        "35.99": "measured, with a link to where",
        "38.08": "measured, with a link to where",
        "0.02": "a loss that somebody might quote",
        # held against their recording by the chapter's test
        **{f"{seen['loss']:.2f}": "a broken part's loss" for seen in recording("broken_parts")["parts"].values()},
    },
    "11_inference": dict.fromkeys(
        ("27.52", "28.33", "28.85", "29.02"), "quoted with its source: one checkpoint, four ways to count"
    ),
}


TO_BE_JUDGED = {"01": 5, "02": 6, "05": 7, "06": 6, "07": 5, "08": 5, "09": 7, "10": 5, "11": 5, "13": 5}  # else 4


def outputs(page: BeautifulSoup) -> str:
    """Return everything the page's cells printed or drew."""
    printed = [node.get_text() for node in page.select(".cell_output")]
    described = [node["aria-label"] for node in page.select(".cell_output svg[aria-label]")]
    return "\n".join(printed + described)


def numbers_in(text: str) -> list[str]:
    """Return the decimal numbers of a text as they are written."""
    return re.findall(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?|\d+e-\d+", text)


def test_the_build_of_the_book_gave_no_warning(book):
    warnings = [line for line in book.log.splitlines() if re.search("warning:", line, re.IGNORECASE)]
    assert not warnings


@pytest.mark.parametrize(("label", "title"), SECTIONS.items())
def test_every_section_a_check_links_to_exists_under_its_title(book, label, title):
    assert book.section(CHAPTER, label).find("h2").get_text().rstrip("#") == title


@every_chapter
def test_every_section_the_catalogue_sends_a_learner_to_exists(book, chapter):
    exercises = catalogue.find_assignment(chapter).exercises
    pages = {assignment.id[:2]: assignment.id for assignment in catalogue.ASSIGNMENTS}
    for linked in {e.section for e in exercises} | {m.reread for e in exercises for m in e.mistakes}:
        heading = book.section(pages[linked.chapter], linked.label).find(["h2", "h3"])
        title = heading.get_text().rstrip("#").strip().replace("’", "'")
        assert linked.title == title and linked.chapter <= chapter[:2]


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_numbers_come_out_of_the_cells(book, example):
    printed = outputs(book.soup(CHAPTER))
    for expected in WORKED_EXAMPLES[example]:
        pattern = expected if "\\" in expected else re.escape(expected)
        assert re.search(pattern, printed), f"{example}: {expected} is nowhere in the outputs"


@pytest.mark.parametrize("chapter", [*CHAPTERS, *COMPUTED])
def test_every_decimal_in_the_prose_was_computed_or_quoted_on_the_page(book, chapter):
    page = copy.copy(book.soup(chapter).select_one("article"))
    shown = outputs(page) + "\n".join(cell.get_text() for cell in page.select(".cell_input"))
    known = [float(number) for number in numbers_in(shown)]
    for node in page.select(".cell, table.docutils, .widget, script, .references"):
        node.decompose()
    for formula in page.select("math"):  # 0.9 to the power of 49 is not 0.949
        formula.replace_with(formula.get_text(" "))
    unknown = []
    for number in numbers_in(page.get_text()):
        digits = len(number.split(".")[1])
        computed = any(round(value, digits) == float(number) for value in known)
        if digits >= 2 and number not in NOT_PRINTED.get(chapter, {}) and not computed:
            unknown.append(number)
    assert not unknown


def test_every_picture_says_in_words_what_it_shows(book):
    for name in book.pages():
        page = book.soup(name)
        for image in page.select("article img, article svg[role=img]"):
            words = image.get("alt") or image.get("aria-label") or ""
            assert len(words.split()) >= 4 and not re.search(r"[0-9a-f]{16}", words), f"{name}: {words!r}"


def test_frames_stay_under_a_megabyte(book):
    for name in book.pages():
        frames = book.soup(name).select(".frames")
        assert sum(len(str(widget).encode()) for widget in frames) < 1_000_000, name


def _from_the_theme(book):
    """All pages except 404.html, which is shown at any address and therefore self-contained."""
    return [path for path in book.site.rglob("*.html") if path.name != "404.html"]


def test_every_link_within_the_book_leads_to_a_page_and_a_place_on_it(book):
    places = {}
    for path in _from_the_theme(book):
        page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        ids = {node.get("id") for node in page.select("[id]")} | {node.get("name") for node in page.select("a[name]")}
        places[path] = ids, [link["href"] for link in page.select("a[href]")]
    dead = []
    for path, (_, links) in places.items():
        for link in links:
            address, _, place = link.partition("#")
            if re.match(r"[a-z]+:", address) or link == "#":
                continue
            target = (path.parent / address).resolve() if address else path
            known = places.get(target, (set(), []))[0]
            if not target.is_file() or (place and target in places and place not in known):
                dead.append((path.name, link))
    assert not dead


def test_a_page_loads_no_script_before_it_is_read_and_no_file_that_is_not_there(book):
    for path in _from_the_theme(book):
        page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        assert all(script.has_attr("defer") or script.has_attr("async") for script in page.select("script[src]")), path
        assert len(page.select("meta[name=viewport]")) == 1, path
        assert [link["href"].partition("?")[0].rpartition("/")[2] for link in page.select("link[rel=stylesheet]")] == [
            "site.css"
        ]
        for node in page.select("script[src], link[rel=stylesheet], img[src]"):
            address = (node.get("src") or node.get("href")).partition("?")[0]
            assert address.startswith("data:") or (path.parent / address).is_file(), f"{path.name}: {address}"


def test_every_icon_of_the_theme_is_drawn(book):
    drawn = (ROOT / "book" / "assets" / "parts.css").read_text(encoding="utf-8")
    used = {name for page in book.pages() for name in re.findall(r"\bfa-[a-z-]+", str(book.soup(page)))}
    assert len(used) > 5
    assert {name for name in used - {"fa-solid", "fa-lg"} if f".{name}" not in drawn} == set()


def test_nothing_is_uploaded_that_no_page_loads(book):
    uploaded = [path.relative_to(book.site).as_posix() for path in book.site.rglob("*")]
    assert not [path for path in uploaded if re.search(r"\.map$|/locales/|fontawesome|mathjax|embed\.js", path)]


def test_no_page_loads_anything_from_another_server(book):
    for path in sorted(book.site.rglob("*.html")):
        page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        loading = page.select("script[src], link[href], img[src], iframe[src]")
        loaded = [node.get("src") or node.get("href") for node in loading]
        assert not [url for url in loaded if re.match(r"(https?:)?//", url)], path.name


@every_chapter
def test_code_on_a_page_fits_its_column(book, chapter):
    for cell in book.soup(chapter).select(".cell:not(.tag_hide-input) .cell_input pre"):
        for line in cell.get_text().splitlines():
            assert len(line) <= 88, line


@every_chapter
def test_the_exercise_notebook_and_the_executed_page_can_be_downloaded(book, chapter):
    notebook = f"{catalogue.find_assignment(chapter).notebook}.ipynb"
    links = [link["href"] for link in book.soup(chapter).select(".exercise-row a[download]")]
    assert {f"_notebooks/{notebook}", f"_notebooks/{chapter}.ipynb"} <= set(links)
    for link in links:
        assert json.loads((book.site / link).read_text(encoding="utf-8"))["nbformat"] == 4
    executed = json.loads((book.site / "_notebooks" / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in executed if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any(cell["outputs"] for cell in code)
    exercise = ROOT / "exercises" / chapter / notebook
    assert (book.site / "_notebooks" / notebook).read_bytes() == exercise.read_bytes()


@every_chapter
def test_every_exercise_of_the_chapter_is_announced_where_its_idea_is_taught(book, chapter):
    titles = " ".join(node.get_text() for node in book.soup(chapter).select(".your-turn .admonition-title"))
    for exercise in catalogue.find_assignment(chapter).exercises:
        assert exercise.number in titles


def paragraphs(path: Path) -> list[str]:
    """Return the paragraphs of a page's source, without its front matter and its fences of backticks."""
    text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL).split("\n\n")


def test_no_line_of_running_text_begins_with_a_percent_sign_which_would_make_it_a_comment():
    for path in sorted((ROOT / "book").glob("*.md")):
        hidden = [part for part in paragraphs(path) if re.search(r"^ {0,3}%", part, re.MULTILINE)]
        assert not hidden, f"{path.name}: {hidden}"


def test_every_asterisk_of_an_emphasis_has_its_partner():
    for path in sorted((ROOT / "book").glob("*.md")):
        for part in paragraphs(path):
            plain = re.sub(r"\*\*|^\s*\* ", "", re.sub(r"`[^`]*`|\$[^$]*\$|\\\*", "x", part), flags=re.MULTILINE)
            pairs = re.findall(r"\*[^*]*\*", plain)
            assert plain.count("*") == 2 * len(pairs), f"{path.name}: {part}"
            assert not [pair for pair in pairs if re.search(r"^\*[\s,.;:]|\s\*$", pair)], f"{path.name}: {part}"


@every_chapter
def test_every_chapter_asks_five_questions_with_folded_answers(book, chapter):
    questions = book.section(chapter, f"sec-{chapter[:2]}-self-check").select(".predict, details.sd-dropdown")
    assert len(questions) == 5 and all(each.name == "details" or each.select("details") for each in questions)


@pytest.mark.parametrize("chapter", CHAPTERS[1:])
def test_every_chapter_after_the_first_has_lines_to_be_judged(book, chapter):
    lines = book.section(chapter, f"sec-{chapter[:2]}-wrong-slides").select(".predict, details.sd-dropdown")
    assert len(lines) == TO_BE_JUDGED.get(chapter[:2], 4)


def test_the_landing_page_links_to_published_chapters_only(book):
    for link in book.soup("index").select("article a.internal, article .course-map a"):
        assert (book.site / link["href"].split("#")[0]).exists(), link["href"]


def test_vendored_files_are_the_ones_that_were_fetched():
    record = json.loads((VENDOR / "VENDORED.json").read_text(encoding="utf-8"))
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "VENDORED.json"
    }
    assert found == record["files"]


def test_every_vendored_library_has_its_license_beside_it():
    for folder in (path for path in VENDOR.iterdir() if path.is_dir()):
        assert list(folder.glob("*LICENSE*")), folder.name


@pytest.mark.xdist_group("test_extension")  # both need the plain build
def test_plain_sphinx_builds_the_same_pages(book, plain_book):
    for name in book.pages():
        ours, theirs = (built.soup(name).select_one("article") for built in (book, plain_book))
        titles = [[node.get_text() for node in page.select("h1, h2")] for page in (ours, theirs)]
        assert titles[0] == titles[1]
        assert outputs(theirs) == outputs(ours)
