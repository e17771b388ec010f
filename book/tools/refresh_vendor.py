"""Fetch the font and the library that the book brings along, so that no page ever asks another server for anything.

    python book/tools/refresh_vendor.py

needs npm, a Debian with `apt-get download`, `pip install fonttools brotli` and a network, and is run only to change a
version. What it copies, with the licenses beside it, is committed; VENDORED.json says what came from where, and a test
compares every file with the digest there. MathJax serves formgrader alone; pages have MathML and the font.
"""

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[1] / "assets"
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
}

FONT = "fonts-lmodern"  # Debian's package of Latin Modern, of the GUST Font License
FONT_FILE = "usr/share/texmf/fonts/opentype/public/lm-math/latinmodern-math.otf"
FONT_LICENSE = "usr/share/doc/fonts-lmodern/copyright"
# Letters, Greek, accents, operators, arrows, brackets, and the italic and sans letters that formulas are set in.
CHARACTERS = (
    "U+20-7E,U+A0,U+B1,U+D7,U+302-304,U+308,U+391-3F5,U+2010-2027,U+2032,U+2061-2064,U+210E,U+2113,U+2190-2194,U+21D2,"
    "U+2200-2237,U+2248,U+2260-226B,U+22C0-22C6,U+22EE-22F1,U+2308-230B,U+23DE,U+23DF,U+1D434-1D467,U+1D6FC-1D71B,"
    "U+1D5A0-1D5B9"
)


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


def make_font(scratch: Path, vendor: Path) -> str:
    """Subset Latin Modern Math to the characters in formulas; return the package and version of the font."""
    from fontTools import subset

    subprocess.run(["apt-get", "download", FONT], cwd=scratch, check=True, capture_output=True)
    (package,) = scratch.glob(f"{FONT}_*.deb")
    subprocess.run(["dpkg", "-x", package, scratch / "font"], check=True)
    folder = vendor / "mathfont"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(scratch / "font" / FONT_LICENSE, folder / "LICENSE")
    cut = [f"--unicodes={CHARACTERS}", "--flavor=woff2", f"--output-file={folder / 'latin-modern-math.woff2'}"]
    subset.main([str(scratch / "font" / FONT_FILE), *cut, "--layout-features=", "--no-hinting", "--desubroutinize"])
    return package.stem


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
        font = make_font(Path(scratch), vendor)
    record = {"packages": [font, *sorted(WANTED)], "files": digests(vendor)}
    (vendor / "VENDORED.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{len(record['files'])} files from {', '.join(record['packages'])}")


if __name__ == "__main__":
    main()
