"""The logo is the course's first attention map: four words, the weights with which each attends to the others.

    python book/tools/logo.py

writes it into book/assets/: for the header on a light and on a dark page, for a browser's tab, and for a phone's home
screen. Blue is the side that asks and orange the side that is asked, as on every map of the course.
"""

import math
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

ASSETS = Path(__file__).resolve().parents[1] / "assets"
WORDS = ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (2.0, 0.0))  # I closed the windows
QUERY, KEY = "#0072b2", "#e69f00"
LIGHT, DARK = "#ffffff", "#14181e"  # paper
SIDE, CELL, GAP, BAR = 60, 8, 1, 4  # units of the drawing; one is three pixels of the home screen's icon
EDGE = 8  # left of the blue bar, above the orange one
FIRST = EDGE + BAR + 4  # where the cells begin
LENGTH = 4 * CELL + 3 * GAP
PIXELS = 3  # a unit


class Box(NamedTuple):
    """A rectangle in units of the drawing."""

    x: int
    y: int
    width: int
    height: int
    color: str


def weights() -> list[list[float]]:
    """Return the attention weights of the four words: the softmax of their scaled dot products."""
    rows = []
    for query in WORDS:
        powers = [math.exp(sum(map(math.prod, zip(query, key, strict=True))) / math.sqrt(2)) for key in WORDS]
        rows.append([power / sum(powers) for power in powers])
    return rows


def mixed(share: float, paper: str) -> str:
    """Return the blue of a cell, deepest where the largest weight is."""
    parts = [(int(QUERY[at : at + 2], 16), int(paper[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(share * blue + (1 - share) * page):02x}" for blue, page in parts)


def boxes(paper: str) -> list[Box]:
    """Return the two bars and the sixteen cells."""
    table = weights()
    largest = max(map(max, table))
    step = CELL + GAP
    return [
        Box(EDGE, FIRST, BAR, LENGTH, QUERY),
        Box(FIRST, EDGE, LENGTH, BAR, KEY),
        *(
            Box(FIRST + column * step, FIRST + row * step, CELL, CELL, mixed(0.1 + 0.9 * weight / largest, paper))
            for row, line in enumerate(table)
            for column, weight in enumerate(line)
        ),
    ]


def svg(paper: str, *, tile: bool) -> str:
    """Return the logo on a tile of paper, or cut to the drawing and without any."""
    start, size = (0, SIDE) if tile else (EDGE, FIRST + LENGTH - EDGE)
    parts = [f'<rect width="{SIDE}" height="{SIDE}" rx="13" fill="{paper}"/>'] if tile else []
    parts += [
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="{min(box[2:4]) / 4:g}" '
        f'fill="{box.color}"/>'
        for box in boxes(paper)
    ]
    view = f"{start} {start} {size} {size}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}">{"".join(parts)}</svg>\n'


def png(paper: str) -> bytes:
    """Return the logo on a square tile as a PNG, for systems that round its corners themselves."""
    side = SIDE * PIXELS
    rows = [bytearray(bytes.fromhex(paper[1:]) * side) for _ in range(side)]
    for box in boxes(paper):
        color = bytes.fromhex(box.color[1:]) * (box.width * PIXELS)
        for y in range(box.y * PIXELS, (box.y + box.height) * PIXELS):
            rows[y][3 * box.x * PIXELS : 3 * box.x * PIXELS + len(color)] = color
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)  # 8 bits for each of red, green and blue
    parts = [(b"IHDR", head), (b"IDAT", pixels), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def files() -> dict[str, bytes]:
    """Return the content of each file."""
    return {
        "logo-light.svg": svg(LIGHT, tile=False).encode(),
        "logo-dark.svg": svg(DARK, tile=False).encode(),
        "favicon.svg": svg(LIGHT, tile=True).encode(),
        "apple-touch-icon.png": png(LIGHT),
    }


def main() -> None:
    """Write the files."""
    for name, content in files().items():
        (ASSETS / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
