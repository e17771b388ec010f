"""What surrounds the chapters: the landing page and its map, what a page says of itself, the reference pages."""

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from book.recorded import diagnosis

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = re.findall(r"- file: (\d\d_\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
SETTINGS = ("COURSE_REPOSITORY", "ATTENTION_BY_HAND_BOOK", "GITHUB_REPOSITORY")
A3_ROWS = 55  # lines of the five lectures that a careful book corrects, or has checked and found right


@pytest.fixture
def extension(monkeypatch):
    """extension(name): a module of book/extension, in a folder without a repository."""
    monkeypatch.syspath_prepend(str(ROOT / "book" / "extension"))
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(importlib.import_module("repository"), "_url", lambda name: "")
    yield importlib.import_module
    sys.modules.pop("about", None)  # a name that others may want


# --- tables


def rows_in_one_line(text: str) -> list[str]:
    """Return the lines of a page that hold a table's rule, |---|, next to other cells: its rows ran together."""
    ruled = (line for line in text.splitlines() if re.search(r"\|\s*:?-{3,}:?\s*\|", line))
    return [line for line in ruled if not re.fullmatch(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*", line)]


def test_every_row_of_a_table_is_a_line_of_its_own():
    pages = sorted((ROOT / "book").rglob("*.md"))
    found = {page.name: rows_in_one_line(page.read_text(encoding="utf-8")) for page in pages}
    assert len(found) > 20 and {name: lines for name, lines in found.items() if lines} == {}


def test_the_list_to_watch_and_read_is_a_table_with_a_row_for_each_entry():
    page = (ROOT / "book" / "references.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d\d|any) \| .+ \| .+ \|$", page.partition("(watch-and-read)=")[2], re.MULTILINE)
    assert len(rows) >= 13 and "any" in rows


def test_rows_that_ran_together_are_found():
    table = "| what | why |\n|:---|---:|\n| a | b |\n"
    assert rows_in_one_line(table) == []
    assert rows_in_one_line(table.replace("\n", " ")) == ["| what | why | |:---|---:| | a | b | "]


# --- the two settings


def test_without_a_setting_nothing_is_linked(extension):
    repository = extension("repository")
    assert (repository.public_repository(), repository.address_of_site(), repository.code_address("a.py", 3)) == (
        "",
    ) * 3


def test_a_fork_on_github_needs_no_setting(extension, monkeypatch):
    repository = extension("repository")
    monkeypatch.setenv("GITHUB_REPOSITORY", "Ada/course")
    assert repository.address_of_site() == "https://ada.github.io/course/"
    assert repository.code_address("a/b.py", 3) == "https://github.com/Ada/course/blob/main/a/b.py#L3"
    monkeypatch.setenv("GITHUB_REPOSITORY", "Ada/ada.github.io")
    assert repository.address_of_site() == "https://ada.github.io/"
    monkeypatch.setenv("ATTENTION_BY_HAND_BOOK", "https://example.org/attention")
    assert repository.address_of_site() == "https://example.org/attention/"


def test_the_project_s_own_addresses_count_and_those_of_this_machine_do_not(extension, monkeypatch, tmp_path):
    repository = extension("repository")
    monkeypatch.undo()
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "pyproject.toml"
    monkeypatch.setattr(repository, "PROJECT", project)
    urls = '[project.urls]\nRepository = "https://github.com/ada/course.git"\nBook = "https://example.org/a"\n[tool]\n'
    project.write_text(urls, encoding="utf-8")
    assert repository.public_repository() == "ada/course"
    assert repository.address_of_site() == "https://example.org/a/"
    project.write_text('[project.urls]\n\n[tool]\nBook = "https://elsewhere.org"\n', encoding="utf-8")
    monkeypatch.setenv("ATTENTION_BY_HAND_BOOK", "http://127.0.0.1:8000")
    assert (repository.public_repository(), repository.address_of_site()) == ("", "")


def test_a_repository_of_another_form_is_refused_by_name(extension, monkeypatch):
    monkeypatch.setenv("COURSE_REPOSITORY", "https://elsewhere.org/a/b")
    with pytest.raises(ValueError, match="Repository: expected owner/name .* got 'https://elsewhere.org/a/b'"):
        extension("repository").public_repository()


# --- what a page says of itself


def head_of(extension, page="05_self_attention", metatags="", title="05 · <em>Attention</em>"):
    """The context of a page after its tags were added; it has no text of its own."""
    config = SimpleNamespace(root_doc="index", html_title="The book", project="", course_version="1.2")
    builder = SimpleNamespace(get_target_uri=lambda name: f"{name}.html")
    context = {"title": title, "metatags": metatags, "pathto": lambda name: f"../{name}.html"}
    extension("page_head").add_tags(SimpleNamespace(config=config, builder=builder), page, "", context, None)
    return context


def test_a_card_has_an_address_and_a_picture_where_the_site_s_address_is_known(extension, monkeypatch):
    assert "og:url" not in head_of(extension)["metatags"] and "og:image" not in head_of(extension)["metatags"]
    monkeypatch.setenv("ATTENTION_BY_HAND_BOOK", "https://example.org/a")
    tags = head_of(extension)["metatags"]
    assert '<meta property="og:url" content="https://example.org/a/05_self_attention.html" />' in tags
    assert '<meta name="twitter:image" content="https://example.org/a/_static/preview.png" />' in tags
    assert '<meta property="og:title" content="05 · Attention" />' in tags


def test_a_description_in_the_front_matter_is_kept_and_repeated(extension):
    tags = head_of(extension, metatags='<meta content="Mine &amp; yours" name="description" />')["metatags"]
    assert tags.count('name="description"') == 1
    assert '<meta property="og:description" content="Mine &amp; yours" />' in tags


def test_a_description_ends_with_a_sentence_or_a_word(extension):
    shortened = extension("page_head").shortened
    assert shortened("Short.") == "Short."
    assert shortened("word " * 25 + "end. " + "word " * 40) == "word " * 25 + "end."
    cut = shortened("letters " * 60)
    assert len(cut) <= 200 and cut.endswith("letters …")


def test_the_footer_links_to_the_code_only_where_it_is_known(extension, monkeypatch):
    assert re.findall('href="([^"]+)"', head_of(extension)["theme_extra_footer"]) == ["../reference/about.html"]
    monkeypatch.setenv("COURSE_REPOSITORY", "ada/course")
    assert 'href="https://github.com/ada/course/issues"' in head_of(extension)["theme_extra_footer"]


def test_every_page_has_a_description_and_a_title_of_its_own(book):
    said, titles = {}, {}
    for name in book.pages():
        page = book.soup(name)
        (description,) = page.select('meta[name="description"]')
        assert 40 <= len(description["content"]) <= 260, (name, description["content"])
        assert page.select_one('meta[property="og:description"]')["content"] == description["content"]
        said.setdefault(description["content"], []).append(name)
        titles.setdefault(page.title.get_text(), []).append(name)
    assert not [names for names in (*said.values(), *titles.values()) if len(names) > 1]
    first, _, rest = book.soup("index").title.get_text().partition(" — ")
    assert rest == "Attention by Hand" and first != rest


def test_the_preview_is_small_and_of_the_size_that_its_tags_name(book):
    picture = (book.site / "_static" / "preview.png").read_bytes()
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (1200, 630) and len(picture) < 60_000


def test_the_page_for_lost_readers_asks_for_nothing_beside_it(book):
    text = (book.site / "404.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!/"|https?:)', text) and "<link" not in text


def test_how_to_cite_says_what_the_project_says(book, extension):
    entry = extension("about").entry()
    assert f"Version {extension('about').version()}" in entry and "{Attention by Hand}" in entry
    assert entry in book.soup("reference/about").get_text()


# --- the landing page


def test_the_map_says_what_each_chapter_says_of_itself(book):
    cards = {card["data-chapter"]: card.get_text(" ") for card in book.soup("index").select("[data-chapter]")}
    assert list(cards) == [chapter[:2] for chapter in CHAPTERS]
    for chapter in CHAPTERS:
        facts = " ".join(book.soup(chapter).select_one("article").get_text().split())
        reading, solving, points = re.search(
            r"(\d+) minutes to read(?: \(\d+ with the asides\))?, (\d+) for \w+ exercises \((\d+)", facts
        ).groups()
        assert re.search(
            rf"{reading} min to read,\s+{solving} min for \d+ exercises, {points} points", cards[chapter[:2]]
        )


def test_the_landing_page_says_how_large_its_translator_is(book):
    record = json.loads((ROOT / "transformer_ref" / "recorded" / "live_model.json").read_text(encoding="utf-8"))
    assert f"{record['weights']:,} parameters" in book.soup("index").select_one("article").get_text()


# --- the reference pages


def test_every_line_that_the_slides_got_wrong_is_there_with_its_proof(book):
    rows = book.soup("reference/slides").select(".correction")
    assert [row["id"] for row in rows] == [f"slide-{number}" for number in range(1, A3_ROWS + 1)]
    for row in rows:
        proofs = row.select(".correction-proof a")
        for link in proofs:
            page, anchor = link["href"].removeprefix("../").split("#")
            assert book.soup(page.removesuffix(".html")).find(id=anchor), link["href"]
        said = row.get_text()
        assert proofs or "to come" in said or "leaves them out" in said or "quoted numbers" in said, said
        assert len(said.split()) > 12


def test_the_index_of_lines_to_judge_names_all_that_the_chapters_ask(book):
    listed = book.soup("reference/slides").select("#slides-spotted ul ul li, [id=slides-spotted] ~ ul ul li")
    asked = [
        node
        for chapter in CHAPTERS
        for section in book.soup(chapter).select(f"section[id='spot-the-mistake'], #sec-{chapter[:2]}-wrong-slides")
        for node in (section if section.name == "section" else section.find_parent("section")).select(
            ".predict-question, details.sd-dropdown > summary"
        )
    ]
    assert len(listed) > 50 and len(set(map(id, asked))) - len(listed) in range(
        3
    )  # folds "more slips, in one line each"


def test_the_answers_page_has_every_question_and_its_answer(book):
    page = book.soup("reference/answers")
    for chapter in CHAPTERS:
        part = page.find(id=f"answers-{chapter[:2]}")
        questions = book.section(chapter, f"sec-{chapter[:2]}-self-check").select(".predict, details.sd-dropdown")
        assert len(part.select(".answer")) == len(questions) >= 4, chapter
        assert not part.select("details, [data-right]")


def test_the_index_of_figures_lists_every_widget_under_its_name(book):
    rows = {
        row.select_one("td").get_text(strip=True): [cell.get_text(strip=True) for cell in row.select("td")]
        for row in book.soup("reference/widgets").select("tr:has(td)")
    }
    assert all(title for _, title, _ in rows.values()), rows
    for chapter in CHAPTERS:
        for widget in book.soup(chapter).select(".widget[id^=W]"):
            assert widget["id"] in rows


@pytest.mark.parametrize("module", ["transformer_ref.model.attention", "transformer_ref.learn", "autograder.check"])
def test_the_interface_has_every_public_name_of_a_module_with_its_parameters(book, module):
    part = book.soup(f"reference/{module.split('.')[0]}").find(id=f"api-{module}")
    signatures = [node.get_text() for node in part.select(".signature")]
    shown = {re.search(r"(?:def|class) (\w+)", text)[1]: text for text in signatures}
    defined = importlib.import_module(module)
    for name, found in inspect.getmembers(defined, lambda one: getattr(one, "__module__", "") == module):
        if inspect.isfunction(found) and not name.startswith("_"):
            assert all(re.search(rf"\b{parameter}\b", shown[name]) for parameter in inspect.signature(found).parameters)


def test_every_name_that_a_catalogue_entry_is_written_with_is_explained(book):
    text = book.soup("reference/autograder").get_text()
    for name in ("Exercise", "Misconception", "Probe", "usual_mistakes", "usual_probes", "visible", "hidden", "answer"):
        assert re.search(rf"(def|class) {name}\b", text), name


# --- definitions


def test_a_term_is_linked_once_in_a_chapter_and_its_definition_is_words(book):
    for chapter in CHAPTERS:
        page = book.soup(chapter)
        known = json.loads(page.select_one("#definitions").get_text())
        linked = [link["href"].split("#")[1] for link in page.select("a.defined")]
        assert len(linked) == len(set(linked)) and set(linked) <= set(known)
        assert not [said for said in known.values() if re.search(r"[\\$\0]|See sec|See\s*\.", said) or len(said) < 15]
        assert not page.select(":is(h1, h2, h3, summary, .widget, .cell, a a) a.defined")


def test_a_word_with_an_everyday_meaning_is_linked_where_it_is_explained(book):
    def linked(chapter):
        return {link.get_text().casefold() for link in book.soup(chapter).select("a.defined")}

    assert "memory" in linked("09_blocks") and "memory" not in linked("10_training") | linked("11_inference")
    assert "query" in linked("05_self_attention") and "query" not in linked("00_start_here") | linked("03_similarity")
    assert not {"window", "windows"} & set().union(*map(linked, CHAPTERS))


@pytest.fixture
def mentioned(extension):
    """mentioned(chapter, text): the terms that a chapter with this text would link."""
    definitions = extension("definitions")
    glossary = object.__new__(definitions.Glossary)
    chapters = {"key": 5, "score": 5, "head": 6, "mask": 1, "stride": 0, "offset": 7, "feature map": 16, "norm": 3}
    glossary.terms = {name: definitions.Definition(name, "", chapter) for name, chapter in chapters.items()}
    return lambda chapter, text: [name for _, name, _ in glossary.mentions(text, chapter)]


@pytest.mark.parametrize(
    ("chapter", "text"),
    [
        (5, "Reach it with the Tab key and move it with the arrow keys."),
        (9, "The scale and the offset are forgotten."),
        (9, "Before it comes one more norm."),
        (12, "Is the score good because the model is good?"),
        (13, "So the head has no parameters of its own."),
        (14, "They use a convolution with kernel p and stride p."),
        (14, "In the middle, the feature map has become small."),
        (14, "Apply a last norm and a linear head."),
        (15, "Take a sentence, mask a word, and ask which word it was."),
        (15, "When only the head learns, the norm learns too."),
    ],
)
def test_a_word_that_means_something_else_in_a_phrase_or_chapter_is_not_linked(mentioned, chapter, text):
    assert mentioned(chapter, text) == []


def test_the_same_words_are_linked_where_the_glossary_explains_them(mentioned):
    assert mentioned(5, "With the Tab key you reach it. Its key is orange.") == ["key"]
    assert mentioned(0, "The strides are the note.") == ["stride"] and mentioned(3, "The norm of a word.") == ["norm"]
    assert mentioned(7, "The offset is 3.") == ["offset"]
    assert mentioned(16, "The feature map is positive.") == ["feature map"]
    assert mentioned(14, "A linear head reads what twelve heads wrote.") == ["head"]
    assert mentioned(15, "Only the mask differs.") == ["mask"] and mentioned(9, "The scores are high.") == ["score"]


def test_the_narrow_picture_of_a_check_says_the_same_in_shorter_lines():
    for text in (diagnosis.ANSWER, diagnosis.report()):
        narrow = diagnosis.narrow(text)
        assert max(map(len, narrow.splitlines())) <= diagnosis.COLUMNS
        assert "".join(narrow.split()) == "".join(text.split())
    drawn = diagnosis.svg(diagnosis.narrow(diagnosis.ANSWER), diagnosis.narrow(diagnosis.report()))
    assert diagnosis.NARROW.read_text(encoding="utf-8") == drawn
    sheet = (ROOT / "book" / "assets" / "front.css").read_text(encoding="utf-8")
    assert f'url("{diagnosis.NARROW.name}")' in sheet


# --- in a browser


@pytest.mark.browser
def test_a_definition_opens_on_focus_on_hover_and_on_a_tap_and_closes_on_escape(address, visit):
    page = visit(f"{address}/03_similarity.html").page
    term, bubble = page.locator("a.defined").first, page.locator(".definition")
    says = term.evaluate("link => document.getElementById(link.getAttribute('aria-describedby')).textContent")
    assert len(says) > 20 and not bubble.is_visible()
    term.focus()
    assert bubble.inner_text().split() == says.split()
    page.keyboard.press("Escape")
    assert not bubble.is_visible()
    page.locator("a.defined").nth(1).hover()
    assert bubble.is_visible() and page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tapped = visit(f"{address}/03_similarity.html", 390, "dark").page
    tapped.locator("a.defined").first.tap()
    assert tapped.url.endswith("03_similarity.html") and tapped.locator(".definition").is_visible()
    box = tapped.locator(".definition").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


@pytest.mark.browser
def test_the_landing_page_translates_after_a_click_and_knows_what_was_read(address, visit):
    seen = visit(f"{address}/04_softmax.html")
    page = seen.page
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_function("JSON.parse(localStorage.getItem('attention-by-hand:read') ?? '{}')['04'] > 0.9")
    page.goto(f"{address}/index.html")
    assert page.locator("[data-chapter='04'] .course-state").inner_text() == "✓ read"
    assert page.locator(".course-begin a").get_attribute("href") == "00_start_here.html"
    assert page.locator("#live-translator output").inner_text() == "Ho chiuso le finestre."
    assert page.locator(".looked tbody tr").count() == 6
    assert not [url for url in seen.requests if "live_model_weights" in url]
    page.locator(".live-example", has_text="for my computer").click()
    page.wait_for_function("document.querySelector('#live-translator output').textContent.includes('Windows')")
    assert [url for url in seen.requests if "live_model_weights" in url] and not seen.failures
    page.get_by_role("button", name="Forget what I have read").click()
    page.wait_for_function("!document.querySelector('.course-state')")


@pytest.mark.browser
def test_the_page_for_lost_readers_finds_the_book_from_any_depth(address, book, visit):
    text = (book.site / "404.html").read_text(encoding="utf-8")
    page = visit(f"{address}/404.html").page
    page.route("**/lost/**", lambda route: route.fulfill(status=404, content_type="text/html", body=text))
    page.goto(f"{address}/lost/in/the/woods.html")
    expect(page.locator("#home")).to_have_attribute("href", re.compile("/some/course/index.html$"))
