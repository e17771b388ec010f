"""Where this course lives: its public repository, and the address at which its site is served.

Both are one setting each, in `_config.yml`:

    course_repository: owner/name                 on GitHub; links to the code, Colab and Binder appear
    course_address: https://example.org/course    the canonical address, the preview image and the sitemap appear

The environment's COURSE_REPOSITORY and COURSE_ADDRESS come first; GitHub itself says both while it builds a site, so a
fork needs neither. Where nothing is known nothing is linked.
"""

import os
import re
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def public_repository() -> str:
    """Return owner/name of the public repository that this is, or nothing where that is not known."""
    name = _named("COURSE_REPOSITORY", "course_repository") or os.environ.get("GITHUB_REPOSITORY", "")
    if name and not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise ValueError(f"course_repository: expected owner/name of a repository on GitHub, got {name!r}")
    return name


def address_of_site() -> str:
    """Return where the site is served, with a slash at its end, or nothing where that is not known."""
    address = _named("COURSE_ADDRESS", "course_address")
    if not address and (name := os.environ.get("GITHUB_REPOSITORY")):
        owner, project = name.split("/")
        pages = f"{owner.lower()}.github.io"
        address = f"https://{pages}/" if project.lower() == pages else f"https://{pages}/{project}/"
    if address and not re.fullmatch(r"https?://[^\s\"<>]+", address):
        raise ValueError(f"course_address: expected an address that begins with https://, got {address!r}")
    return f"{address.rstrip('/')}/" if address else ""


def code_address(path: str = "", line: int | None = None) -> str:
    """Return where a file of the repository, or all of it, can be read; nothing where that is not known."""
    if not (repository := public_repository()):
        return ""
    home = f"https://github.com/{repository}"
    return f"{home}/blob/main/{path}{f'#L{line}' if line else ''}" if path else home


def _named(variable: str, key: str) -> str:
    return os.environ.get(variable) or _settings().get(key) or ""


@cache
def _settings() -> dict[str, str]:
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
