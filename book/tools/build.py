"""Build the book into build/site, which works from any web server, any path, or straight from the disk.

    python book/tools/build.py            Jupyter Book; a second run builds only what changed
    python book/tools/build.py --plain    the same pages by Sphinx alone, into build/site-plain
    python book/tools/build.py --clean    from nothing
    python book/tools/build.py --zip      and then the site and all exercises as build/attention-by-hand.zip
    python book/tools/build.py --pdf      and then all chapters as build/attention-by-hand.pdf, by Chromium
    python book/tools/build.py --epub     and then all chapters as build/attention-by-hand.epub, by Chromium
    python book/tools/build.py --jobs 1   run the cells of one page at a time (default: one for each core, at most 4)

A warning is an error: a broken link, a missing picture, an unknown citation, a cell that fails. What the builder prints
goes to build/book.log; its progress, warnings and errors are shown.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from progress import clock, say
from publish import publish

ROOT = Path(__file__).resolve().parents[2]
BOOK, BUILD = ROOT / "book", ROOT / "build"
EXECUTED = BUILD / "book" / "_build" / "executed"  # cells that one builder has executed, the other only reads
MOST_JOBS = 4  # unless more are asked for: each kernel takes half a gigabyte of memory
STRICT = ["-n", "-W", "--keep-going"]
PACKAGES, STAMP = ("transformer_ref", "autograder", "book/figures"), BUILD / "made-of.txt"


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
    """Return a digest of the packages that pages describe; if it changes, Sphinx reads every page again."""
    files = sorted(
        path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".js", ".json")
    )
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def forget_pages() -> None:
    """Remove all builders' output except the executed cells, whose folder is named after the code that they import."""
    for path in [*(BUILD / "book").glob("*"), *EXECUTED.parent.glob("*")]:
        if path not in (EXECUTED, EXECUTED.parent):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(BUILD / "book-plain", ignore_errors=True)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def quiet_kernel() -> Path:
    """Return a folder for JUPYTER_PATH whose kernel only shows errors.

    Each kernel would warn that it uses TCP without encryption, which does not matter on one machine.
    """
    folder = BUILD / "jupyter"
    kernel = folder / "kernels" / "python3"
    kernel.mkdir(parents=True, exist_ok=True)
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
    described = {"argv": start, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(described), encoding="utf-8")
    return folder


class Output:
    """The output of a builder: all of it goes to a file; progress, warnings and errors are shown."""

    PROGRESS = re.compile(r"(reading|writing) \w+\.\.\. \[ *(\d+)%\]")
    SHOWN = re.compile(r"\b(warning|error|exception|traceback)\b", re.IGNORECASE)
    COLOR = re.compile(r"\x1b\[[0-9;]*m")
    STEP = 25  # percent from one line of progress to the next

    def __init__(self, log: Path) -> None:
        self._log = log
        self._doing, self._shown, self._began = "", 0, 0.0

    def follow(self, stream: Iterable[str]) -> None:
        """Read to the end."""
        with self._log.open("w", encoding="utf-8") as file:
            for colored in stream:
                line = self.COLOR.sub("", colored)
                file.write(line)
                if step := self.PROGRESS.search(line):
                    self._progress(step[1], int(step[2]))
                elif self.SHOWN.search(line):
                    print(line.rstrip(), flush=True)

    def _progress(self, doing: str, percent: int) -> None:
        if doing != self._doing:
            self._doing, self._shown, self._began = doing, 0, time.monotonic()
        if percent >= self._shown + self.STEP:
            self._shown = percent
            left = (time.monotonic() - self._began) / percent * (100 - percent)
            say(f"{doing} pages: {percent} %, about {clock(left)} left")


def build(command: list[str], environment: Mapping[str, str], log: Path) -> int:
    """Run a builder and return its exit status. If it fails, print the end of its output."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as builder:
        try:
            Output(log).follow(builder.stdout)
        except BaseException:
            builder.terminate()
            raise
    if builder.returncode:
        print("".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[-30:]), file=sys.stderr)
        print(f"The book was not built. The builder's whole output: {log.relative_to(ROOT)}", file=sys.stderr)
    return builder.returncode


def main(arguments: list[str] | None = None) -> int:
    """Build, publish into build/, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", action="store_true", help="by Sphinx alone")
    parser.add_argument("--zip", action="store_true", help="and then the site and all exercises as one file")
    parser.add_argument("--pdf", action="store_true", help="and then all chapters as one file to print")
    parser.add_argument("--epub", action="store_true", help="and then all chapters as one file for e-readers")
    parser.add_argument("--clean", action="store_true", help="forget earlier builds and executed cells")
    parser.add_argument("--jobs", type=int, help="pages to run at a time (default: one for each core, at most 4)")
    options = parser.parse_args(arguments)
    if options.jobs is not None and options.jobs < 1:
        parser.error(f"--jobs: expected 1 or more, got {options.jobs}")
    work = BUILD / ("book-plain" if options.plain else "book")
    site = BUILD / ("site-plain" if options.plain else "site")
    if options.clean:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(EXECUTED, ignore_errors=True)
    if made_of() != _read(STAMP):
        forget_pages()
        BUILD.mkdir(exist_ok=True)
        STAMP.write_text(made_of(), encoding="utf-8")
    os.environ.update(OMP_NUM_THREADS="1", JUPYTER_PATH=str(quiet_kernel()))
    from execute import execute  # after these settings, which Jupyter reads when it is imported

    sys.path.append(str(BOOK / "extension"))
    from self_contained import code_digest

    from transformer_ref.processors import usable_processors

    executed = EXECUTED / code_digest()
    for outdated in EXECUTED.glob("*"):
        if outdated != executed:
            shutil.rmtree(outdated)
    if failed := execute(executed, options.jobs or min(usable_processors(), MOST_JOBS)):
        print(f"The book was not built: cells of {', '.join(failed)} failed.", file=sys.stderr)
        return 1
    command = plain_sphinx_command(work) if options.plain else jupyter_book_command(work)
    status = build(command, os.environ, BUILD / f"{work.name}.log")
    if status == 0:
        say("publishing: one style sheet for all pages, and no file that no page needs")
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
        if options.epub:
            from epub import write_epub
            from repository import address_of_site

            written = write_epub(site, BUILD / "attention-by-hand.epub", address=address_of_site())
            print(f"For e-readers: {written.relative_to(ROOT)}")
    return status


def stop(number: int, frame: object) -> None:
    """Exit as after Ctrl-C, so that every child process ends too."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted. Pages whose cells have run are kept.")
