"""Version, date, license and how to cite, from pyproject.toml, git and CITATION.cff, so that no page repeats them.

- `version-line`: "Version 0.1.0, of 23 November 2026."
- `cite-as`: a BibTeX entry.
"""

import datetime
import os
import re
import subprocess
from pathlib import Path

import yaml
from docutils import nodes
from repository import address_of_site, code_address
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
CITATION, PROJECT = ROOT / "CITATION.cff", ROOT / "pyproject.toml"


def date_of_source() -> datetime.date:
    """Return the day of the last change that is committed; SOURCE_DATE_EPOCH or today where there is no git."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).date()
    command = ["git", "log", "-1", "--format=%cs"]
    try:
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        said = ""
    return datetime.date.fromisoformat(said) if said else datetime.date.today()


def version() -> str:
    """Return the version that pyproject.toml names."""
    return re.search(r'^version = "(.+)"$', PROJECT.read_text(encoding="utf-8"), re.MULTILINE)[1]


def entry() -> str:
    """Return the course as an entry of BibTeX."""
    cited = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    authors = " and ".join(
        f"{{{author['name']}}}" if "name" in author else f"{author['family-names']}, {author['given-names']}"
        for author in cited["authors"]
    )
    fields = {
        "title": f"{{{cited['title']}}}",
        "author": authors,
        "year": str(date_of_source().year),
        "note": f"Version {version()}",
    }
    if address := address_of_site() or code_address():
        fields["url"] = address
    width = max(map(len, fields))
    lines = [f"  {name:{width}} = {{{value}}}" for name, value in fields.items()]
    return "@misc{attention-by-hand,\n" + ",\n".join(lines) + "\n}"


class VersionLine(SphinxDirective):
    """One sentence."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(PROJECT))
        day = date_of_source()
        return [nodes.paragraph("", f"Version {version()}, of {day.day} {day:%B %Y}.")]


class CiteAs(SphinxDirective):
    """A block to copy."""

    def run(self) -> list[nodes.Node]:
        for path in (CITATION, PROJECT):
            self.env.note_dependency(str(path))
        return [nodes.literal_block("", entry(), language="bibtex")]


class WhereTheCodeIs(SphinxDirective):
    """A sentence with a link to the repository, or one that names the setting which would make it."""

    def run(self) -> list[nodes.Node]:
        if address := code_address():
            link = nodes.reference("", address, refuri=address)
            issues = nodes.reference("", "reported there", refuri=f"{address}/issues")
            before, between = "The code, the text and their history: ", ". A mistake is best "
            return [nodes.paragraph("", "", nodes.Text(before), link, nodes.Text(between), issues, nodes.Text("."))]
        said = "This copy of the book was built without saying where its code is published: ask whoever gave it to you."
        return [nodes.paragraph("", said)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("version-line", VersionLine)
    app.add_directive("cite-as", CiteAs)
    app.add_directive("where-the-code-is", WhereTheCodeIs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
