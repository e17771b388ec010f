"""Results that took minutes to compute and are shown in the book: recorded once, and found wherever a page is run."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "recorded"  # written by the programs in book/recorded/


def recording(name: str) -> Any:
    """Return what a program has recorded. Raises ValueError for a name that none has.

    name: the program's, such as "alignment".
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.json")))
        raise ValueError(f"name: expected one of {known}, got {name!r}")
    return json.loads(path.read_text(encoding="utf-8"))
