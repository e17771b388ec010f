"""A small Sphinx extension that adds the book's own directives and changes cells, formulas and pages.

- `exercise-row`: the row under a chapter's title that hands out its exercise notebook.
- `course-road`: the chapters with their questions, linked where they are published.
- The cache of executed cells is keyed by the code they import, so a changed model is never shown old numbers.
- What a cell prints is shown exactly as printed, however the kernel happened to cut it into messages.
- Folded code says what it is, and a screen reader hears what is written on the fold.
- Formulas are numbered by chapter: 5.1 is the first of chapter 05.
- sphinx-thebe's scripts are dropped: they fetch from another server and fail on every page, even when off.
"""

import hashlib
import shutil
from collections.abc import Callable
from html import escape
from pathlib import Path

import myst_nb.core.render
from docutils import nodes
from myst_nb.core.execute.cache import NotebookClientCache
from repository import public_repository
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
FOREIGN_SCRIPTS = ("thebe", "unpkg.com")
# The files that cells can import: the package, and the grader's part that makes the reports in chapter 00.
PACKAGE = ("**/*.py", "**/*.js", "**/*.json")
REPORTS = (
    *("*.py", "judging/**/*.py", "diagnosis/**/*.py", "feedback/**/*.py", "inside/**/*.py"),
    *("catalogue/*.py", "catalogue/*.json", "sandbox/__init__.py", "sandbox/limited_process.py"),
    *("catalogue/ch*/__init__.py", "catalogue/ch00_start_here/*.py"),
)
FOLDS = {  # what MyST-NB writes on a fold, and what is to stand there
    '<summary aria-label="Toggle hidden content">': "<summary>",  # the label hides the words from a screen reader
    "Show code cell source": "How this is drawn",
    "Hide code cell source": "How this is drawn",
    "Show code cell output": "What it prints",
    "Hide code cell output": "What it prints",
    "Show code cell content": "The code, and what it prints",
    "Hide code cell content": "The code, and what it prints",
}
START_CLIENT = NotebookClientCache.start_client  # MyST-NB's own, before `setup` replaces it
log = logging.getLogger(__name__)


class ExerciseRow(SphinxDirective):
    """Links to a chapter's exercise notebook; the argument is its folder under exercises/."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        folder = ROOT / "exercises" / self.arguments[0]
        notebooks = sorted(folder.glob("*.ipynb"))
        if len(notebooks) != 1:
            log.warning(
                "exercise-row: expected one notebook in exercises/%s, found %d",
                self.arguments[0],
                len(notebooks),
                location=self.get_location(),
            )
            return []
        notebook = notebooks[0]
        self.env.note_dependency(str(notebook))
        if not hasattr(self.env, "exercise_notebooks"):
            self.env.exercise_notebooks = set()
        self.env.exercise_notebooks.add(str(notebook))
        links = [f'<a class="exercise-link" href="_notebooks/{notebook.name}" download>Download the exercises</a>']
        page = f"{self.env.docname}.ipynb"
        links.append(f'<a class="exercise-link" href="_notebooks/{page}" download>This page as a notebook</a>')
        links += hosted_links(notebook.relative_to(ROOT).as_posix())
        html = f'<p class="exercise-row">{" ".join(links)}</p>'
        return [nodes.raw("", html, format="html")]


class CourseRoad(SphinxDirective):
    """The chapters in order, a line "number | title | question" each; one that has a page is a link to it."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        pages = {page[:2]: page for page in sorted(self.env.found_docs)}
        items = []
        for line in filter(None, self.content):
            number, title, question = (escape(part.strip()) for part in line.split("|"))
            named = f'<a href="{pages[number]}.html">{title}</a>' if number in pages else title
            items.append(f'<li value="{int(number)}"><b>{number}</b> {named} <span>{question}</span></li>')
        return [nodes.raw("", f'<ol class="course-road">{"".join(items)}</ol>', format="html")]


def hosted_links(path: str) -> list[str]:
    """Return the Colab and Binder links, if the public repository is known."""
    repository = public_repository()
    if not repository:
        return ['<span class="exercise-note">In Colab: <em>File</em>, then <em>Upload notebook</em>.</span>']
    colab = f"https://colab.research.google.com/github/{repository}/blob/main/{path}"
    binder = f"https://mybinder.org/v2/gh/{repository}/main?labpath={path.replace('/', '%2F')}"
    return [
        f'<a class="exercise-link" href="{colab}">Open in Colab</a>',
        f'<a class="exercise-link" href="{binder}">Open on Binder</a>',
    ]


def copy_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Put the notebooks the pages link to into the site: the exercises, and each page as it was executed."""
    if error or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_notebooks"
    target.mkdir(exist_ok=True)
    executed = Path(app.outdir).parent / "jupyter_execute"
    for notebook in [*sorted(getattr(app.env, "exercise_notebooks", set())), *sorted(executed.glob("*.ipynb"))]:
        shutil.copyfile(notebook, target / Path(notebook).name)


def digest_of(paths: list[Path]) -> str:
    """Return a short digest of the names and contents of these files."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def code_digest() -> str:
    """Return a digest of the files that cells can import; the cache of executed cells is named after it."""
    return digest_of(code_files())


def code_files() -> list[Path]:
    """Return the files of the packages that affect the outputs of cells."""
    files = {path for pattern in PACKAGE for path in (ROOT / "transformer_ref").glob(pattern)}
    files |= {path for pattern in PACKAGE for path in (ROOT / "book" / "figures").glob(pattern)}
    files |= {path for pattern in REPORTS for path in (ROOT / "autograder").glob(pattern)}
    return sorted(files)


def notice_changes(app: Sphinx, config) -> None:
    """Tell Sphinx about changes that it does not track: new code means new cells to run, new assets new pages to write,
    and a changed extension pages to read again."""
    executed = Path(config.nb_execution_cache_path or Path(app.outdir).parent / "executed")
    config.nb_execution_cache_path = str(executed / code_digest())
    assets = [*(ROOT / "book" / "assets").rglob("*"), *(ROOT / "transformer_ref" / "pretrained").iterdir()]
    config.course_assets = digest_of([path for path in assets if path.is_file()])
    config.course_extension = digest_of([*(ROOT / "book" / "extension").glob("*.py")])


def join_streams(outputs: list) -> list:
    """Return a cell's outputs with everything printed to one stream joined exactly.

    Replaces MyST-NB's function, which ends every piece with a new line.
    """
    joined, streams = [], {}
    for output in outputs:
        first = streams.get(output.get("name"))
        if output["output_type"] == "stream" and first is not None:
            first["text"] += output["text"]
            continue
        if output["output_type"] == "stream":
            output = streams[output["name"]] = output.copy()
        joined.append(output)
    return joined


def with_outputs(start_client: Callable) -> Callable:
    """Return MyST-NB's way to start a page from the cache, with the outputs in the notebook that readers download too.

    MyST-NB shows the outputs of a copy, and writes the notebook that it began with.
    """

    def start(client: NotebookClientCache) -> None:
        page = client.notebook
        start_client(client)
        if client.notebook is not page:
            page.update(client.notebook)

    return start


def name_folds(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Label every fold with its content."""
    for theirs, ours in FOLDS.items():
        context["body"] = context.get("body", "").replace(theirs, ours)


def number_formulas(app: Sphinx, doctree: nodes.document) -> None:
    """Number the labeled formulas of a chapter 5.1, 5.2, ... instead of on through the book."""
    page = app.env.docname
    if not page[:2].isdigit():
        return
    equations = app.env.get_domain("math").equations
    labeled = [block for block in doctree.findall(nodes.math_block) if block.get("number")]
    for place, block in enumerate(labeled, start=1):
        block["number"] = f"{int(page[:2])}.{place}"
        equations[block["label"]] = (page, block["number"])


def drop_foreign_scripts(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Remove scripts of other servers, and those that need them, from the page."""
    if "script_files" in context:
        context["script_files"] = [
            script
            for script in context["script_files"]
            if not any(
                name in f"{getattr(script, 'filename', script)}{getattr(script, 'attributes', '')}"
                for name in FOREIGN_SCRIPTS
            )
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register everything above."""
    app.add_directive("exercise-row", ExerciseRow)
    app.add_directive("course-road", CourseRoad)
    myst_nb.core.render.coalesce_streams = join_streams
    NotebookClientCache.start_client = with_outputs(START_CLIENT)
    app.add_config_value("course_assets", "", "html")
    app.add_config_value("course_extension", "", "env")
    app.connect("config-inited", notice_changes, priority=900)
    app.connect("doctree-read", number_formulas)
    app.connect("html-page-context", drop_foreign_scripts, priority=900)
    app.connect("html-page-context", name_folds)
    app.connect("build-finished", copy_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
