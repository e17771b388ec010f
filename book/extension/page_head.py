"""What a page says of itself to search engines and to whoever passes its link on.

A description, from the page's front matter (`myst: {html_meta: {description: ...}}`) or its first paragraphs; a title
that says more than the book's name; the tags that make a link a card. Where the site's address is known (repository.py)
also a canonical link, a preview image and sitemap.xml. And 404.html, which finds the book from any depth.
"""

import json
import re
import shutil
from html import escape
from pathlib import Path

from about import version
from docutils import nodes
from repository import address_of_site, code_address
from sphinx.application import Sphinx

SHORT, LONG = 100, 200  # characters: a description says at least this, and search engines show no more
MANIFEST = "site.webmanifest"
PREVIEW = "_static/preview.png"
PREVIEW_SAYS = (
    "Attention by Hand: the weights with which each of the four words I closed the windows attends to all of them."
)
LANDING_TITLE = "Build the Transformer, one number at a time"
WITHOUT_TEXT = {
    "search": "Search the chapters, exercises and reference pages of Attention by Hand.",
    "genindex": "Index of the terms that Attention by Hand defines.",
}


def description(doctree: nodes.document | None, page: str) -> str:
    """Return a page's description: its first paragraphs, cut at the end of a sentence or of a word."""
    if doctree is None:
        return WITHOUT_TEXT.get(page, "A page of Attention by Hand.")
    said = ""
    for paragraph in doctree.findall(nodes.paragraph):
        if not isinstance(paragraph.parent, nodes.section) or "chapter-time" in paragraph["classes"]:
            continue  # of a card, a box or a list
        said = f"{said} {' '.join(paragraph.astext().split())}".strip()
        if len(said) >= SHORT:
            break
    return shortened(said)


def shortened(text: str) -> str:
    """Return the text if it is short enough, else its first sentences or words."""
    if len(text) <= LONG:
        return text
    sentences = re.match(rf".{{{SHORT},{LONG - 1}}}[.?!](?= )", text)
    return sentences[0] if sentences else f"{text[: LONG - 2].rsplit(' ', 1)[0].rstrip(',;:')} …"


def add_tags(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Add description and card to a page's head, and set the landing page's title."""
    if page == app.config.root_doc:
        context["title"] = LANDING_TITLE
    name = app.config.html_title or app.config.project
    given = re.search(r'<meta content="([^"]*)" name="description"', context.get("metatags") or "")
    said = given[1] if given else escape(description(doctree, page))
    title = escape(re.sub(r"<[^>]+>", "", context.get("title") or name))
    tags = [] if given else [("name", "description", said)]
    tags += [("property", "og:site_name", escape(name)), ("property", "og:type", "article")]
    tags += [("property", "og:title", title), ("property", "og:description", said)]
    tags += [("name", "twitter:title", title), ("name", "twitter:description", said)]
    if address := address_of_site():
        tags += [("property", "og:url", f"{address}{app.builder.get_target_uri(page)}")]
        tags += [("property", "og:image", f"{address}{PREVIEW}"), ("property", "og:image:alt", PREVIEW_SAYS)]
        tags += [("property", "og:image:width", "1200"), ("property", "og:image:height", "630")]
        tags += [("name", "twitter:card", "summary_large_image"), ("name", "twitter:image", f"{address}{PREVIEW}")]
    else:
        tags += [("name", "twitter:card", "summary")]
    written = "\n".join(f'<meta {kind}="{name}" content="{content}" />' for kind, name, content in tags)
    written += f'\n<link rel="manifest" href="{"../" * page.count("/")}{MANIFEST}" />'
    context["metatags"] = f"{context.get('metatags') or ''}\n{written}\n"
    context["theme_extra_footer"] = footer(app, context)


def footer(app: Sphinx, context: dict) -> str:
    """Return the line below every page: how to cite, and where to report a mistake if that is known."""
    about = context["pathto"]("reference/about")
    links = [f'<a href="{about}">Version {app.config.course_version}, how to cite, license</a>']
    if code := code_address():
        links += [f'<a href="{code}">The code</a>', f'<a href="{code}/issues">Report a mistake</a>']
    return f'<p class="course-footer">{" · ".join(links)}</p>'


def set_address(app: Sphinx, config) -> None:
    """Let Sphinx write canonical links where the site's address is known."""
    if address := address_of_site():
        config.html_baseurl = address
    config.course_version = version()


def write_site_files(app: Sphinx, error: Exception | None) -> None:
    """Write 404.html, the files for installing the book as an app, and sitemap.xml if the address is known."""
    if error or app.builder.format != "html":
        return
    site, address = Path(app.outdir), address_of_site()
    (site / "404.html").write_text(lost_page(address, app.config.html_title or app.config.project), encoding="utf-8")
    shutil.copyfile(
        Path(__file__).parents[1] / "assets" / "offline.js", site / "sw.js"
    )  # it must stand above the pages
    (site / MANIFEST).write_text(json.dumps(manifest(app.config), indent=1), encoding="utf-8")
    sitemap = site / "sitemap.xml"
    sitemap.unlink(missing_ok=True)
    if address:
        pages = [f"{address}{app.builder.get_target_uri(page)}" for page in sorted(app.env.found_docs)]
        places = "\n".join(f"  <url><loc>{escape(place)}</loc></url>" for place in pages)
        schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{schema}">\n{places}\n</urlset>\n'
        sitemap.write_text(text, encoding="utf-8")


def manifest(config) -> dict:
    """Return the web app manifest, which a browser uses to install the book."""
    return {
        "name": config.html_title or config.project,
        "short_name": "Attention",
        "description": PREVIEW_SAYS,
        "start_url": "./index.html",
        "scope": "./",
        "display": "minimal-ui",
        "background_color": "#ffffff",
        "theme_color": "#0072b2",
        "icons": [
            {"src": "_static/apple-touch-icon.png", "sizes": "180x180", "type": "image/png"},
            {"src": "_static/logo-light.svg", "sizes": "any", "type": "image/svg+xml"},
        ],
    }


def lost_page(address: str, title: str) -> str:
    """Return the page for a missing address. A server shows it at any depth, so relative links do not work: it uses the
    site's address or, if unknown, looks for the book's search index in the folders above."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="robots" content="noindex" />
<title>There is no such page — {escape(title)}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 12vh auto; padding: 0 1.2rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1.5rem 0; }}
td, th {{ padding: 0.3rem 0.8rem; border: 1px solid #8c959f; text-align: right; font-weight: 400; }}
</style>
</head>
<body>
<main>
<h1>There is no such page</h1>
<p>Your query met every key of this book and fitted none. After softmax:</p>
<table>
<thead>
<tr><th scope="col">a page that moved</th><th scope="col">a mistyped address</th><th scope="col">our mistake</th></tr>
</thead>
<tbody><tr><td>0.333</td><td>0.333</td><td>0.333</td></tr></tbody>
</table>
<p><a id="home" href="{escape(address) or "/"}">To the first page of {escape(title)}</a></p>
</main>
<script>
(async () => {{
  const known = {"true" if address else "false"};
  if (known || location.protocol === "file:") return;
  const parts = location.pathname.split("/").slice(0, -1);
  for (let depth = parts.length; depth > 0; depth--) {{
    const folder = parts.slice(0, depth).join("/") + "/";
    const answer = await fetch(folder + "searchindex.js", {{ method: "HEAD" }}).catch(() => null);
    if (answer?.ok) {{ document.getElementById("home").href = folder + "index.html"; return; }}
  }}
}})();
</script>
</body>
</html>
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register everything above."""
    app.add_config_value("course_version", "", "html")
    app.connect("config-inited", set_address)
    app.connect("html-page-context", add_tags)
    app.connect("build-finished", write_site_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
