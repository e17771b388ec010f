"""Build the book into build/site, which works from any web server, any path, or straight from the disk.

    python book/build.py            Jupyter Book; a second run builds only what changed
    python book/build.py --plain    the same pages by Sphinx alone, into build/site-plain
    python book/build.py --clean    from nothing
    python book/build.py --zip      and then the site and all exercises as build/attention-by-hand.zip
    python book/build.py --pdf      and then all chapters as build/attention-by-hand.pdf, by Chromium

A warning is an error: a broken link, a missing picture, an unknown citation, a cell that fails.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from publish import publish

ROOT = Path(__file__).resolve().parents[1]
BOOK, BUILD = ROOT / "book", ROOT / "build"
EXECUTED = BUILD / "book" / "_build" / "executed"  # cells that one builder has executed, the other only reads
STRICT = ["-n", "-W", "--keep-going"]
PACKAGES, STAMP = ("transformer_ref", "autograder"), BUILD / "made-of.txt"


def jupyter_book_command(work: Path) -> list[str]:
    """Return the command that builds with Jupyter Book 1.x."""
    start = "from jupyter_book.cli.main import main; main()"  # the package cannot be run with -m
    return [
        sys.executable,
        "-c",
        start,
        "build",
        str(BOOK),
        "--config",
        str(ROOT / "_config.yml"),
        "--toc",
        str(ROOT / "_toc.yml"),
        "--path-output",
        str(work),
        *STRICT,
    ]


def plain_sphinx_command(work: Path) -> list[str]:
    """Return the command that builds without Jupyter Book."""
    return [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-c",
        str(BOOK / "plain_sphinx"),
        "-d",
        str(work / "doctrees"),
        "-D",
        f"nb_execution_cache_path={EXECUTED}",
        *STRICT,
        str(BOOK),
        str(work / "_build" / "html"),
    ]


def made_of() -> str:
    """Return a digest of the packages that the pages' cells import.

    Executed cells are kept by their own code alone: where what they call has changed, all run again.
    """
    files = sorted(
        path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".js", ".json")
    )
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def quiet_kernel() -> Path:
    """Return a folder for JUPYTER_PATH whose kernel says errors only.

    Each kernel would warn that it talks over TCP without encryption, which on one machine nobody can do anything about.
    """
    folder = BUILD / "jupyter"
    kernel = folder / "kernels" / "python3"
    kernel.mkdir(parents=True, exist_ok=True)
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
    described = {"argv": start, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(described), encoding="utf-8")
    return folder


def main(arguments: list[str] | None = None) -> int:
    """Build, publish into build/, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", action="store_true", help="by Sphinx alone")
    parser.add_argument("--zip", action="store_true", help="and then the site and all exercises as one file")
    parser.add_argument("--pdf", action="store_true", help="and then all chapters as one file to print")
    parser.add_argument("--clean", action="store_true", help="forget earlier builds and executed cells")
    options = parser.parse_args(arguments)
    work = BUILD / ("book-plain" if options.plain else "book")
    site = BUILD / ("site-plain" if options.plain else "site")
    if options.clean:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(EXECUTED, ignore_errors=True)
    if made_of() != _read(STAMP):
        for each in (BUILD / "book", BUILD / "book-plain"):
            shutil.rmtree(each, ignore_errors=True)
        BUILD.mkdir(exist_ok=True)
        STAMP.write_text(made_of(), encoding="utf-8")
    command = plain_sphinx_command(work) if options.plain else jupyter_book_command(work)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "JUPYTER_PATH": str(quiet_kernel())}
    status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if status == 0:
        publish(work / "_build" / "html", site)
        print(f"The book is in {site.relative_to(ROOT)}/index.html")
        if options.zip or options.pdf:
            from one_file import offer, pack, print_book  # they need what a build does not
        if options.zip:
            packed = pack(site, ROOT / "exercises", BUILD)
            offer(packed, site)
            print(f"All of it is in {packed.relative_to(ROOT)}")
        if options.pdf:
            print(f"To print: {print_book(site, BUILD / 'attention-by-hand.pdf').relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
