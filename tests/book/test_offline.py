"""The book without a network, for a reader who has asked to keep it; nothing is kept unasked."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_the_list_names_every_page_and_all_that_pages_load(book):
    listed = json.loads((book.site / "offline.json").read_text(encoding="utf-8"))
    assert {f"{page}.html" for page in book.pages()} <= set(listed["files"])
    assert {"_static/site.css", "searchindex.js", "sw.js"} <= set(listed["files"])
    assert all((book.site / name).is_file() for name in listed["files"])
    assert listed["bytes"] == sum((book.site / name).stat().st_size for name in listed["files"]) < 20e6


def test_every_page_names_the_manifest_and_its_icons_are_there(book):
    manifest = json.loads((book.site / "site.webmanifest").read_text(encoding="utf-8"))
    assert all((book.site / icon["src"]).is_file() for icon in manifest["icons"])
    assert (book.site / manifest["start_url"]).is_file()
    for page in ("index", "05_self_attention", "teach/index"):
        link = book.soup(page).select_one('link[rel="manifest"]')["href"]
        assert ((book.site / page).parent / link).resolve() == (book.site / "site.webmanifest").resolve()


def test_a_page_opened_from_the_disk_offers_nothing(book, visit):
    page = visit((book.site / "index.html").as_uri()).page
    expect(page.get_by_role("button", name="Keep the book")).to_have_count(0)


def test_who_asks_reads_and_searches_on_without_a_network_and_who_does_not_keeps_nothing(address, visit, book):
    page = visit(f"{address}/index.html").page
    registered = "navigator.serviceWorker.getRegistrations().then((found) => found.length)"
    assert (page.evaluate(registered), page.evaluate("caches.keys()")) == (0, [])
    page.get_by_role("button", name="Keep the book for reading offline").click()
    expect(page.get_by_role("status").filter(has_text="are kept in this browser")).to_be_visible(timeout=60_000)
    page.context.set_offline(True)
    for name in ("05_self_attention", "teach/index", "index"):
        page.goto(f"{address}/{name}.html")
        assert page.locator("h1").first.inner_text().rstrip("#") == book.soup(name).select_one("h1").get_text().rstrip(
            "#"
        )
    page.goto(f"{address}/05_self_attention.html")
    expect(page.locator("#W05a svg").first).to_be_visible()  # its scripts and styles came too
    page.goto(f"{address}/search.html?q=cosine")
    expect(page.locator("#search-results li").first).to_be_visible(timeout=15_000)
    page.context.set_offline(False)
