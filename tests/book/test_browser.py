"""The book in a reader's browser: each page is visited once, and seen light, dark, wide and narrow."""

import re
import sys
from pathlib import Path

import accessibility_tree
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "book" / "tools"))
import measure_site  # noqa: E402

CHAPTER = "05_self_attention"
CONTENTS = (ROOT / "_toc.yml").read_text(encoding="utf-8")
PAGES = re.findall(r"^\s*(?:- file|root): (\S+)", CONTENTS, re.MULTILINE)
SAMPLE = {"index", "inventory", "teach/index", CHAPTER, "08_masks"}  # the others are opened by `make test-all`
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
FOCUS = {"runOnly": ["scrollable-region-focusable"]}  # looked at while formulas have their widths
VIEW = {"runOnly": ["color-contrast", "target-size"]}  # what depends on layout and color together
# Highlighted code is thousands of words in a dozen colors, formulas are of one, and the cells of tables of few:
# axe, whose time grows with each text that it meets, looks at three of a kind.
SHORTEN = """() => {
  const seen = new Map();
  const isNew = (kind) => seen.set(kind, (seen.get(kind) ?? 0) + 1).get(kind) <= 3;
  for (const part of [...document.querySelectorAll(".highlight pre span")].reverse()) {
    if (part.childElementCount || isNew(part.className)) continue;
    part.replaceWith(part.matches(".line") ? "" : part.textContent);
  }
  for (const cell of document.querySelectorAll("td:not(:has(*))")) {
    const kind = [cell.closest("table").className, cell.className, cell.getAttribute("style")];
    if (!isNew(kind.join(" "))) cell.textContent = "";
  }
  [...document.querySelectorAll(".math:has(math)")].slice(3).forEach((formula) => formula.replaceWith("x"));
  document.querySelectorAll("svg.drawing:not(:has(a))").forEach((drawing) => drawing.replaceChildren());
}"""
# Of text alike in color, size and weight, on and among the same colors, axe measures two; of what is typed into, all.
ALIKE = """() => {
  const known = new Map(), seen = new Map();
  const around = (node) => {
    if (!node) return "";
    if (!known.has(node)) {
      const {backgroundColor, backgroundImage, opacity, position} = getComputedStyle(node);
      const placed = ["static", "relative"].includes(position) ? "" : `${position} ${node.className}`;
      const own = [backgroundColor, backgroundImage, opacity, placed].join();
      const plain = own === "rgba(0, 0, 0, 0),none,1,";
      known.set(node, around(node.parentElement) + (plain ? "" : `|${own}`));
    }
    return known.get(node);
  };
  for (const node of document.querySelectorAll("body *:not(input, select, textarea)")) {
    const speaks = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.nodeValue.trim());
    const {color, fontSize, fontWeight, textShadow} = getComputedStyle(node);
    const kind = [around(node), color, fontSize, fontWeight, textShadow].join();
    const shown = speaks && node.getClientRects().length;
    if (shown) seen.set(kind, (seen.get(kind) ?? 0) + 1);
    node.toggleAttribute("data-alike", !shown || seen.get(kind) > 2);
  }
}"""
PICK = "axe.configure({rules: [{id: 'color-contrast', selector: '*:not([data-alike])'}]})"
# Folded answers, predictions and text twins are read as well; half faded text has too little contrast.
UNFOLD = """() => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  document.getAnimations().forEach((animation) => animation.finish());
}"""
# For every control of every widget: whether what the widget shows changes when the control is moved by a key.
# Shows nothing where its widget begins: no hypothesis has ended whose length could count; one word takes nearly all.
QUIET = "#W11b-alpha, fieldset:has([name=W11d-p])"
CONTROLS = (".widget input[type=range]", ".widget fieldset", ".widget select")
# Wherever the keys have left the page, the header that stays in sight would cover half of some button.
TOP = "window.scrollTo({top: 0, behavior: 'instant'})"
FIRST_SIGHT = "() => performance.getEntriesByName('first-contentful-paint').length > 0"
SETTLED = """() => document.fonts.ready.then(
  () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(window.seen.shift)))))"""
# In another serif the first lines of these break elsewhere; one has formulas in a table, one is filled by a script.
LATE = ["reference/slides", "teach/weeks", "notation", "inventory", "reference/autograder", CHAPTER]
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


@pytest.mark.parametrize(
    "name",
    [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.xdist_group("every-page")) for name in PAGES],
)
def test_a_page_works_for_everyone_light_and_dark_wide_and_narrow(address, visit, name):
    seen = visit(f"{address}/{name}.html", WIDE["width"], "light")
    page = seen.page
    found = [f"other server: {url}" for url in seen.requests if not url.startswith((address, "data:", "blob:"))]
    found += unset_formulas(page) + still_controls(page)
    page.evaluate(UNFOLD)
    found += accessibility_tree.faults(page, whole=False)  # headings are those of axe, since a menu comes first
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


@pytest.mark.parametrize("name", LATE)
def test_a_phone_s_page_stays_where_it_is_when_the_fonts_come_late(address, browser, name):
    """A slow line without its waiting: the fonts are held back until the page is seen in others."""
    held = []
    context = browser.new_context(viewport=NARROW, is_mobile=True, has_touch=True)
    context.add_init_script(measure_site.WATCH)
    context.route("**/*.woff2", lambda route: held.append(route))
    page = context.new_page()
    page.goto(f"{address}/{name}.html", wait_until="domcontentloaded")
    page.wait_for_function(FIRST_SIGHT)
    page.wait_for_timeout(300)  # text waits for its font for a tenth of a second, and takes a late one for three
    fonts = {route.request.url.rpartition("/")[2] for route in held}
    assert len([font for font in fonts if font.startswith("source-serif")]) == 3
    for route in held:
        route.continue_()
    moved = page.evaluate(SETTLED)
    context.close()
    assert moved <= measure_site.SHIFT


def test_one_text_that_is_too_pale_is_found_among_many_that_are_alike(browser):
    page = browser.new_page()
    page.set_content("<p>plain</p>" * 9 + "<p style='color: #999'>pale</p>" + "<p>plain</p>" * 9)
    assert [found.partition(":")[0] for found in accessibility(page, VIEW)] == ["color-contrast at 1280"]
    page.evaluate("document.querySelectorAll('p')[12].style.background = '#222'")
    assert len(accessibility(page, VIEW)) == 2
    page.close()


def color(page, theme):
    """Choose a color mode as the theme's button does."""
    page.evaluate("theme => Object.assign(document.documentElement.dataset, { mode: theme, theme })", theme)
    page.evaluate(UNFOLD)


def narrow(page):
    """Set the page to a phone's width, and wait until the theme has made scrolling code focusable."""
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
    """Return the controls of the page's widgets that have no effect when moved by keys."""
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
    options = {"resultTypes": ["violations"]} | (options or {})  # nodes that pass need no report
    if page.evaluate("!window.axe"):
        page.evaluate(AXE_SCRIPT)
        page.evaluate(PICK)
    page.evaluate(ALIKE)
    page.evaluate(TOP)
    violations = page.evaluate("options => axe.run(document, options)", options)["violations"]
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


def test_search_says_how_many_results_there_are_and_each_is_one_link_that_names_page_and_section(address, visit):
    page = visit(f"{address}/search.html?q=softmax").page
    expect(page.get_by_role("status")).to_have_text(re.compile(r"^Results: \d+, the best first\.$"))
    count = int(re.search(r"\d+", page.get_by_role("status").inner_text())[0])
    results = page.locator("#search-results ul.search > li")
    assert results.count() == count > 3
    links = [[link.inner_text() for link in result.get_by_role("link").all()] for result in results.all()]
    assert all(len(each) == 1 and each[0].strip() for each in links)
    assert sum(" > " in each[0] for each in links) > 2  # the page, then its section


def test_escape_closes_the_search_and_returns_to_where_the_reader_was(address, visit):
    page = visit(f"{address}/{CHAPTER}.html").page
    link = page.locator("article a.reference.internal").first
    link.focus()
    page.keyboard.press("Control+k")
    field = page.locator("dialog[open] input[name=q]")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open] input[name=q]")).to_have_count(0)
    expect(link).to_be_focused()


@pytest.mark.parametrize(
    "name",
    [
        name if name in SAMPLE else pytest.param(name, marks=pytest.mark.xdist_group("every-page"))
        for name in PAGES
        if re.match(r"\d\d_", name)
    ],
)
def test_every_figure_has_a_name_or_a_text_beside_it_in_the_accessibility_tree(address, visit, name):
    page = visit(f"{address}/{name}.html").page
    drawn = page.locator("article svg.drawing:not(:has(a))")  # one with links is a group of them
    assert drawn.count()
    images = page.locator("article").get_by_role("img")
    names = [
        image.get_attribute("aria-label") or image.get_attribute("alt") or image.locator("title").first.text_content()
        for image in images.all()
    ]
    assert names and all(names)
    assert [
        said for said in drawn.evaluate_all("all => all.map((each) => each.ariaLabel)") if len(said.split()) < 4
    ] == []
    for widget in page.locator("article .widget[data-widget]").all():
        twin = page.locator("details", has_text=f"{widget.get_attribute('id')} as text")
        said = widget.get_by_role("status").count() + widget.get_by_role("table").count() + twin.count()
        assert said, widget.get_attribute("id")


def test_who_asks_for_less_motion_sees_none(address, visit):
    page = visit(f"{address}/{CHAPTER}.html").page
    page.emulate_media(reduced_motion="reduce")
    longest = """() => Math.max(...[...document.querySelectorAll("body *")].flatMap((node) => {
      const style = getComputedStyle(node);
      return [style.animationDuration, style.transitionDuration].flatMap((each) => each.split(",").map(parseFloat));
    }))"""
    assert page.evaluate(longest) < 0.01


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
