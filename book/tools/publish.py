"""From what Sphinx wrote to what is uploaded: one short style sheet for all pages, and no file that no page asks for.

The theme's sheets are written for every site; of 550 KB the book uses a fifth. A rule stays if each class and id that
it names is somewhere in the site's pages or scripts, so that a page may change itself at will.
"""

import hashlib
import json
import re
import shutil
from pathlib import Path

import tinycss2

# Sphinx's own records, source maps, translations of search, and libraries that no page loads.
NOT_PUBLISHED = shutil.ignore_patterns(
    *(".buildinfo*", ".doctrees", "objects.inv.tmp", "*.map", "locales", "*webpack-macros.html"),
    *("fontawesome*", "mathjax", "embed.js*", "sphinx-thebe.*", "VENDORED.json", "*.png.svg"),
)
NOT_OFFLINE = ("_sources/", "_downloads/", "_notebooks/", "404.html", "offline.json", "sitemap.xml", "objects.inv")
SHEET = re.compile(r'[ \t]*<link\b[^>]*href="(?P<file>[^"?]+\.css)[^"]*"[^>]*>\n?')
IMPORT = re.compile(r"""@import\s+(?:url\()?["']?(?P<file>[^"')\s]+\.css)["']?\)?\s*;""")
WORD = re.compile(r"[A-Za-z_][\w-]*")
MARKED = re.compile(r"""\b(?:class|id)\s*=\s*["']([^"']*)|<script\b[^>]*>([^<]+)""")
NAMED = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")
MEDIA = {"media", "supports", "layer"}


def publish(built: Path, site: Path) -> None:
    """Copy a finished build, without unused files, to the folder `site`, which is recreated."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(built, site, ignore=NOT_PUBLISHED)
    join_styles(site)
    rank_search(site)
    list_for_offline(site)


def rank_search(site: Path) -> None:
    """Let the search page rank its results by search.js, which must be between Sphinx's scripts and the index."""
    page, script = site / "search.html", site / "_static" / "search.js"
    if not script.is_file():
        return
    version = hashlib.sha256(script.read_bytes()).hexdigest()[:8]
    tag = f'<script defer src="_static/search.js?v={version}"></script>'
    before, found, after = page.read_text(encoding="utf-8").partition('<script defer src="searchindex.js"></script>')
    if not found:
        raise ValueError(f"{page}: expected Sphinx's script of the search index, found none")
    page.write_text(f"{before}{tag}\n  {found}{after}", encoding="utf-8")


def list_for_offline(site: Path) -> None:
    """Write offline.json: the files that a browser stores for reading offline, their size and the version."""
    files = {path.relative_to(site).as_posix(): path for path in sorted(site.rglob("*")) if path.is_file()}
    kept = {name: path for name, path in files.items() if not name.startswith(NOT_OFFLINE)}
    digest = hashlib.sha256(b"".join(name.encode() + path.read_bytes() for name, path in kept.items()))
    size = sum(path.stat().st_size for path in kept.values())
    said = {"version": digest.hexdigest()[:12], "bytes": size, "files": list(kept)}
    (site / "offline.json").write_text(json.dumps(said), encoding="utf-8")


def join_styles(site: Path) -> None:
    """Let each page load one style sheet: those of all pages, in their order, without rules for what no page has."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    scripts = [
        path.read_text(encoding="utf-8") for path in (site / "_static").rglob("*.js") if "weights" not in path.name
    ]
    marked = [found[1] or found[2] for page in pages.values() for found in MARKED.finditer(page)]
    words = set(WORD.findall(" ".join([*marked, *scripts])))
    sheets: list[Path] = []
    for path, page in pages.items():
        found = [(path.parent / sheet["file"]).resolve() for sheet in SHEET.finditer(page)]
        for place, sheet in enumerate(found):
            if sheet not in sheets:  # after the sheet that it follows on this page
                before = sheets.index(found[place - 1]) + 1 if place else 0
                sheets.insert(before, sheet)
    if not sheets:
        return
    joined = "\n".join(prune(at_home(sheet, site / "_static"), words) for sheet in sheets)
    (site / "_static" / "site.css").write_text(joined, encoding="utf-8")
    version = hashlib.sha256(joined.encode()).hexdigest()[:8]
    for path, page in pages.items():
        path.write_text(one_link(page, version), encoding="utf-8")
    for sheet in sheets:
        sheet.unlink()


def one_link(page: str, version: str) -> str:
    """Return the page with its first style sheet exchanged for the joined one, and the others gone."""
    first = SHEET.search(page)
    if first is None:
        return page
    root = re.search(r'data-content_root="([^"]*)"', page)
    link = f'<link rel="stylesheet" href="{root[1] if root else "./"}_static/site.css?v={version}" />\n'
    return page[: first.start()] + link + SHEET.sub("", page[first.end() :])


def at_home(sheet: Path, home: Path) -> str:
    """Return a sheet's text, with the sheets that it imports, and with its addresses relative to `home`."""

    def moved(address: re.Match) -> str:
        if address[2].startswith(("data:", "#", "http")):
            return address[0]
        path, mark, rest = address[2].partition("#")
        return f"url({address[1]}{relative(sheet.parent / path.partition('?')[0], home)}{mark}{rest}{address[1]})"

    text = sheet.read_text(encoding="utf-8")
    imported = [at_home(sheet.parent / named["file"], home) for named in IMPORT.finditer(text)]  # they are in front
    return "".join([*imported, re.sub(r"""url\((["']?)(.*?)\1\)""", moved, IMPORT.sub("", text))])


def relative(path: Path, folder: Path) -> str:
    """Return the address of a file as seen from a folder above or beside it."""
    path, folder = path.resolve(), folder.resolve()
    up = next(place for place, parent in enumerate([folder, *folder.parents]) if path.is_relative_to(parent))
    return "../" * up + path.relative_to([folder, *folder.parents][up]).as_posix()


def prune(css: str, words: set[str]) -> str:
    """Return a style sheet without comments and without rules that none of these words can match."""
    return "".join(
        kept(rule, words) for rule in tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    )


def kept(rule, words: set[str]) -> str:
    """Return a rule for the joined sheet, or nothing."""
    if rule.type == "qualified-rule":
        selectors = [one for one in split(tinycss2.serialize(rule.prelude)) if may_match(one, words)]
        return f"{','.join(selectors)}{{{tight(rule.content)}}}\n" if selectors else ""
    if rule.type != "at-rule":
        return ""
    name = rule.lower_at_keyword
    head = f"@{name} {tinycss2.serialize(rule.prelude).strip()}"
    if name in MEDIA and rule.content is not None:
        inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        rules = "".join(kept(each, words) for each in inner)
        return f"{head}{{{rules}}}\n" if rules else ""
    if name == "import" or name == "charset":
        return ""
    if name == "font-face" and "Awesome" in tinycss2.serialize(rule.content):
        return ""
    return f"{head};\n" if rule.content is None else f"{head}{{{tight(rule.content)}}}\n"


def tight(content: list) -> str:
    """Return declarations on one line."""
    return re.sub(r"\s+", " ", tinycss2.serialize([each for each in content if each.type != "comment"])).strip()


def split(selectors: str) -> list[str]:
    """Return the selectors of a list, cut at the commas outside of brackets."""
    parts, depth = [""], 0
    for letter in selectors:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [re.sub(r"\s+", " ", part).strip() for part in parts]


def may_match(selector: str, words: set[str]) -> bool:
    """Return whether every class and id that a selector requires is among the words."""
    required = re.sub(r":(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^]]*\]", "", selector)
    return all(name in words for name in NAMED.findall(required.replace("\\", "")))
