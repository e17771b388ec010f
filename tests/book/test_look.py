"""The book's own look: how chapters open, how code and tables are set, the logo."""

import importlib.util
import math
import re
import struct
import sys
import zlib
from html import escape, unescape
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
CHAPTERS = re.findall(r"- file: (\d\d_\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)


def module(path: Path):
    found = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(found)
    sys.modules[path.stem] = loaded
    found.loader.exec_module(loaded)
    return loaded


sys.path.append(str(BOOK / "extension"))  # a module there imports its neighbors
opening, logo = module(BOOK / "extension" / "opening.py"), module(BOOK / "tools" / "logo.py")


def set_code(code: str) -> BeautifulSoup:
    page = f'<div class="highlight"><pre><span></span>{escape(code)}\n</pre></div>'
    return BeautifulSoup(opening.set_lines(page), "html.parser")


@given(lines=st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["", "x = 1", "<b>", "a  # b"])), min_size=1))
def test_code_that_is_set_in_lines_is_copied_as_it_was_written(lines):
    code = "\n".join(" " * indent + text for indent, text in lines).rstrip("\n")
    found = re.findall(
        r'<span class="line"(?: style="--indent:(\d+)")?>(.*?)</span>', opening.hanging(escape(code)), re.DOTALL
    )
    assert "".join(unescape(line) for _, line in found) == f"{code}\n"
    for (indent, _), line in zip(found, code.split("\n"), strict=True):
        assert int(indent or 0) == len(line) - len(line.lstrip(" "))


def test_a_module_s_name_in_the_list_of_sections_is_broken_behind_its_dots_alone():
    listed = '<a href="#a.b"><code><span class="pre">{}</span></code> of c.d</a>'
    sections = opening.broken_at_dots(lambda: listed.format("a.b_c.d"))
    assert sections() == listed.format("a.<wbr>b_c.<wbr>d")


def test_only_what_stands_in_columns_is_scrolled_instead_of_broken():
    assert "class" not in set_code("step 1: a sentence that is long\nstep 2: another  one").pre.attrs
    assert set_code("      loss  right\n  50  4.284  22.1%\n 100  1.911  58.6%").pre["class"] == ["columns"]


def test_a_number_keeps_its_percent_sign_on_its_line():
    assert opening.with_kept_percents("in only 46 % of 5 %, or\n90\n%.") == "in only 46\xa0% of 5\xa0%, or\n90\xa0%."
    assert opening.with_kept_percents("7 %d, a % b") == "7 %d, a % b"


@pytest.mark.parametrize("sheet", ["course.css", "front.css"])
def test_room_is_reserved_for_a_widget_only_where_scripts_run(sheet):
    rules = (BOOK / "assets" / sheet).read_text(encoding="utf-8").splitlines()
    reserved = [line for line in rules if re.search(r"#live-translator[\w.]* \{ min-height", line)]
    assert reserved and all("html[data-mode] #live-translator" in line for line in reserved)


@every_chapter
def test_a_chapter_opens_with_its_number_its_question_and_the_time_it_takes(book, chapter):
    page = book.soup(chapter).select_one("article")
    title = page.h1.get_text().rstrip("#")
    assert (
        re.fullmatch(rf"{chapter[:2]} · .+", title) and page.h1.select_one(".chapter-number").get_text() == chapter[:2]
    )
    question, time = page.select("h1 ~ p")[:2]
    assert "chapter-question" in question["class"] and "chapter-time" in time["class"]
    assert len(page.select(".chapter-time")) == 1


def test_the_list_of_chapters_and_the_ways_to_the_neighbors_set_numbers_apart(book):
    page = book.soup("05_self_attention")
    numbers = [node.get_text() for node in page.select(".bd-links .chapter-number")]
    assert numbers == [chapter[:2] for chapter in CHAPTERS]
    assert [node.get_text() for node in page.select(".prev-next-area .chapter-number")] == ["04", "06"]
    assert not page.select_one(".bd-links").find(string=re.compile(r"\d\d · "))


@every_chapter
def test_every_table_of_numbers_has_a_title_and_names_its_rows_and_columns(book, chapter):
    tables = book.soup(chapter).select("table.of-numbers")
    styles = [style for style in book.soup(chapter).select("article style") if ".of-numbers" in style.get_text()]
    assert len(styles) == min(len(tables), 1)
    for table in tables:
        assert table.caption.get_text(strip=True)
        widths = {len(row.select("td, th")) for row in table.select("tr")}
        assert len(widths) == 1
        assert all(head["scope"] in ("row", "col") for head in table.select("th"))


def test_the_logo_is_the_map_of_the_four_words_and_its_files_are_those_that_the_code_writes():
    weights = logo.weights()
    assert all(math.isclose(sum(row), 1) for row in weights)
    assert [f"{weight:.3f}" for weight in weights[3]] == ["0.157", "0.157", "0.038", "0.647"]
    for name, content in logo.files().items():
        assert (BOOK / "assets" / name).read_bytes() == content, f"{name}: run python book/tools/logo.py"


def test_the_icon_for_a_phone_is_a_square_picture_whose_pixels_are_the_boxes():
    data = logo.png("#ffffff")
    width, height = struct.unpack(">II", data[16:24])
    pixels = zlib.decompress(data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8])
    assert (width, height, len(pixels)) == (180, 180, 180 * (1 + 3 * 180))
    for box in logo.boxes("#ffffff"):
        x, y = (box.x + box.width - 1) * logo.PIXELS, (box.y + box.height - 1) * logo.PIXELS
        at = y * (1 + 3 * width) + 1 + 3 * x
        assert pixels[at : at + 3].hex() == box.color[1:]


def test_the_face_of_the_text_is_small_and_its_license_is_beside_it():
    folder = BOOK / "assets" / "vendor" / "serif"
    assert sum(path.stat().st_size for path in folder.glob("*.woff2")) < 65_000
    assert "SIL Open Font License" in (folder / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.browser
def test_on_a_phone_code_needs_no_scrolling_and_on_a_desktop_cards_and_tables_stand_where_the_text_stands(
    address, visit
):
    """Every chapter's code on a phone; the edges on one page, since they come from one style sheet."""
    phone = visit(f"{address}/{CHAPTERS[0]}.html", 390).page
    for chapter in CHAPTERS:
        phone.goto(f"{address}/{chapter}.html", wait_until="domcontentloaded")
        wide = phone.evaluate(
            "[...document.querySelectorAll('.cell_input pre, article pre:not(.columns)')]"
            ".filter(code => code.scrollWidth > code.clientWidth + 1).map(code => code.textContent.slice(0, 60))"
        )
        phone.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
        phone.evaluate("new Promise(done => setTimeout(() => requestAnimationFrame(done)))")  # folds have told it
        unreachable = phone.evaluate(
            "[...document.querySelectorAll('.numbers')]"
            ".filter(node => node.scrollWidth > node.clientWidth && node.tabIndex < 0).map(node => node.innerText)"
        )
        assert not unreachable, chapter
        assert not wide, chapter
    desktop = visit(f"{address}/05_self_attention.html", 1440).page
    desktop.evaluate("""localStorage.setItem("attention-by-hand:read", '{"00": 0.95, "01": 0.4}')""")
    desktop.reload(wait_until="load")
    states = desktop.evaluate(
        "[...document.querySelectorAll('.bd-links .chapter-state')].map(node => node.textContent)"
    )
    assert states[:3] == [", read", ", read to 40 percent", ""]
    left, right = desktop.evaluate("""() => {
        const edges = [...document.querySelectorAll('article h1, .sd-row, .admonition.your-turn, .cell_input, .widget')]
          .filter(node => node.offsetWidth).map(node => node.getBoundingClientRect());
        return [edges.map(box => Math.round(box.left)), edges.map(box => Math.round(box.right))];
    }""")
    assert len(set(left)) == 1 and len(set(right)) == 1
    aside = desktop.evaluate("document.querySelector('#pst-secondary-sidebar').getBoundingClientRect().right")
    assert 1440 - aside < 40  # the list of sections ends where the window ends


@pytest.mark.browser
def test_without_javascript_a_page_has_its_colors_and_on_paper_it_is_light(address, browser):
    context = browser.new_context(java_script_enabled=False, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{address}/05_self_attention.html")
    title = page.locator(".your-turn > .admonition-title").first
    assert title.evaluate("node => getComputedStyle(node).color") == "rgb(255, 255, 255)"
    assert title.evaluate("node => getComputedStyle(node).backgroundColor") == "rgb(22, 25, 29)"
    page.goto(f"{address}/index.html")
    assert page.locator("#live-translator").bounding_box()["height"] < 300
    context.close()
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(f"{address}/05_self_attention.html", wait_until="load")
    themes = []
    for event in ("beforeprint", "afterprint"):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        themes.append(page.evaluate("document.documentElement.dataset.theme"))
    assert themes == ["light", "dark"]
    context.close()
