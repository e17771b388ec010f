"""The book as an EPUB 3: chapters with drawn figures, formulas as MathML, all folds open, no script.

A browser shows each page of the built site, so that figures which scripts draw are drawn. What can only be moved, typed
or pressed is then removed, colors are written down, and the article is serialized as XML.
"""

import datetime
import mimetypes
import os
import re
import shutil
import uuid
import zipfile
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import NamedTuple

import yaml
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FURTHER = ("notation", "references")  # after the chapters
WIDTH = 760  # pixels: the figures of a wide page, and text beside nothing
COVER = {"width": 1200, "height": 1800}
ACCESS = (  # what a catalog of books may say to people who read in other ways
    ("schema:accessMode", "textual"),
    ("schema:accessMode", "visual"),
    ("schema:accessModeSufficient", "textual,visual"),
    ("schema:accessModeSufficient", "textual"),
    ("schema:accessibilityFeature", "MathML"),
    ("schema:accessibilityFeature", "alternativeText"),
    ("schema:accessibilityFeature", "structuralNavigation"),
    ("schema:accessibilityFeature", "tableOfContents"),
    ("schema:accessibilityHazard", "none"),
    ("schema:accessibilitySummary", "Figures have alternative texts, and formulas are MathML. Nothing moves."),
)
STYLE = """
body { font-family: serif; line-height: 1.5; }
h1, h2, h3, caption, .admonition-title, .fold, .widget-head, th { font-family: sans-serif; line-height: 1.25; }
h1, h2, h3, .fold { break-after: avoid; }
pre, code { font-family: monospace; font-size: 0.85em; }
pre { white-space: pre-wrap; padding: 0.5em; border: 1px solid #9aa4af; border-radius: 4px; }
table { border-collapse: collapse; margin: 0.7em 0; font-size: 0.9em; }
th, td { padding: 0.15em 0.5em; border: 1px solid #9aa4af; text-align: center; }
caption, figcaption { font-size: 0.9em; }
td p, th p, li p { margin: 0; }
svg, img { max-width: 100%; height: auto; }
svg, table, figure, .widget { break-inside: avoid; }
.admonition, .widget, .folded, .predict { margin: 1em 0; padding: 0.2em 0.9em; border-left: 3px solid #0072b2; }
.admonition-title, .fold, .widget-head { font-weight: bold; }
.output { margin-left: 1em; }
.eqno { float: right; }
.math:has(> math[display=block]) { text-align: center; margin: 0.7em 0; }
.widget-body > *, .with-sign { display: inline-block; vertical-align: middle; margin-right: 0.7em; }
.cover { text-align: center; }
"""
# Runs in the page. Returns the article as XML, its title, its sections and the pictures that it shows.
TAKE = r"""async (kept) => {
  await document.fonts.ready;
  document.querySelectorAll("details").forEach((each) => { each.open = true; each.hidden = false; });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  document.getAnimations().forEach((animation) => animation.finish());
  const article = document.querySelector("article");
  const drawn = (node) => node.closest("svg, math");
  // 1. what scripts have typed or chosen becomes text; what is invisible goes
  const invisible = [...article.querySelectorAll("*:not(br)")].filter((node) => !drawn(node)
    && getComputedStyle(node).display === "none");
  // 2. colors that the style sheets give to figures, numbers and code are written down
  const told = [];
  for (const node of article.querySelectorAll("svg *, .widget *, table *, .highlight span, pre span")) {
    if (node.namespaceURI.includes("MathML")) continue;
    const now = getComputedStyle(node), above = getComputedStyle(node.parentElement), own = [];
    if (node.namespaceURI.includes("svg")) {
      for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight",
                          "text-anchor", "paint-order"])
        if (node.style.getPropertyValue(name)
            || (now.getPropertyValue(name) !== above.getPropertyValue(name) && !node.hasAttribute(name)))
          own.push([name, now.getPropertyValue(name)]);
    } else {
      if (now.color !== above.color) own.push(["color", now.color]);
      if (now.backgroundColor !== "rgba(0, 0, 0, 0)" && !node.matches(".highlight *, pre *"))
        own.push(["background-color", now.backgroundColor], ["color", now.color]);
      for (const name of ["font-weight", "font-style"])
        if (now.getPropertyValue(name) !== above.getPropertyValue(name) && !node.matches("th, caption"))
          own.push([name, now.getPropertyValue(name)]);
    }
    told.push([node, own.map(([name, value]) => `${name}:${value}`).join(";")]);
  }
  const sized = [...article.querySelectorAll("svg")].map((svg) => [svg, svg.getBoundingClientRect().width]);
  for (const node of article.querySelectorAll("[style]")) node.removeAttribute("style");
  for (const [node, style] of told) style ? node.setAttribute("style", style) : node.removeAttribute("style");
  for (const [svg, width] of sized) if (width) svg.setAttribute("style", `width:${Math.round(width)}px`);
  invisible.forEach((node) => node.remove());
  for (const code of article.querySelectorAll("details.hide"))
    if (!code.querySelector(".cell_output")) code.remove();
  article.querySelectorAll(`script, style, template, button, input, select, fieldset, form, .widget-controls,
    .headerlink, .exercise-row, .copybtn, .predict-row, .toctree-wrapper, label,
    progress`).forEach((node) => node.remove());
  // 3. folds and outputs as ordinary blocks
  const renamed = (node, name, kind) => {
    const other = document.createElement(name);
    if (node.id) other.id = node.id;
    other.className = kind;
    other.append(...node.childNodes);
    node.replaceWith(other);
  };
  for (const node of article.querySelectorAll("summary")) {
    node.querySelectorAll("p.collapsed, .sd-octicon").forEach((each) => each.remove());
    node.querySelectorAll("p").forEach((each) => each.replaceWith(...each.childNodes));
    node.textContent.trim() ? renamed(node, "p", "fold") : node.remove();
  }
  article.querySelectorAll("details").forEach((node) => renamed(node, "div", "folded"));
  article.querySelectorAll("output").forEach((node) => renamed(node, node.closest("p") ? "span" : "div", "said"));
  article.querySelectorAll("p > div, p > table, span > div, span > table").forEach((node) => {
    const around = node.parentElement;
    if (["P", "SPAN"].includes(around.tagName)) renamed(around, "div", around.className);
  });
  // 4. links lead within the book, or to the site, or nowhere
  for (const link of article.querySelectorAll("a")) {
    const href = link.getAttribute("href") ?? link.getAttribute("xlink:href") ?? "";
    const [path, place = ""] = href.split("#");
    const page = path ? decodeURI(path).replace(/\.html$/, "") : kept.here;
    if (/^[a-z]+:/.test(href)) continue;
    const there = `${path && `${page}.xhtml`}${place || !path ? `#${place}` : ""}`;
    if (kept.pages.includes(page)) link.setAttribute("href", there);
    else if (kept.site) link.setAttribute("href", new URL(href, kept.site).href);
    else if (drawn(link)) link.replaceWith(...link.childNodes);
    else renamed(link, "span", "");
  }
  // 5. what belongs to a live page only
  const live = "aria-(live|selected|pressed|controls|expanded|valuetext|current|describedby)";
  const other = "align|border|summary|autocomplete|target|rel|decoding|loading|download";
  const names = new RegExp(`^(data-.*|on.*|tabindex|${live}|${other})$`);
  for (const node of [article, ...article.querySelectorAll("*")]) {
    for (const {name} of [...node.attributes])
      if (names.test(name) || (name === "class" && !node.className)) node.removeAttribute(name);
    const role = node.getAttribute("role");
    if (role && !["img", "note", "table"].includes(role)) node.removeAttribute("role");
    if (node.matches(":is(div, span, p, li, td, g, text, a):not([role])")) node.removeAttribute("aria-label");
    if (node.tagName === "svg" && node.getAttribute("aria-label")) node.setAttribute("role", "img");
    if (!node.namespaceURI.includes("MathML")) continue;
    for (const name of ["displaystyle", "scriptlevel"]) node.removeAttribute(name);
  }
  const ids = new Set();
  for (const node of article.querySelectorAll("[id]")) ids.has(node.id) ? node.removeAttribute("id") : ids.add(node.id);
  for (const link of article.querySelectorAll('a[href^="#"]')) {
    const place = decodeURIComponent(link.getAttribute("href").slice(1));
    if (!ids.has(place)) drawn(link) ? link.replaceWith(...link.childNodes) : renamed(link, "span", "");
  }
  for (const list of article.querySelectorAll("ul, ol, dl, table, tbody, thead, tr"))
    if (!list.children.length) list.remove();
  const heading = (node) => node.textContent.replace(/#$/, "").trim();
  const headings = [...article.querySelectorAll("section[id] > h2")];
  const sections = headings.map((node) => [node.parentElement.id, heading(node)]);
  const images = [...article.querySelectorAll("img")].map((image) => image.getAttribute("src"));
  const xml = [...article.childNodes].map((node) => new XMLSerializer().serializeToString(node)).join("\n");
  return {xml, title: heading(article.querySelector("h1")), sections, images, ids: [...ids]};
}"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head><meta charset="utf-8"/><title>{title}</title><link rel="stylesheet" type="text/css" href="book.css"/></head>
<body>{body}</body>
</html>
"""
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book/content.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en"
 prefix="schema: http://schema.org/">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{identifier}</dc:identifier><dc:title>{title}</dc:title><dc:language>en</dc:language>
<dc:creator>{author}</dc:creator><dc:rights>{rights}</dc:rights>
<meta property="dcterms:modified">{modified}</meta>
{access}
</metadata>
<manifest>{manifest}</manifest>
<spine>{spine}</spine>
</package>
"""


class Taken(NamedTuple):
    """A page of the site, converted to a document of the EPUB."""

    name: str
    title: str
    xml: str
    sections: list[tuple[str, str]]
    images: list[str]
    ids: list[str]


def chapters() -> list[str]:
    """Return the names of the pages in the EPUB, in order."""
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    return [*re.findall(r"- file: (\d\d_\S+)", contents), *FURTHER]


def write_epub(site: Path, target: Path, pages: list[str] | None = None, address: str = "") -> Path:
    """Write pages of a built site into one EPUB 3, and return its path. Needs Chromium.

    pages: their names; by default all chapters, the notation and the references.
    address: of the published site, to which links to other pages lead; without one they are plain text.
    """
    pages = chapters() if pages is None else pages
    named = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=named, args=["--no-sandbox"])
        taken = [take(browser, site, page, pages, address) for page in pages]
        cover = draw_cover(browser)
        browser.close()
    places = {page.name: {*page.ids} for page in taken}
    taken = [page._replace(xml=without_dead_links(page.xml, places)) for page in taken]
    pictures = {name: site / name for page in taken for name in page.images}
    temporary = target.with_suffix(".new")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        for name, content in documents(taken, cover, pictures).items():
            archive.writestr(f"book/{name}", content)
    temporary.replace(target)
    return target


def take(browser: Browser, site: Path, name: str, pages: list[str], address: str) -> Taken:
    """Return one page of the site as the article of an EPUB's document."""
    window = browser.new_page(color_scheme="light", viewport={"width": WIDTH, "height": 1000})
    window.add_init_script("localStorage.setItem('mode', 'light'); localStorage.setItem('theme', 'light')")
    window.goto((site / f"{name}.html").as_uri(), timeout=120_000)
    window.wait_for_function("[...document.querySelectorAll('.widget')].every((each) => each.childElementCount)")
    found = window.evaluate(TAKE, {"pages": pages, "here": name, "site": address})
    window.close()
    # no text of XML may hold most control characters, and a colored output may
    xml = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", found["xml"])
    sections = [(place, title) for place, title in found["sections"]]
    return Taken(name, found["title"], xml, sections, [each for each in found["images"] if each], found["ids"])


def without_dead_links(xml: str, places: dict[str, set[str]]) -> str:
    """Return a document whose links to missing anchors of other documents lead to their beginnings."""

    def alive(link: re.Match) -> str:
        return link[0] if link[2] in places.get(link[1], ()) else f'href="{link[1]}.xhtml"'

    return re.sub(r'href="([^":#]+)\.xhtml#([^"]*)"', alive, xml)


def draw_cover(browser: Browser) -> bytes:
    """Return the cover, a PNG: the title and the course's first attention map."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    logo = (ROOT / "book" / "assets" / "logo-light.svg").read_text(encoding="utf-8")
    window = browser.new_page(viewport=COVER)
    window.set_content(
        "<style>body { margin: 0; height: 100vh; display: flex; flex-direction: column; align-items: center;"
        "justify-content: space-evenly; background: white; color: #14181e; font-family: serif; text-align: center }"
        "h1 { font-size: 130px; margin: 0 60px; font-weight: normal } svg { width: 640px; height: 640px }"
        "p { font: 44px sans-serif }</style>"
        f"<h1>{escape(settings['title'])}</h1>{logo}<p>{escape(settings['author'])}</p>"
    )
    picture = window.screenshot(type="png")
    window.close()
    return picture


def documents(taken: list[Taken], cover: bytes, pictures: dict[str, Path]) -> dict[str, str | bytes]:
    """Return every file of the book: its name in the archive -> its content."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    title, author = escape(settings["title"]), escape(settings["author"])
    files: dict[str, str | bytes] = {"book.css": STYLE, "cover.png": cover}
    shown = f'<section class="cover" epub:type="cover"><img src="cover.png" alt="{title}, by {author}"/></section>'
    files["cover.xhtml"] = PAGE.format(title=title, body=shown)
    files["nav.xhtml"] = PAGE.format(title="Contents", body=contents(taken))
    for page in taken:
        body = page.xml
        for name in page.images:
            body = body.replace(f'"{escape(name)}"', f'"images/{Path(name).name}"')
        files[f"{page.name}.xhtml"] = PAGE.format(title=escape(page.title), body=body)
    files |= {f"images/{path.name}": path.read_bytes() for path in pictures.values()}
    modified = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp())), datetime.timezone.utc
    )
    items = [item(name, content) for name, content in files.items()]
    spine = ["cover", "nav", *(page.name for page in taken)]
    files["content.opf"] = PACKAGE.format(
        identifier=uuid.uuid5(uuid.NAMESPACE_URL, "attention-by-hand").urn,
        title=title,
        author=author,
        rights=escape(f"{settings['copyright']}. Text and figures: CC BY 4.0"),
        modified=modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
        access="\n".join(f'<meta property="{name}">{value}</meta>' for name, value in ACCESS),
        manifest="\n".join(items),
        spine="".join(f'<itemref idref="{_id(name)}.xhtml"/>' for name in spine),
    )
    return files


def contents(taken: Iterable[Taken]) -> str:
    """Return the table of contents: every chapter and its sections."""
    lines = []
    for page in taken:
        inner = "".join(
            f'<li><a href="{page.name}.xhtml#{place}">{escape(title)}</a></li>' for place, title in page.sections
        )
        below = f"<ol>{inner}</ol>" if inner else ""
        lines.append(f'<li><a href="{page.name}.xhtml">{escape(page.title)}</a>{below}</li>')
    return f'<nav epub:type="toc"><h1>Contents</h1><ol>{"".join(lines)}</ol></nav>'


def item(name: str, content: str | bytes) -> str:
    """Return a file's line in the manifest, with what a reading system must know of it."""
    kind = "application/xhtml+xml" if name.endswith(".xhtml") else mimetypes.guess_type(name)[0]
    properties = ["nav"] * (name == "nav.xhtml") + ["cover-image"] * (name == "cover.png")
    if isinstance(content, str) and name.endswith(".xhtml"):
        properties += [each for mark, each in (("<svg", "svg"), ("<math", "mathml")) if mark in content]
    said = f' properties="{" ".join(properties)}"' if properties else ""
    return f'<item id="{_id(name)}" href="{name}" media-type="{kind}"{said}/>'


def _id(name: str) -> str:
    return f"f-{name.replace('/', '-')}"
