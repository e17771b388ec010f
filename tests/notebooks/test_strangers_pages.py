"""What a student writes into a notebook, on formgrader's page of it in Chromium: it shows, and it does nothing."""

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import nbformat
import nbgrader
import pytest
from lab_server import PATIENCE, ROOT
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import Browser, Page

from autograder.reports import results

MATHJAX = Path("book", "assets", "vendor", "mathjax")
OVER_THE_PAGE = "position:fixed;top:0;left:0;width:100vw;height:100vh;background-image:url(http://127.0.0.1:1/seen)"
STRIKE = "javascript:window.struck=1"

HOSTILE_FORMULAS = (
    rf"\style{{{OVER_THE_PAGE}}}{{\href{{{STRIKE}}}{{z}}}}",
    rf"\href{{{STRIKE}}}{{\text{{click}}}}",
    rf'\mmlToken{{mi}}[href="{STRIKE}"]{{click}}',
    rf'\mmlToken{{mi}}[style="{OVER_THE_PAGE}"]{{cover}}',
    r'\mmlToken{mi}[class="modal-backdrop" id="notebook"]{cover}',
    r"\class{navbar-fixed-top}{c} \cssId{notebook-container}{i} \data{x=1}{d}",
    r"\require{html}\href{https://elsewhere.example}{z}",
    r"\require{../../../../../../../files/strike}x",
    r"\bbox[position:fixed;top:0;left:0;width:100vw;height:100vh;border:9999px solid red]{x}",
    r"\unicode[url(http://127.0.0.1:1/font)]{65}",
    r"\ce{H2O} \pu{1 m}",
    r"\begin{equation}x\label{here}\end{equation}\ref{here}",
    r"\def\again{\again\again}\again",
)
HONEST_FORMULAS = (
    r"\operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V",
    r"\begin{pmatrix}1&0&2\\0&1&-1\end{pmatrix}",
    r"\color{red}{a} + \boldsymbol{b} + \cancel{c} + \bbox[yellow]{d} + \enclose{circle}{e}",
    r"\begin{aligned}a &< b \\ c &= d\end{aligned}",
)
HOSTILE_HTML = (
    "<script>window.struck=1</script>",
    '<img src=x onerror="window.struck=1">',
    '<img src="http://127.0.0.1:1/seen">',
    f'<a href="{STRIKE}">click</a>',
    '<a href="data:text/html,<script>1</script>">click</a>',
    f'<a href="https://elsewhere.example" class="navbar-fixed-top" style="{OVER_THE_PAGE}">cover</a>',
    '<svg onload="window.struck=1"><a href="javascript:window.struck=1"><text>z</text></a></svg>',
    '<iframe srcdoc="<script>parent.struck=1</script>"></iframe>',
    '<form action="https://elsewhere.example"><button>send</button></form>',
    '<div id="notebook-container"></div><base href="http://127.0.0.1:1/">',
    '<details open ontoggle="window.struck=1"><summary>s</summary></details>',
    '<math><mtext><style><img src=x onerror="window.struck=1"></style></mtext></math>',
    "<style>body{display:none}</style>",
)


def hostile_notebook() -> nbformat.NotebookNode:
    """One cell for each thing tried, in markdown and in outputs."""
    cells = [new_markdown_cell(f"${formula}$") for formula in HOSTILE_FORMULAS]
    cells += [new_markdown_cell(html) for html in HOSTILE_HTML]
    bundles = [{"text/html": html} for html in HOSTILE_HTML] + [{"text/markdown": html} for html in HOSTILE_HTML]
    bundles += [{"text/latex": f"${formula}$"} for formula in HOSTILE_FORMULAS]
    bundles += [{"image/svg+xml": HOSTILE_HTML[6]}, {"application/javascript": "window.struck=1"}]
    outputs = [new_output("display_data", data=bundle) for bundle in bundles]
    outputs.append(new_output("error", ename="<b>", evalue=HOSTILE_HTML[0], traceback=list(HOSTILE_HTML)))
    cells.append(new_code_cell("'</script><script>window.struck=1</script>'", outputs=outputs))
    cells += [new_markdown_cell(f"honest ${formula}$") for formula in HONEST_FORMULAS]
    cells.append(new_markdown_cell("# A title\n\ntwo *paragraphs*\n\nand `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |"))
    return new_notebook(cells=cells)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page as formgrader renders it, with the course's configuration, where formgrader would serve it."""
    folder = tmp_path_factory.mktemp("served")
    settings = results.configuration(ROOT)
    settings.HTMLExporter.template_name = "formgrade"  # as formgrader sets it
    about = dict.fromkeys(("assignment_id", "notebook_id", "submission_id", "student"), "x")
    about |= dict.fromkeys(("base_url", "first_name", "last_name", "notebook_path"), "") | {"index": 0, "total": 1}
    page, _ = HTMLExporter(config=settings).from_notebook_node(hostile_notebook(), about)
    place = folder / "formgrader" / "submissions" / "1"
    place.mkdir(parents=True)
    (place / "index.html").write_text(page, encoding="utf-8")
    shutil.copytree(ROOT / MATHJAX, folder / "files" / MATHJAX)
    (folder / "files" / "strike.js").write_text("window.struck=1", encoding="utf-8")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/formgrader/submissions/1/"
        server.shutdown()


@pytest.fixture(scope="module")
def page(served: str, browser: Browser) -> Iterator[Page]:
    """The page with its formulas set. `asked`: every address it asked for."""
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.asked = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(served)
    opened.wait_for_function("window.MathJax.Hub && window.MathJax.typesetPromise !== undefined", timeout=PATIENCE)
    opened.wait_for_function("document.querySelectorAll('mjx-container').length > 10", timeout=PATIENCE)
    yield opened
    opened.close()


def in_notebook(page: Page, script: str) -> list:
    """What a script finds, given every element of the notebook as `all`."""
    return page.evaluate(f"() => {{ const all = [...document.querySelectorAll('#notebook *')]; return {script} }}")


@pytest.mark.browser
def test_nothing_that_a_student_wrote_runs_at_once_or_at_a_click(page: Page) -> None:
    middles = in_notebook(
        page,
        "all.map(each => each.getBoundingClientRect())"
        ".filter(box => box.width && box.height).map(box => [box.x + box.width / 2, box.y + box.height / 2])",
    )
    assert len(middles) > 200
    page.evaluate("() => document.addEventListener('click', event => event.preventDefault())")  # we stay on the page
    for element in page.locator("#notebook-container mjx-container, #notebook-container a, #notebook summary").all():
        element.dispatch_event("click")
    page.mouse.click(600, 450)
    assert page.evaluate("window.struck") is None


@pytest.mark.browser
def test_no_formula_becomes_a_link_a_class_an_id_or_a_style_of_the_students(page: Page) -> None:
    found = in_notebook(page, "all.filter(each => each.closest('mjx-container')).map(each => each.outerHTML)")
    assert found
    for forbidden in ("<a ", "href=", "fixed", "url(", "modal-backdrop", "navbar", "notebook-container", "data-x"):
        assert [html for html in found if forbidden in html.lower()] == []


@pytest.mark.browser
def test_html_of_a_student_keeps_plain_links_and_loses_scripts_frames_and_styles(page: Page) -> None:
    links = in_notebook(page, "all.filter(each => each.href).map(each => each.href)")
    assert set(links) == {"https://elsewhere.example/"}
    written = "all.filter(each => !each.closest('mjx-container'))"
    tags = set(in_notebook(page, f"{written}.map(each => each.localName)"))
    assert tags & {"script", "iframe", "svg", "form", "base", "style", "math", "object"} == set()
    attributes = in_notebook(page, f"{written}.flatMap(each => each.getAttributeNames())")
    assert [name for name in attributes if name.startswith("on")] == []


@pytest.mark.browser
def test_the_page_asks_nobody_else_for_anything(page: Page, served: str) -> None:
    home = served.split("/formgrader/")[0]
    ours = [url for url in page.asked if url.startswith((home, "data:", "blob:"))]
    templates_own = ("/formgrader/static/", "cdnjs.cloudflare.com")
    assert [url for url in page.asked if url not in ours and not any(name in url for name in templates_own)] == []
    assert [url for url in page.asked if "strike" in url] == []


@pytest.mark.browser
def test_honest_formulas_and_markdown_look_as_they_were_meant(page: Page) -> None:
    honest = page.locator("#notebook-container .text_cell", has_text="honest")
    assert honest.count() == len(HONEST_FORMULAS)
    for place in range(len(HONEST_FORMULAS)):
        assert honest.nth(place).locator("mjx-container").count() == 1
        assert honest.nth(place).locator("mjx-merror, [data-mjx-error], mjx-mtext[style*=red]").count() == 0
    last = page.locator("#notebook-container .text_cell").last
    assert [last.locator(tag).count() for tag in ("h1", "p", "em", "code", "th", "td")] == [1, 2, 1, 1, 2, 2]
    assert "<p>" not in last.inner_text()


def test_nbgraders_own_template_still_renders_markdown_by_the_filters_that_are_cleaned() -> None:
    """A template that renders a student's text by another filter would need cleaning of its own."""
    folder = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates" / "formgrade"
    text = (folder / "index.html.j2").read_text(encoding="utf-8")
    assert {line.strip() for line in text.splitlines() if "cell.source" in line} == {
        "{{ cell.source  | markdown2html | strip_files_prefix }}",
        "{{ cell.source | highlight_code(metadata=cell.metadata) }}",
    }
