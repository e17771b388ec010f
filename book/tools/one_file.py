"""The book as one file: everything as a zip that works from a disk, or all chapters as a PDF to print."""

import collections
import os
import re
import shutil
import zipfile
from pathlib import Path

import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parents[2]
NAME = "attention-by-hand"
FIRST = (1980, 1, 1, 0, 0, 0)  # the date of each file in the zip, so that equal contents make equal files
# Pages of A4, wider at the side where they are bound; at the outer corners the title of the book or of the chapter, and
# the number. A chapter's pages have its name, so that its title can stand above them.
PAGES = """@page {{ size: A4; margin: 24mm 16mm 20mm }}
@page :left {{ margin-right: 24mm; @top-left {{ content: "{title}"; {small} }}
  @bottom-left {{ content: counter(page); {small} }} }}
@page :right {{ margin-left: 24mm; @bottom-right {{ content: counter(page); {small} }} }}
@page cover {{ margin: 0; @bottom-right {{ content: none }} }}
{chapters}"""
CHAPTER_PAGES = """@page {name}:right {{ @top-right {{ content: "{title}"; {small} }} }}
article[id="{page}"] {{ page: {name} }}
"""
SMALL = "font: 9pt sans-serif; color: #555"
DOCUMENT = """<!doctype html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">
<title>{title}</title>{head}<style>
{pages}
body {{ display: block }} article, .road {{ break-before: page }}
.cover {{ page: cover; height: 100vh; display: flex; flex-direction: column; align-items: center; text-align: center;
  justify-content: space-evenly }} .cover h1 {{ font-size: 44pt; margin: 0 }} .cover svg {{ width: 80mm; height: 80mm }}
.road {{ page: contents; list-style: none; font-size: 1.2rem; line-height: 2 }}
h1, h2, h3, summary, caption {{ break-after: avoid }}
table, svg, .highlight, .math, .admonition-title {{ break-inside: avoid }}
p {{ orphans: 3; widows: 3 }}
.widget, .predict {{
  border: 0 !important; box-shadow: none !important; background: none !important; padding: 0 !important }}
.widget-controls, .widget button, .widget input, .widget select, .predict-row, .predict-said, .widget-id {{
  display: none !important }}
details::details-content {{ content-visibility: visible }}
*, * > summary ~ * {{ animation: none !important; opacity: 1 !important }}
button, .exercise-row, .headerlink {{ display: none !important }}
</style></head><body><div class="cover"><h1>{title}</h1>{logo}<p>{author}</p><p>{copyright}</p></div>
<ol class="road">{contents}</ol>{chapters}</body></html>"""


def pack(site: Path, exercises: Path, folder: Path) -> Path:
    """Write the site and the exercises into one zip in a folder, and return its path.

    The site lies in `book/`; `read me first.html` beside it leads there.
    """
    target = folder / f"{NAME}.zip"
    files = {f"book/{path.relative_to(site).as_posix()}": path for path in site.rglob("*") if path.is_file()}
    exercise_files = [path for path in exercises.glob("[0-9]*/*") if path.is_file()]
    files |= {f"exercises/{path.relative_to(exercises).as_posix()}": path for path in exercise_files}
    temporary = target.with_suffix(".new")
    with zipfile.ZipFile(temporary, "w") as archive:
        for name, path in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(f"{NAME}/{name}", FIRST), path.read_bytes(), zipfile.ZIP_DEFLATED)
        start = '<!doctype html><meta charset="utf-8"><a href="book/index.html">Open the book</a>\n'
        archive.writestr(zipfile.ZipInfo(f"{NAME}/read me first.html", FIRST), start)
    temporary.replace(target)
    return target


def offer(packed: Path, site: Path) -> None:
    """Put the zip into the site, and a link to it at the end of the landing page."""
    shutil.copyfile(packed, site / packed.name)
    size = f"{packed.stat().st_size / 1e6:.1f} MB"
    link = f'<a class="exercise-link" href="{packed.name}" download>The book and all exercises in one file, {size}</a>'
    landing = site / "index.html"
    page = landing.read_text(encoding="utf-8")
    before, end, after = page.rpartition("</article>")
    landing.write_text(f'{before}<p class="exercise-row">{link}</p>\n{end}{after}', encoding="utf-8")


def print_book(site: Path, target: Path, pages: list[str] | None = None) -> Path:
    """Print a title page, the contents and all chapters of a built site into one PDF, and return its path.

    pages: names of pages to print; by default those of the table of contents that begin with a number. Needs Chromium.
    """
    from playwright.sync_api import sync_playwright  # the zip does without

    if pages is None:
        pages = re.findall(r"- file: (\d\d_\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    whole = site / "in-one-piece.html"  # beside the pages, so that what they load is found
    whole.write_text(in_one_piece(site, pages), encoding="utf-8")
    named = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=named, args=["--no-sandbox"])
            window = browser.new_page(color_scheme="light")
            window.goto(whole.as_uri(), timeout=120_000)
            window.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
            window.pdf(path=target, prefer_css_page_size=True, outline=True, tagged=True)
            browser.close()
    finally:
        whole.unlink()
    return target


def in_one_piece(site: Path, pages: list[str]) -> str:
    """Return one page with the articles of all these pages, whose links lead within it.

    Folded code whose result is seen without it, such as a picture's, is left out.
    """
    soups = {page: BeautifulSoup((site / f"{page}.html").read_text(encoding="utf-8"), "html.parser") for page in pages}
    articles = {page: soup.select_one("article") for page, soup in soups.items()}
    seen = collections.Counter(node["id"] for article in articles.values() for node in article.select("[id]"))
    for page, article in articles.items():
        for folded in article.select("details.hide:not(:has(.cell_output))"):
            folded.decompose()  # code that draws or imports; on paper half of the pages would be such code
        article["id"] = page
        for node in article.select("[id]"):
            node["id"] = name_in_one_piece(page, node["id"], seen)
        for link in article.select("a[href]"):
            link["href"] = link_in_one_piece(page, link["href"], seen, pages)
    first = soups[pages[0]]
    links = [str(link) for link in first.select('head link[rel="stylesheet"]')]
    scripts = {script["src"].partition("?")[0] for soup in soups.values() for script in soup.select("script[src]")}
    in_order = sorted(filter(is_own, scripts), key=lambda source: ("widgets.js" not in source, source))  # tools first
    drawn = [f'<script defer src="{source}"></script>' for source in in_order]
    for article in articles.values():
        for script in article.select("script[src]"):
            script.decompose()
    contents = "".join(f'<li><a href="#{page}">{title_of(article)}</a></li>' for page, article in articles.items())
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    titles = {page: title_of(article) for page, article in articles.items()}
    return DOCUMENT.format(
        pages=pages_of(settings["title"], titles),
        logo=(ROOT / "book" / "assets" / "logo-light.svg").read_text(encoding="utf-8"),
        head="".join([*links, *drawn, awaited_fonts(site)]),
        contents=contents,
        chapters="".join(map(str, articles.values())),
        **{key: settings[key] for key in ("title", "author", "copyright")},
    )


def pages_of(title: str, chapters: dict[str, str]) -> str:
    """Return the CSS rules for printed pages: margins, numbers, and the title above each page."""
    each = "".join(
        CHAPTER_PAGES.format(name=f"chapter-{page}", page=page, title=said.replace('"', "'"), small=SMALL)
        for page, said in chapters.items()
    )
    return PAGES.format(title=title, chapters=each, small=SMALL)


def awaited_fonts(site: Path) -> str:
    """Return font rules that block rendering, for paper, in place of rules that do not."""
    faces = re.findall(r"@font-face *\{[^}]*font-display: optional[^}]*\}", _read(site / "_static" / "site.css"))
    told = "".join(faces).replace("font-display: optional", "font-display: block")
    moved = told.replace('url("', 'url("_static/')
    return f"<style>{moved}</style>"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def is_own(source: str) -> bool:
    """Return whether a script is the book's, which draws widgets, and not the theme's."""
    return (ROOT / "book" / "assets" / Path(source).name).exists() or "live_model.js" in source


def title_of(article: Tag) -> str:
    """Return the title of a chapter."""
    return article.select_one("h1").get_text().rstrip("#").strip()


def name_in_one_piece(page: str, name: str, seen: dict[str, int]) -> str:
    """Return the name of an anchor in the joined page: its own, with its page's name if it is not unique."""
    return name if seen.get(name, 0) < 2 else f"{page}-{name}"


def link_in_one_piece(page: str, link: str, seen: dict[str, int], pages: list[str]) -> str:
    """Return the target of a page's link in the joined page."""
    path, mark, place = link.partition("#")
    there = page if not path else path.removesuffix(".html")
    if there not in pages:
        return link
    return f"#{name_in_one_piece(there, place, seen)}" if mark and place else f"#{there}"
