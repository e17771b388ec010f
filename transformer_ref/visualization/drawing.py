"""A small SVG canvas: a drawing carries its own words for those who cannot see it."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

from transformer_ref.visualization.palette import INK, MASK

FONT = "var(--pst-font-family-base, var(--jp-ui-font-family, system-ui, sans-serif))"  # the page's, then JupyterLab's
FONT_SIZE = 14  # CSS pixels at full size, about 10.5 pt
LINE = 1.5
MIDDLE = 0.35  # of a letter's size: from the baseline of letters to their middle
ARROW_HEAD = 9.0  # pixels from the point of an arrow to its shoulders, at least
ARROW_SPREAD = 0.42  # radians between an arrow's shaft and each shoulder
HATCH = 8.5  # pixels from one line of a hatching to the next, along an edge


class Drawing:
    """A picture of `width` by `height` pixels that shrinks with its column and never grows beyond its size.

    alt: the text alternative, required.
    Displays itself in Jupyter and in the book; `to_svg()` returns the same picture as text.
    """

    def __init__(self, width: float, height: float, alt: str):
        if len(alt.split()) < 4:
            raise ValueError(f"alt: expected a sentence that says what is seen, got {alt!r}")
        self.width, self.height, self.alt = width, height, alt
        self._parts: list[str] = []
        self._linked = False

    @contextmanager
    def link(self, address: str) -> Iterator[None]:
        """Make everything drawn inside the `with` a link, for mouse and keyboard; its text is the link's name."""
        self._linked = True
        self._parts.append(f'<a href="{escape(address)}" style="color:inherit;text-decoration:none">')
        yield
        self._parts.append("</a>")

    @contextmanager
    def at(self, x: float, y: float) -> Iterator[None]:
        """Move the origin inside the `with` to (x, y), so that one part can be used in two arrangements."""
        self._parts.append(f'<g transform="translate({x:g} {y:g})">')
        yield
        self._parts.append("</g>")

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
        inner = f"><title>{escape(title)}</title></rect>" if title else "/>"
        edge = f";stroke:{stroke}" if stroke != "none" else ""
        rest = f' rx="{radius:g}"' if radius else ""
        rest += f' fill-opacity="{opacity:.3f}"' if opacity != 1 else ""
        rest += f' stroke-width="{LINE}"' if edge else ""
        self._parts.append(
            f'<rect x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" height="{_short(height)}" '
            f'style="fill:{fill}{edge}"{rest}{inner}'
        )

    def boxes(self, places: list[tuple[float, float, float, float]], fill: str) -> None:
        """Draw boxes of one color, each (x, y, width, height), as one path, which is shorter than rectangles."""
        path = "".join(
            f"M{_short(x)} {_short(y)}h{_short(width)}v{_short(height)}h{_short(-width)}z"
            for x, y, width, height in places
        )
        self._parts.append(f'<path d="{path}" style="fill:{fill}"/>')

    def hatched_rectangle(self, x: float, y: float, width: float, height: float) -> None:
        """Draw the grey hatched box that means "masked" everywhere in the course.

        Its lines are drawn one by one: an SVG pattern would need an id, and a page has many drawings.
        """
        lines, right, bottom = [], x + width, y + height
        total = HATCH * math.ceil((x + y + 1) / HATCH)  # on one line x + y is the same everywhere
        while total < right + bottom:
            low, high = max(x, total - bottom), min(right, total - y)
            ends = (low, total - low, high, total - high)
            lines.append("M{} {}L{} {}".format(*map(_short, ends)))
            total += HATCH
        self._parts.append(f'<path class="hatch" d="{"".join(lines)}" stroke="{MASK}" stroke-width="2"/>')
        self.rectangle(x, y, width, height, "none", stroke=MASK)

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
        """Write text whose middle line is at y; `turn` rotates it by that many degrees around (x, y).

        subscripts: the letter after each `_`, or the text in braces there, is a subscript: d_k, d_{ff}.
        """
        settings = f' style="fill:{fill}"' if fill != INK else ""  # what is usual is inherited from the whole picture
        settings += f' text-anchor="{anchor}"' if anchor != "middle" else ""
        settings += f' font-size="{size:g}"' if size != FONT_SIZE else ""
        settings += ' font-weight="600"' if bold else ""
        settings += f' transform="rotate({turn:g} {_short(x)} {_short(y)})"' if turn else ""
        said = _lowered(escape(words), size) if subscripts else escape(words)
        self._parts.append(f'<text x="{_short(x)}" y="{_short(y + MIDDLE * size)}"{settings}>{said}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = INK, *, width: float = LINE) -> None:
        """Draw a straight line."""
        self._parts.append(
            f'<line x1="{_short(x1)}" y1="{_short(y1)}" x2="{_short(x2)}" y2="{_short(y2)}" style="stroke:{stroke}" '
            f'stroke-width="{width:.3g}" stroke-linecap="round"/>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, stroke: str = INK, *, width: float = 2.0) -> None:
        """Draw an arrow to (x2, y2); nothing if its length is 0."""
        if math.hypot(x2 - x1, y2 - y1) < 1e-9:
            return
        angle, head = math.atan2(y2 - y1, x2 - x1), max(ARROW_HEAD, 2.4 * width)
        self.line(x1, y1, x2 - 0.7 * head * math.cos(angle), y2 - 0.7 * head * math.sin(angle), stroke, width=width)
        shoulders = [
            (x2 - head * math.cos(angle + side), y2 - head * math.sin(angle + side))
            for side in (ARROW_SPREAD, -ARROW_SPREAD)
        ]
        corners = " ".join(f"{_short(x)},{_short(y)}" for x, y in [(x2, y2), *shoulders])
        self._parts.append(f'<polygon points="{corners}" style="fill:{stroke}"/>')

    def polyline(self, points: list[tuple[float, float]], stroke: str, *, dashed: bool = False) -> None:
        """Draw a curve through the points."""
        path = " ".join(f"{_short(x)},{_short(y)}" for x, y in points)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._parts.append(f'<polyline points="{path}" style="fill:none;stroke:{stroke}" stroke-width="2"{dash}/>')

    def circle(self, x: float, y: float, radius: float, fill: str, stroke: str = "none") -> None:
        """Draw a dot."""
        self._parts.append(
            f'<circle cx="{_short(x)}" cy="{_short(y)}" r="{radius:g}" stroke-width="{LINE}" '
            f'style="fill:{fill};stroke:{stroke}"/>'
        )

    def to_svg(self, widest: float | None = None) -> str:
        """Return the picture as one SVG element; `widest`: its maximum width in pixels, by default its own width."""
        role = "group" if self._linked else "img"  # what is in an img cannot be reached by key
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="{role}" aria-label="{escape(self.alt)}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" text-anchor="middle" font-size="{FONT_SIZE}" '
            'style="display:block;width:100%;height:auto;'
            f"max-width:{widest or self.width:g}px;margin:0.5rem auto;color:{INK};fill:currentColor;"
            f'font-family:{FONT}">'
            f"{''.join(self._parts).replace(INK, 'currentColor')}</svg>"
        )

    def _repr_html_(self) -> str:
        return self.to_svg()


def _short(number: float) -> str:
    """Return a coordinate to a tenth of a pixel, without a trailing zero."""
    return f"{round(number, 1):g}"


def _lowered(words: str, size: float) -> str:
    """Return escaped text with what follows each `_` as a subscript."""
    low = size / 4
    return re.sub(
        r"_(?:\{(\w+)\}|(\w))([^_]*)",
        lambda found: (
            f'<tspan dy="{low:g}" font-size="{0.75 * size:g}">{found[1] or found[2]}</tspan>'
            f'<tspan dy="{-low:g}">{found[3]}</tspan>'
        ),
        words,
    )
