"""Pictures that were pasted into a text cell: which of them are kept, within bounds."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_PICTURE = 8_000_000  # letters of base64, 6 MB
MAX_PICTURES = 32_000_000  # of one notebook
MAX_COUNT = 100
MAX_NAME = 200
LEFT_OUT = "Pictures beyond {} MB, or of a kind that is not shown, were left out: {}."

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")

Attachments = dict[str, dict[str, str]]


def kept(raw: Any) -> Attachments:
    """The pictures of a cell that can be shown; raw: the attachments in the notebook, which may have any type."""
    found: Attachments = {}
    for name, bundle in raw.items() if isinstance(raw, Mapping) else ():
        if not isinstance(name, str) or len(name) > MAX_NAME or not isinstance(bundle, Mapping):
            continue
        for kind in KINDS:
            data = bundle.get(kind)
            data = "".join(data) if isinstance(data, list) and all(isinstance(line, str) for line in data) else data
            if isinstance(data, str) and 0 < len(data) <= MAX_PICTURE and _BASE64.fullmatch(data):
                found[name] = {kind: data}
                break
    return found


def within_bounds(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """Remove pictures from the cells of one notebook beyond the total limit; returns their names."""
    room, count, left_out = MAX_PICTURES, 0, []
    for cell in cells:
        for name, bundle in list(cell.get("attachments", {}).items()):
            size = sum(map(len, bundle.values()))
            if size > room or count >= MAX_COUNT:
                del cell["attachments"][name]
                left_out.append(name)
            else:
                room, count = room - size, count + 1
    return left_out
