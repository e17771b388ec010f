"""A page as a screen reader gets it: Chromium's accessibility tree, and what may not be in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from playwright.sync_api import Page

NAMED = {
    "button",
    "checkbox",
    "combobox",
    "DisclosureTriangle",
    "graphics-document",
    "image",
    "img",
    "link",
    "meter",
    "progressbar",
    "radio",
    "slider",
    "textbox",
}
HEADERS = {"columnheader", "rowheader"}
SAID_BY_NAME = {"button", "image", "img", "link"}  # their names are read and not what is in them
SIGNS = set("✓✗◐✔✘")  # a screen reader says nothing of some of these, and "multiplication x" of others
REGIONS = """() => [...document.querySelectorAll(":is(div, pre, span, p)[tabindex='0']")]
  .filter((each) => !each.role || !(each.ariaLabel || each.hasAttribute("aria-labelledby")))
  .map((each) => `${each.tagName.toLowerCase()} ${each.className}`.trim())"""


@dataclass(frozen=True)
class Node:
    """One thing that a screen reader reads out. inside: the roles around it, from outside."""

    role: str
    name: str
    level: int
    inside: tuple[str, ...]
    id: str
    parents: tuple[str, ...]


def nodes(page: Page) -> list[Node]:
    """Everything that a screen reader reads out, in this order."""
    session = page.context.new_cdp_session(page)
    try:
        found = session.send("Accessibility.getFullAXTree")["nodes"]
    finally:
        session.detach()
    known = {each["nodeId"]: each for each in found}
    root = next(each for each in found if "parentId" not in each)
    return list(_walk(known, root, (), ()))


def _walk(known: dict[str, Any], node: dict[str, Any], roles: tuple, ids: tuple) -> Iterator[Node]:
    role = node.get("role", {}).get("value", "")
    if not node.get("ignored"):
        told = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
        name = str(node.get("name", {}).get("value", "")).strip()
        yield Node(role, name, int(told.get("level") or 0), roles, node["nodeId"], ids)
        roles, ids = (*roles, role), (*ids, node["nodeId"])
    for child in node.get("childIds", []):
        if child in known:
            yield from _walk(known, known[child], roles, ids)


def faults(page: Page, whole: bool = True) -> list[str]:
    """The accessibility errors. whole: for a page with headings and a main part, not a cell's output."""
    said = nodes(page)
    found = [f"{each.role} without a name" for each in said if each.role in NAMED and not each.name]
    found += [f"{each} can be reached by key and has no role and name" for each in page.evaluate(REGIONS)]
    for table in (each for each in said if each.role == "table"):
        if not table.name and not any(each.role in HEADERS and each.name and table.id in each.parents for each in said):
            found.append("table without headers and without a name")
    found += [
        f"a sign alone: {each.name}"
        for each in said
        if each.role == "StaticText" and each.name and set(each.name) <= SIGNS and not SAID_BY_NAME & {*each.inside}
    ]
    if whole:
        levels = [each.level for each in said if each.role == "heading"]
        found += [
            f"heading {above} is followed by {below}" for above, below in pairwise([0, *levels]) if below > above + 1
        ]
        found += [f"{count} main parts" for count in [sum(each.role == "main" for each in said)] if count != 1]
        found += [f"{levels.count(1)} headings of level 1"] if levels.count(1) != 1 else []
    return found


def spoken(page: Page) -> str:
    """The words that a screen reader reads out, in one line."""
    pictures = {"img", "image"}  # their names are read, and not the signs in them
    said = [
        each.name
        for each in nodes(page)
        if each.role in pictures or (each.role == "StaticText" and not pictures & {*each.inside})
    ]
    return " ".join(" ".join(said).split())
