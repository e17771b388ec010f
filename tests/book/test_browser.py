"""What a reader's browser does with the book."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "05_self_attention"
CONTENTS = (ROOT / "_toc.yml").read_text(encoding="utf-8")
CHAPTERS = re.findall(r"- file: (\d\d_\S+)", CONTENTS)
PAGES = ["index", *CHAPTERS, "notation", "references", *re.findall(r"- file: (teach/\S+)", CONTENTS)]

FORMULAS = {*CHAPTERS, "notation"}  # pages with formulas

pytestmark = pytest.mark.browser


def views(width: int, theme: str, pages: list[str] = PAGES) -> list:
    """The pages seen this way, each loaded once for the tests that look at it without changing what others see."""
    return [
        pytest.param(
            (name, width, theme), id=f"{name}-{width}-{theme}", marks=pytest.mark.xdist_group(f"{name}-{width}-{theme}")
        )
        for name in pages
    ]


LIGHT, PHONE = views(1280, "light"), views(390, "dark")
DARK = views(1280, "dark", ["index", CHAPTER])  # what a phone does not show, which is the same on all pages


@pytest.fixture(scope="module")
def seen(request, visits, address):
    name, width, theme = request.param
    with visits() as visit:
        yield visit(f"{address}/{name}.html", width, theme)


def by_view(*ways: list):
    return pytest.mark.parametrize("seen", [view for way in ways for view in way], indirect=True)


def unfold(page):
    """Open everything that is folded and wait until it has faded in: half faded text has too little contrast."""
    page.evaluate(
        "document.querySelectorAll('details').forEach(details => details.open = true);"
        "Promise.all(document.getAnimations().map(animation => animation.finished)).then(() => true)"
    )


@by_view(LIGHT)
def test_a_page_asks_no_other_server_and_nothing_fails(address, seen):
    foreign = [url for url in seen.requests if not url.startswith((address, "data:", "blob:"))]
    assert not foreign
    assert not seen.failures


def test_a_page_opened_from_the_disk_works_as_well(book, visit):
    seen = visit((book.site / f"{CHAPTER}.html").as_uri())
    assert not seen.failures
    assert seen.page.locator("mjx-container").count() > 50
    assert "(0.31, 1.96)" in seen.page.locator("#W05a output").inner_text()


@by_view(LIGHT)
def test_all_math_is_set(seen, request):
    page = seen.page
    unfold(page)
    name, *_ = request.node.callspec.params["seen"]
    assert page.locator("mjx-container").count() > 10 or name not in FORMULAS
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    bare = page.evaluate(
        "[...document.querySelectorAll('.math')]"
        ".filter(math => !math.querySelector('mjx-container')).map(math => math.textContent)"
    )
    assert not bare
    assert not re.search(r"\\(frac|sqrt|cdot|alpha)", page.locator("article").inner_text())


@by_view(LIGHT, DARK)
def test_axe_finds_nothing(seen, request):
    find_nothing(seen.page, request.node.callspec.params["seen"][-1])


@by_view(PHONE)
def test_axe_finds_nothing_on_a_phone(seen):
    find_nothing(seen.page, "dark")


def find_nothing(page, theme):
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    unfold(page)
    violations = Axe().run(page).response["violations"]
    found = [(rule["id"], rule["impact"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in violations]
    assert not found


@by_view(PHONE)
def test_a_phone_needs_no_sideways_scrolling(seen):
    page = seen.page
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    too_wide = page.evaluate(
        "[...document.querySelectorAll('.widget, .widget-vbox, svg.drawing, .widget table')]"
        ".filter(node => node.getBoundingClientRect().right > 390)"
        ".map(node => node.className.baseVal ?? node.className)"
    )
    assert not too_wide


def test_printing_opens_what_is_folded(address, visit):
    page = visit(f"{address}/{CHAPTER}.html").page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
