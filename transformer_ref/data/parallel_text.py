"""Two text files, line by line each other's translation: a folder of them is a corpus.

`train.en` and `train.de`, or `train.en.gz` and `train.de.gz`: a split, a language, and perhaps gzip.
"""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import NamedTuple


class Parallel(NamedTuple):
    """Lines and their translations, in the same order."""

    source: list[str]
    target: list[str]

    def sha256(self) -> str:
        """Return a fingerprint of every line and of their order, in hexadecimal."""
        digest = hashlib.sha256()
        for side in self:
            digest.update("\n".join(side).encode() + b"\0")
        return digest.hexdigest()


def load_parallel(folder: str | Path, split: str, source: str, target: str) -> Parallel:
    """Return the lines of a split in two languages, stripped of the white space around them.

    folder: holds <split>.<language> for both languages, plain or with .gz.
    Raises FileNotFoundError naming what is missing, ValueError for a file that is cut off or no UTF-8 text, for
    sides of different length, and for a language that is to be translated into itself.
    """
    expect_two_languages(source, target)
    sides = Parallel(*(_lines(Path(folder), f"{split}.{language}") for language in (source, target)))
    if len(sides.source) != len(sides.target):
        raise ValueError(f"{split}: expected as many lines in {source} as in {target}, "
                         f"got {len(sides.source)} and {len(sides.target)}")
    return sides


def expect_two_languages(source: str, target: str) -> None:
    """Raise ValueError for a language that is to be translated into itself."""
    if source == target:
        raise ValueError(f'target: expected another language than the source, got "{target}" for both')


def _lines(folder: Path, name: str) -> list[str]:
    path = next((folder / each for each in (name, f"{name}.gz") if (folder / each).is_file()), None)
    if path is None:
        raise FileNotFoundError(f"data: expected the file {name} or {name}.gz in {folder}, got neither")
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="\n") as file:  # some begin with a byte order mark
            return [line.strip() for line in file]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"data: expected a whole gzip file, got {path} ({error})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"data: expected UTF-8 text, got {path} ({error})") from error
