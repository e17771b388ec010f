"""Fetch the two libraries the book ships with itself, so that no page ever asks another server for anything.

    python book/refresh_vendor.py

needs npm and a network, and is run only to change a version. What it copies, with the licenses beside it, is
committed; VENDORED.json says what came from where, and a test compares every file with the digest there.
"""

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

ASSETS = Path(__file__).resolve().parent / "assets"
EXTENSIONS = (
    "ams",
    "autoload",
    "bbox",
    "boldsymbol",
    "cancel",
    "color",
    "enclose",
    "html",
    "mathtools",
    "newcommand",
    "require",
    "textmacros",
    "unicode",
)

# package and version -> (path inside the package, path under assets/vendor)
SERIF = "source-serif-4-latin"  # the face that pages are read in, cut to the letters of Western Europe
WANTED = {
    "@fontsource/source-serif-4@5.3.1": [
        *(
            (f"files/{SERIF}-{cut}.woff2", f"serif/{SERIF}-{cut}.woff2")
            for cut in ("400-normal", "400-italic", "600-normal")
        ),
        ("LICENSE", "serif/LICENSE"),
    ],
    "mathjax@3.2.2": [
        ("es5/tex-chtml.js", "mathjax/tex-chtml.js"),
        ("es5/output/chtml/fonts/woff-v2", "mathjax/output/chtml/fonts/woff-v2"),
        *((f"es5/input/tex/extensions/{name}.js", f"mathjax/input/tex/extensions/{name}.js") for name in EXTENSIONS),
        ("es5/ui/safe.js", "mathjax/ui/safe.js"),  # for formgrader, which sets students' formulas
        ("LICENSE", "mathjax/LICENSE"),
    ],
    "@jupyter-widgets/html-manager@1.0.15": [
        ("dist/embed.js", "widgets/embed.js"),
        ("dist/embed.js.LICENSE.txt", "widgets/embed.js.LICENSE.txt"),
        ("dist/1551f4f60c37af51121f.woff2", "widgets/1551f4f60c37af51121f.woff2"),  # the icons embed.js asks for
    ],
    "@jupyter-widgets/schema@0.5.6": [("LICENSE", "widgets/LICENSE")],
}


def fetch(package: str, folder: Path) -> Path:
    """Download one npm package and return the folder it unpacks to."""
    command = ["npm", "pack", "--silent", package]
    packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    target = folder / package.replace("/", "_")
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        archive.extractall(target, filter="data")
    return target / "package"


def copy_wanted(source: Path, files: list[tuple[str, str]], vendor: Path) -> None:
    """Copy files and folders of one package into the vendor folder."""
    for inside, outside in files:
        origin, target = source / inside, vendor / outside
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(origin, target)


def digests(vendor: Path) -> dict[str, str]:
    """Return the SHA-256 of every vendored file."""
    files = sorted(path for path in vendor.rglob("*") if path.is_file() and path.name != "VENDORED.json")
    return {path.relative_to(vendor).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    """Replace assets/vendor by freshly fetched copies."""
    vendor = ASSETS / "vendor"
    with tempfile.TemporaryDirectory() as scratch:
        sources = {package: fetch(package, Path(scratch)) for package in WANTED}
        shutil.rmtree(vendor, ignore_errors=True)
        for package, files in WANTED.items():
            copy_wanted(sources[package], files, vendor)
    record = {"packages": sorted(WANTED), "files": digests(vendor)}
    (vendor / "VENDORED.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{len(record['files'])} files from {', '.join(record['packages'])}")


if __name__ == "__main__":
    main()
