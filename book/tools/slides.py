"""The figures of a chapter as slides: one figure a page, with the section's title and a caption, as PDF.

    python -m book.tools.slides 05_self_attention        build/slides/05_self_attention.pdf
    python -m book.tools.slides                          every chapter

Chromium opens the built page (`make site`), so a slide shows what the book shows. The caption is the figure's own
description, which a screen reader hears too.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SITE, SLIDES = ROOT / "build" / "site", ROOT / "build" / "slides"
WIDTH, HEIGHT = 1280, 720  # CSS pixels of a slide
DECK = """
(chapter) => {
  const title = (node) => {
    const heading = node.closest("section")?.querySelector("h1, h2, h3")?.cloneNode(true);
    heading?.querySelectorAll(".headerlink").forEach((link) => link.remove());
    return heading?.textContent.trim() ?? "";
  };
  const found = document.querySelectorAll(".bd-article .cell_output svg.drawing[aria-label], .cell_output img[alt]");
  const figures = [...found].filter((figure) => !figure.closest(".widget, .for-phone")); // those that stand still
  const slides = figures.map((figure, place) => {
    const slide = document.createElement("section"), heading = document.createElement("h1");
    const holder = document.createElement("figure"), caption = document.createElement("figcaption");
    heading.textContent = title(figure);
    caption.textContent = figure.getAttribute("aria-label") ?? figure.alt;
    holder.append(figure.cloneNode(true));
    const foot = document.createElement("footer");
    foot.textContent = `${chapter} · ${place + 1} of ${figures.length}`;
    slide.className = "slide";
    slide.append(heading, holder, caption, foot);
    return slide;
  });
  document.documentElement.dataset.theme = "light";
  document.body.replaceChildren(...slides);
  document.title = chapter;
  return slides.length;
}
"""
STYLE = f"""
@page {{ size: {WIDTH}px {HEIGHT}px; margin: 0; }}
html, body {{ background: #fff !important; margin: 0; padding: 0; }}
.slide {{ box-sizing: border-box; width: {WIDTH}px; height: {HEIGHT}px; padding: 36px 60px 30px;
  break-after: page; overflow: hidden;
  display: grid; grid-template-rows: auto 1fr auto auto; gap: 14px; }}
.slide:last-child {{ break-after: auto; }}
.slide h1 {{ font-size: 34px; margin: 0; }}
.slide figure {{ margin: 0; min-height: 0; display: grid; place-items: center; }}
.slide figure > * {{ width: 100% !important; height: 100% !important; max-width: 100% !important;
  max-height: 440px; object-fit: contain; }}
.slide figcaption {{ font-size: 19px; line-height: 1.4; margin: 0; }}
.slide footer {{ font-size: 14px; color: #475569; }}
"""


def figures_to_pdf(browser: Browser, page_file: Path, pdf: Path) -> int:
    """Write the figures of one built page as slides; returns how many there are. Without figures nothing is written."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    try:
        page.emulate_media(media="screen", color_scheme="light", reduced_motion="reduce")
        page.goto(page_file.as_uri())
        count = page.evaluate(DECK, page.title().split(" — ")[0].split(" - ")[0])
        if count:
            page.add_style_tag(content=STYLE)
            pdf.parent.mkdir(parents=True, exist_ok=True)
            page.pdf(path=pdf, prefer_css_page_size=True, print_background=True)
        return count
    finally:
        page.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the slides; returns 0, or 2 where the book or a chapter of that name is missing."""
    parser = argparse.ArgumentParser(prog="python -m book.tools.slides", description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="such as 05_self_attention (default: all)")
    chosen = parser.parse_args(arguments)
    built = {path.stem: path for path in sorted(SITE.glob("*.html")) if re.match(r"\d\d_", path.stem)}
    if unknown := [name for name in chosen.chapters if name not in built]:
        there = ", ".join(built) or "nothing yet: make site"
        print(f"CHAPTER: expected one of the built chapters ({there}), got {unknown[0]!r}", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name in chosen.chapters or built:
            pdf = SLIDES / f"{name}.pdf"
            count = figures_to_pdf(browser, built[name], pdf)
            print(f"{pdf.relative_to(ROOT)}: {count} figures" if count else f"{name}: no figures")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
