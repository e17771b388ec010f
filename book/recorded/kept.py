"""What a long recording has finished, kept in build/, so that one that was interrupted goes on where it stopped."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer_ref.atomic_write import atomic_write

FOLDER = Path(__file__).resolve().parents[2] / "build" / "recorded"


class Kept:
    """The finished pieces of one recording, each written as soon as it is computed.

    name: of the recording; settings: everything the pieces depend on, as JSON. Pieces with other settings are
    discarded.
    """

    def __init__(self, name: str, settings: Any, folder: Path = FOLDER) -> None:
        self._path, self._settings = folder / f"{name}.json", json.loads(json.dumps(settings))
        stored = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        self._pieces = stored["pieces"] if stored.get("settings") == self._settings else {}

    def __contains__(self, key: str) -> bool:
        return key in self._pieces

    def __getitem__(self, key: str) -> Any:
        return self._pieces[key]["value"]

    @property
    def seconds(self) -> float:
        """The processor seconds of all pieces."""
        return sum(piece["seconds"] for piece in self._pieces.values())

    def keep(self, key: str, value: Any, seconds: float) -> None:
        """Write a piece. seconds: its processor time."""
        self._pieces[key] = {"value": value, "seconds": round(seconds, 1)}
        text = json.dumps({"settings": self._settings, "pieces": self._pieces}, ensure_ascii=False)
        atomic_write(self._path, text)

    def made(self, key: str, make: Callable[[], Any]) -> Any:
        """Return a piece as JSON; if it is missing, it is computed and reported."""
        if key not in self:
            began = time.process_time()
            value = json.loads(json.dumps(make()))
            self.keep(key, value, time.process_time() - began)
            print(f"{key}: {self._pieces[key]['seconds']:.0f} s", flush=True)
        return self[key]

    def forget(self) -> None:
        """Remove the pieces, once the recording is written."""
        self._path.unlink(missing_ok=True)
