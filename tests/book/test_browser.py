"""What a reader's browser does with the book: each page is visited once, and seen light, dark, wide and narrow."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "05_self_attention"
CONTENTS = (ROOT / "_toc.yml").read_text(encoding="utf-8")
PAGES = re.findall(r"^\s*(?:- file|root): (\S+)", CONTENTS, re.MULTILINE)
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
FOCUS = {"runOnly": ["scrollable-region-focusable"]}  # looked at while formulas have their widths
VIEW = {"runOnly": ["color-contrast", "target-size"]}  # what depends on layout and color together
# Highlighted code is thousands of words in a dozen colors, and formulas are of one: axe looks at each kind once.
SHORTEN = """() => {
  const seen = new Set();
  const isNew = (name) => !seen.has(name) && seen.add(name);
  for (const code of document.querySelectorAll(".highlight pre")) {
    const kinds = [...new Set([...code.querySelectorAll("span")].map((word) => word.className))];
    if (!kinds.filter(isNew).length) code.textContent = "code";
  }
  [...document.querySelectorAll("math")].slice(3).forEach((formula) => formula.replaceWith("x"));
  document.querySelectorAll("svg.drawing:not(:has(a))").forEach((drawing) => drawing.replaceChildren());
}"""
# What an answer, a prediction or a widget's twin hides is read as well; half faded text has too little contrast.
UNFOLD = """() => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  document.getAnimations().forEach((animation) => animation.finish());
}"""
# For every control of every widget: whether what the widget shows changes when the control is moved by a key.
# Shows nothing where its widget begins: no hypothesis has ended whose length could count; one word takes nearly all.
QUIET = "#W11b-alpha, fieldset:has([name=W11d-p])"
CONTROLS = (".widget input[type=range]", ".widget fieldset", ".widget select")
TERMS = {  # what people look for -> the chapter whose section comes first
    "the map": "00",
    "bottleneck": "01",
    "byte-pair": "02",
    "cosine": "03",
    "temperature": "04",
    "why divide": "05",
    "heads": "06",
    "positional encoding": "07",
    "masks": "08",
    "layer normalization": "09",
    "label smoothing": "10",
    "beam": "11",
    "capstone": "12",
    "decoder only": "13",
    "convolution": "14",
    "pretrained models": "15",
    "brackets": "16",
}

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", PAGES)
def test_a_page_works_for_everyone_light_and_dark_wide_and_narrow(address, visit, name):
    seen = visit(f"{address}/{name}.html", WIDE["width"], "light")
    page = seen.page
    found = [f"other server: {url}" for url in seen.requests if not url.startswith((address, "data:", "blob:"))]
    found += unset_formulas(page) + still_controls(page)
    page.evaluate(UNFOLD)
    narrow(page)
    found += too_wide(page) + accessibility(page, FOCUS)
    page.evaluate(SHORTEN)
    found += accessibility(page, VIEW)
    page.set_viewport_size(WIDE)
    found += accessibility(page)
    page.emulate_media(color_scheme="dark")
    color(page, "dark")
    found += accessibility(page, VIEW)
    narrow(page)
    found += accessibility(page)
    assert found + seen.failures == []


def color(page, theme):
    """Choose a color mode as the theme's button does."""
    page.evaluate("theme => Object.assign(document.documentElement.dataset, { mode: theme, theme })", theme)
    page.evaluate(UNFOLD)


def narrow(page):
    """Give the page a phone's width; return when the theme has let keys reach the code that now scrolls."""
    page.set_viewport_size(NARROW)
    page.wait_for_function(
        """() => [...document.querySelectorAll("pre[tabindex='-1'], .pst-scrollable-table-container[tabindex='-1']")]
                   .every((part) => part.scrollWidth <= part.clientWidth)"""
    )


def unset_formulas(page):
    return page.evaluate(
        """[...document.querySelectorAll("article .math")]
             .filter((math) => !math.closest("details:not([open]), [hidden], .onlyprint"))
             .filter((math) => !math.querySelector("math")?.getClientRects().length)
             .map((math) => `not set: ${math.textContent}`)"""
    )


def still_controls(page):
    """Return what stays as it is when the controls of the page's widgets are moved by keys."""
    still = []
    controls = [each for kind in CONTROLS for each in page.locator(kind).all()]
    for control in controls:
        quiet = control.evaluate("(node, quiet) => node.matches(quiet)", QUIET)
        if quiet or not control.is_visible() or control.is_disabled():
            continue
        widget = control.locator("xpath=ancestor::*[contains(concat(' ', @class, ' '), ' widget ')][1]")
        before = widget.evaluate(SHOWN)
        moving = control.locator("input:checked") if control.evaluate("node => node.tagName") == "FIELDSET" else control
        if moving.count() != 1:  # a group of boxes, each for itself
            continue
        for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):  # from an end, one of the two moves nothing
            moving.press(key)
            moving = control.locator("input:checked") if moving is not control else control
            if widget.evaluate(SHOWN) != before:
                break
        else:
            still.append(f"does not move: {control.evaluate('node => node.outerHTML')[:150]}")
    return still


SHOWN = """(widget) => [...widget.querySelectorAll("output, svg, canvas, table, button, [aria-live]")]
    .map((part) => part.outerHTML).join("")"""


def accessibility(page, options=None):
    violations = Axe().run(page, options=options).response["violations"]
    size = page.viewport_size["width"]
    return [f"{rule['id']} at {size}: {node['html'][:160]}" for rule in violations for node in rule["nodes"][:3]]


def too_wide(page):
    assert page.viewport_size == NARROW
    return page.evaluate(
        """[document.documentElement, ...document.querySelectorAll(".widget, svg.drawing, .widget table")]
             .filter((node) => node === document.documentElement ? node.scrollWidth > 390
               : node.getBoundingClientRect().right > 390 && !node.closest("[role=region], .frame"))
             .map((node) => `too wide: ${node.id || node.className.baseVal || node.className}`)"""
    )


def test_search_gives_the_section_of_a_term_first(address, visit):
    page = visit(f"{address}/search.html?q=softmax").page
    page.wait_for_selector("#search-results li a")
    wrong = {}
    for term, chapter in TERMS.items():
        first = page.evaluate("term => Search._performSearch(...Search._parseQuery(term)).at(-1).slice(0, 3)", term)
        if not first[0].startswith(chapter):
            wrong[term] = first
    assert wrong == {}


def test_a_page_opened_from_the_disk_works_as_well_and_prints_what_is_folded(book, visit):
    seen = visit((book.site / f"{CHAPTER}.html").as_uri())
    assert not seen.failures
    assert "(0.31, 1.96)" in seen.page.locator("#W05a output").inner_text()
    assert seen.page.evaluate("document.fonts.check('16px Latin Modern Math')")
    seen.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert seen.page.locator("details:not([open])").count() == 0


def test_a_page_can_be_read_without_scripts(browser, book):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((book.site / f"{CHAPTER}.html").as_uri())
    assert page.locator("article math").count() > 50
    assert page.locator("#W05c svg.drawing").first.is_visible()
    twin = page.locator("details", has_text="W05c as text")
    twin.locator("summary").click()
    assert "0.402" in twin.inner_text()
    context.close()
