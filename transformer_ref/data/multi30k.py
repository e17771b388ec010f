"""Multi30k (Elliott et al. 2016): captions of photographs in English, German and French, from a folder."""

import gzip
import os
from pathlib import Path
from typing import NamedTuple

SPLITS = ("train", "val", "test_2016_flickr")
LANGUAGES = ("en", "de", "fr")
FOLDER_VARIABLE = "MULTI30K_DIR"


class Parallel(NamedTuple):
    """Lines and their translations, in the same order."""

    source: list[str]
    target: list[str]


def load_multi30k(split: str, source: str = "en", target: str = "de",
                  folder: str | Path | None = None) -> Parallel:
    """Return the captions of a split in two languages.

    folder: holds files such as train.en.gz; without it, the environment variable MULTI30K_DIR says where.
    Raises ValueError for a split or language that does not exist, FileNotFoundError naming what is missing.
    """
    asked = (("split", split, SPLITS), ("source", source, LANGUAGES), ("target", target, LANGUAGES))
    for name, value, known in asked:
        if value not in known:
            raise ValueError(f'{name}: expected one of {", ".join(known)}, got "{value}"')
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if not folder:
        raise FileNotFoundError(
            f"Multi30k: expected its folder by --data-dir or by {FOLDER_VARIABLE}, got neither")
    sides = Parallel(*(_lines(Path(folder) / f"{split}.{language}.gz") for language in (source, target)))
    if len(sides.source) != len(sides.target):
        raise ValueError(f"{split}: expected as many lines in {source} as in {target}, "
                         f"got {len(sides.source)} and {len(sides.target)}")
    return sides


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"Multi30k: expected the file {path.name} in {path.parent}, got nothing")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file]
