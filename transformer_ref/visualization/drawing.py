"""A small SVG canvas: a drawing carries its own words for those who cannot see it."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

from transformer_ref.visualization.palette import INK, MASK

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FONT_SIZE = 14  # CSS pixels at full size, about 10.5 pt
LINE = 1.5
ARROW_HEAD = 9.0  # pixels from the point of an arrow to its shoulders, at least
ARROW_SPREAD = 0.42  # radians between an arrow's shaft and each shoulder


class Drawing:
    """A picture of `width` by `height` pixels that shrinks with its column and never grows beyond it.

    alt: what is seen and what it shows; required, since a picture without words is lost on some readers.
    Shows itself in Jupyter and in the book; `to_svg()` is the same picture as text.
    """

    def __init__(self, width: float, height: float, alt: str):
        if len(alt.split()) < 4:
            raise ValueError(f"alt: expected a sentence that says what is seen, got {alt!r}")
        self.width, self.height, self.alt = width, height, alt
        self._parts: list[str] = []
        self._hatched = self._linked = False

    @contextmanager
    def link(self, address: str) -> Iterator[None]:
        """What is drawn inside the `with` leads there, by mouse and by key; its words are the link's name."""
        self._linked = True
        self._parts.append(f'<a href="{escape(address)}">')
        yield
        self._parts.append("</a>")

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        opacity: float = 1.0,
        stroke: str = "none",
        radius: float = 0.0,
        title: str = "",
    ) -> None:
        """Draw a box; `title` is shown when a mouse rests on it."""
        inner = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}" '
            f'style="fill:{fill};stroke:{stroke}" fill-opacity="{opacity:.3f}" stroke-width="{LINE}">'
            f"{inner}</rect>"
        )

    def hatched_rectangle(self, x: float, y: float, width: float, height: float) -> None:
        """Draw the grey hatched box that means "masked" everywhere in the course."""
        self._hatched = True
        self.rectangle(x, y, width, height, "url(#hatch)", stroke=MASK)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "middle",
        size: float = FONT_SIZE,
        fill: str = INK,
        bold: bool = False,
        turn: float = 0.0,
        subscripts: bool = False,
    ) -> None:
        """Write words whose middle line is at y; `turn` rotates them by that many degrees around (x, y).

        subscripts: the letter after each `_` is set small and low, and the `_` is left out.
        """
        weight = ' font-weight="600"' if bold else ""
        rotate = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="central" '
            f'font-size="{size:g}" style="fill:{fill}"{weight}{rotate}>'
            f"{_lowered(escape(words), size) if subscripts else escape(words)}</text>"
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = INK, *, width: float = LINE) -> None:
        """Draw a straight line."""
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="stroke:{stroke}" '
            f'stroke-width="{width:.2f}" stroke-linecap="round"/>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, stroke: str = INK, *, width: float = 2.0) -> None:
        """Draw an arrow to (x2, y2); one without any length is drawn as nothing."""
        if math.hypot(x2 - x1, y2 - y1) < 1e-9:
            return
        angle, head = math.atan2(y2 - y1, x2 - x1), max(ARROW_HEAD, 2.4 * width)
        self.line(x1, y1, x2 - 0.7 * head * math.cos(angle), y2 - 0.7 * head * math.sin(angle), stroke, width=width)
        shoulders = [
            (x2 - head * math.cos(angle + side), y2 - head * math.sin(angle + side))
            for side in (ARROW_SPREAD, -ARROW_SPREAD)
        ]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x2, y2), *shoulders])
        self._parts.append(f'<polygon points="{corners}" style="fill:{stroke}"/>')

    def polyline(self, points: list[tuple[float, float]], stroke: str, *, dashed: bool = False) -> None:
        """Draw a curve through the points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._parts.append(f'<polyline points="{path}" style="fill:none;stroke:{stroke}" stroke-width="2"{dash}/>')

    def circle(self, x: float, y: float, radius: float, fill: str, stroke: str = "none") -> None:
        """Draw a dot."""
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" stroke-width="{LINE}" '
            f'style="fill:{fill};stroke:{stroke}"/>'
        )

    def to_svg(self) -> str:
        """Return the picture as one SVG element."""
        role = "group" if self._linked else "img"  # what stands in an img cannot be reached by key
        hatch = (
            '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" '
            f'stroke="{MASK}" stroke-width="2"/></pattern></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="{role}" aria-label="{escape(self.alt)}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" font-family="{FONT}" '
            f'style="display:block;width:100%;height:auto;max-width:{self.width:g}px;margin:0.5rem auto">'
            f"{hatch if self._hatched else ''}{''.join(self._parts)}</svg>"
        )

    def _repr_html_(self) -> str:
        return self.to_svg()


def _lowered(words: str, size: float) -> str:
    """Return escaped words with the letter after each `_` small and low; what follows is back on the line."""
    low = size / 4
    return re.sub(
        r"_(\w)([^_]*)",
        rf'<tspan dy="{low:g}" font-size="{0.75 * size:g}">\1</tspan><tspan dy="{-low:g}">\2</tspan>',
        words,
    )
