"""Removes unused scripts from finished pages: the theme's are loaded when a reader interacts with the page, those of
other pages not at all.

The theme's templates write these tags in many places, so the finished page is changed, and a test
looks at what came out.
"""

import re

from sphinx.application import Sphinx

# Sets light or dark before anything is drawn; the theme's own waits for a script, and calls an empty mode an error.
# And asks for the serif before the style sheet does, since text is set in it only if it has arrived when the page is
# first drawn; a page opened from the disk has it at hand, and browsers forbid it to ask ahead.
# Without JavaScript a page is light: the theme's colors and ours are both those of `data-theme`, which the page is
# written with. `data-mode` says that scripts run.
AT_ONCE = """<script>(() => {
  let mode = "auto";
  try { mode = localStorage.getItem("mode") || mode; } catch { /* storage is forbidden: follow the system */ }
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const page = document.documentElement.dataset;
  Object.assign(page, { mode, theme: mode === "auto" ? system : mode });
  for (const cut of location.protocol === "file:" ? [] : ["400-normal", "400-italic", "600-normal"]) {
    const font = { rel: "preload", as: "font", type: "font/woff2", crossOrigin: "" };
    const href = `${page.content_root}_static/vendor/serif/source-serif-4-latin-${cut}.woff2`;
    document.head.append(Object.assign(document.createElement("link"), font, { href }));
  }
})();</script>"""

# pattern, what takes its place
EVERYWHERE = (
    (r"<html(?![^>]*data-theme)", '<html data-theme="light"'),
    (r'<script data-cfasync="false">.*?</script>', AT_ONCE),
    (r"\s*<!-- So that users can add custom icons -->\s*<script src=[^>]*fontawesome[^>]*></script>", ""),
    (r'\s*<link rel="preload" as="script"[^>]*>', ""),  # they are needed last and would come first
    (r"\s*<link[^>]*sphinx-thebe\.css[^>]*>", ""),
    (
        r"\s*<script>DOCUMENTATION_OPTIONS\.pagename = [^<]*</script>",
        "",
    ),  # for a switch of versions, which there is not
    # Names that a screen reader says must be the words that are seen.
    (r'(<button class="btn search-button-field[^>]*) aria-label="Search"', r"\1"),
    (r'<span class="search-button__kbd-shortcut">', '<span class="search-button__kbd-shortcut" aria-hidden="true">'),
    (r'(<i class="theme-switch[^>]*) title="[^"]*"', r"\1"),
    # Names, punctuation and blanks in code have the color of the text around them, light and dark.
    (r'<span class="(?:n|nn|p|w)">([^<]*)</span>', r"\1"),
)
NEEDED_BY = {  # a file of the theme -> what a page that needs it contains
    "design-tabs.js": 'class="sd-tab-set',
    "togglebutton": 'class="toggle ',
    "copybutton": '<div class="highlight',
    "clipboard": '<div class="highlight',
    "mystnb": 'class="cell',
    "sphinx-design": 'class="sd-',
    "predict.js": 'class="predict',
    "asides.js": 'class="aside"',
}
TAG = re.compile(r'[ \t]*<(?:script|link)\b[^>]*(?:src|href)="[^"]*_static/([^"?]+)[^"]*"[^>]*>(?:</script>)?\n?')


def without_unused(page: str) -> str:
    """Return the page without the theme's scripts and styles that nothing on it needs."""

    def keep(tag: re.Match) -> str:
        marks = [mark for name, mark in NEEDED_BY.items() if name in tag[1]]
        return tag[0] if all(mark in page for mark in marks) else ""

    return TAG.sub(keep, page)


def deferred(page: str) -> str:
    """Return the page with every script from a file run in order after the page is read."""
    return re.sub(r"<script (?![^>]*\b(?:defer|async)\b)(?=[^>]*\bsrc=)", "<script defer ", page)


def one_viewport(page: str) -> str:
    """Return the page with only the first of its viewport lines."""
    first, *others = re.findall(r'[ \t]*<meta name="viewport"[^>]*>', page)
    head, _, rest = page.partition(first)
    for other in others:
        rest = rest.replace(other, "", 1)
    return head + first + rest


def lighten(page: str) -> str:
    """Return a finished page without the scripts and styles that it does not use."""
    for pattern, instead in EVERYWHERE:
        page = re.sub(pattern, lambda found, instead=instead: found.expand(instead), page, flags=re.DOTALL)
    return deferred(without_unused(one_viewport(page)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the change of every rendered page."""
    app.connect("builder-inited", change_templates)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def change_templates(app: Sphinx) -> None:
    """Let the builder's templates return lightened pages."""
    templates = getattr(app.builder, "templates", None)
    if templates is None:
        return
    render = templates.render

    def render_light(template: str, context: dict) -> str:
        text = render(template, context)
        return lighten(text) if "</head>" in text else text

    templates.render = render_light
