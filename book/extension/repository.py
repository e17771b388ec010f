"""Where this course lives: its public repository, and the address at which its site is served.

Both are one setting each, in `pyproject.toml`, which an installed package remembers as well:

    [project.urls]
    Repository = "https://github.com/owner/name"      links to the code, Colab and Binder appear
    Book = "https://example.org/course"               canonical links, the preview image and the sitemap appear

The environment's COURSE_REPOSITORY (owner/name) and ATTENTION_BY_HAND_BOOK come first; GitHub itself says both while it
builds a site, so a fork there needs neither. Where nothing is known nothing is linked.
"""

import os
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
ON_GITHUB = re.compile(r"(?:https://github\.com/)?(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?")
PUBLIC = re.compile(r"https?://(?!127\.|localhost\b)[^\s\"<>]+")


def public_repository() -> str:
    """Return owner/name of this public repository, or nothing if unknown."""
    said = os.environ.get("COURSE_REPOSITORY") or _url("Repository") or os.environ.get("GITHUB_REPOSITORY", "")
    if not said:
        return ""
    if not (found := ON_GITHUB.fullmatch(said)):
        raise ValueError(f"Repository: expected owner/name of a repository on GitHub, got {said!r}")
    return found["name"]


def address_of_site() -> str:
    """Return the public address of the site, with a slash at its end, or nothing if unknown."""
    for said in (os.environ.get("ATTENTION_BY_HAND_BOOK", ""), _url("Book")):
        if PUBLIC.fullmatch(said):
            return f"{said.rstrip('/')}/"
    if not (name := os.environ.get("GITHUB_REPOSITORY")):
        return ""
    owner, project = name.split("/")
    pages = f"{owner.lower()}.github.io"
    return f"https://{pages}/" if project.lower() == pages else f"https://{pages}/{project}/"


def code_address(path: str = "", line: int | None = None) -> str:
    """Return the address of a file of the repository, or of all of it; nothing if unknown."""
    if not (repository := public_repository()):
        return ""
    home = f"https://github.com/{repository}"
    return f"{home}/blob/main/{path}{f'#L{line}' if line else ''}" if path else home


def _url(name: str) -> str:
    """Return the address with this name in pyproject.toml."""
    _, _, urls = PROJECT.read_text(encoding="utf-8").partition("[project.urls]\n")
    found = re.search(rf'^"?{name}"? = "([^"]*)"', urls.partition("\n[")[0], re.MULTILINE)
    return found[1] if found else ""
