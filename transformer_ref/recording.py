"""Results that took minutes to compute and are shown in the book: recorded once, and found wherever a page is run."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "recorded"  # written by the programs in book/recorded/


def recording(name: str) -> Any:
    """Return the recorded output of a program. Raises ValueError for an unknown name.

    name: of the program, such as "alignment".
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.json")))
        raise ValueError(f"name: expected one of {known}, got {name!r}")
    return json.loads(path.read_text(encoding="utf-8"))
