"""Two text files, line by line each other's translation: a folder of them is a corpus.

`train.en` and `train.de`, or `train.en.gz` and `train.de.gz`: a split, a language, and perhaps gzip.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


def is_usable(source: Any, target: Any, longest: int) -> Any:
    """Return whether a pair is trained on: neither side is empty or too long.

    source, target: the number of tokens of each side, an int or a tensor (pairs,); longest: of either side.
    """
    return (source > 0) & (target > 0) & (source <= longest) & (target <= longest)


class Parallel(NamedTuple):
    """Lines and their translations, in the same order."""

    source: list[str]
    target: list[str]

    def sha256(self) -> str:
        """Return the SHA-256 of all lines in their order, in hexadecimal."""
        digest = hashlib.sha256()
        for side in self:
            digest.update("\n".join(side).encode() + b"\0")
        return digest.hexdigest()


class ParallelFiles(NamedTuple):
    """Two text files, plain or .gz, that have not been read yet."""

    source: Path
    target: Path

    def load(self) -> Parallel:
        """Return all lines. Raises ValueError as `load_parallel` does."""
        sides = Parallel(*(list(_lines(path)) for path in self))
        if len(sides.source) != len(sides.target):
            split, _, source = self.source.name.removesuffix(".gz").rpartition(".")
            target = self.target.name.removesuffix(".gz").rpartition(".")[2]
            raise ValueError(
                f"{split}: expected as many lines in {source} as in {target}, "
                f"got {len(sides.source)} and {len(sides.target)}"
            )
        return sides

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each line and its translation, one at a time. Raises ValueError where one side ends first."""
        return zip(*(_lines(path) for path in self), strict=True)

    def sha256(self) -> str:
        """Return the SHA-256 of the files' bytes, in hexadecimal; fast even for compressed files."""
        digest = hashlib.sha256()
        for path in self:
            with open(path, "rb") as file:
                while data := file.read(2**22):
                    digest.update(data)
            digest.update(b"\0" + str(path.stat().st_size).encode() + path.suffix.encode())
        return digest.hexdigest()

    def lines_sha256(self) -> str:
        """Return what `Parallel.sha256` returns, without keeping the lines in memory."""
        digest = hashlib.sha256()
        for path in self:
            for number, line in enumerate(_lines(path)):
                digest.update(("\n" if number else "").encode() + line.encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def size(self) -> int:
        """Return the bytes of both files."""
        return sum(path.stat().st_size for path in self)


def load_parallel(folder: str | Path, split: str, source: str, target: str) -> Parallel:
    """Return the lines of a split in two languages, stripped of the white space around them.

    folder: holds <split>.<language> for both languages, plain or with .gz.
    Raises FileNotFoundError naming what is missing, ValueError for a truncated file, text that is not UTF-8, sides of
    different length, and twice the same language.
    """
    return find_parallel(folder, split, source, target).load()


def find_parallel(folder: str | Path, split: str, source: str, target: str) -> ParallelFiles:
    """Return the files that `load_parallel` reads. Raises FileNotFoundError, and ValueError for one language."""
    expect_two_languages(source, target)
    return ParallelFiles(*(_existing(Path(folder), f"{split}.{language}") for language in (source, target)))


def expect_two_languages(source: str, target: str) -> None:
    """Raise ValueError if source and target are the same language."""
    if source == target:
        raise ValueError(f'target: expected another language than the source, got "{target}" for both')


def _existing(folder: Path, name: str) -> Path:
    path = next((folder / each for each in (name, f"{name}.gz") if (folder / each).is_file()), None)
    if path is None:
        raise FileNotFoundError(f"data: expected the file {name} or {name}.gz in {folder}, got neither")
    return path


def _lines(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="\n") as file:  # some begin with a byte order mark
            for line in file:
                yield line.strip()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"data: expected a whole gzip file, got {path} ({error})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"data: expected UTF-8 text, got {path} ({error})") from error
