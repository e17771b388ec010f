"""Build the book into build/site, which works from any web server, any path, or straight from the disk.

    python book/build.py            Jupyter Book; a second run builds only what changed
    python book/build.py --plain    the same pages by Sphinx alone, into build/site-plain
    python book/build.py --clean    from nothing

A warning is an error: a broken link, a missing picture, an unknown citation, a cell that fails.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK, BUILD = ROOT / "book", ROOT / "build"
EXECUTED = BUILD / "book" / "_build" / "executed"  # cells that one builder has executed, the other only reads
STRICT = ["-n", "-W", "--keep-going"]
NOT_PUBLISHED = shutil.ignore_patterns(".buildinfo*", ".doctrees", "objects.inv.tmp")


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
    parser.add_argument("--clean", action="store_true", help="forget earlier builds and executed cells")
    options = parser.parse_args(arguments)
    work = BUILD / ("book-plain" if options.plain else "book")
    site = BUILD / ("site-plain" if options.plain else "site")
    if options.clean:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(EXECUTED, ignore_errors=True)
    command = plain_sphinx_command(work) if options.plain else jupyter_book_command(work)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "JUPYTER_PATH": str(quiet_kernel())}
    status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if status == 0:
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(work / "_build" / "html", site, ignore=NOT_PUBLISHED)
        print(f"The book is in {site.relative_to(ROOT)}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
