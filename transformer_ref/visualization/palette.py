"""One color per role, the same in every figure, table and widget (Okabe-Ito, safe for color-blind readers).

Colors are fills and strokes only. Text keeps the ink of the page around it, so one drawing serves a light
page and a dark one: `INK` and `PAPER` are CSS values that resolve to the book's colors, then to
JupyterLab's, then to black on white.
"""

QUERY = "#0072B2"  # blue
KEY = "#E69F00"  # orange
VALUE = "#009E73"  # green
POSITION = "#CC79A7"  # purple
ENCODER = "#56B4E9"  # sky
DECODER = "var(--figure-decoder, #334155)"  # dark slate; a dark page has a lighter one, or it would not be seen
MASK = "#9CA3AF"  # grey, always hatched as well
MISTAKE = "#D55E00"  # vermillion, always with a cross as well

WEIGHT = QUERY  # weights from 0 to 1 run from paper to this one hue
NEGATIVE, POSITIVE = "#8E4585", VALUE  # signed values run from purple over paper to green
STRONGEST_SIGNED = 0.75

INK = "var(--figure-ink, var(--jp-ui-font-color0, #111827))"
PAPER = "var(--figure-paper, var(--jp-layout-color0, #ffffff))"
GRID = "var(--figure-grid, #d1d5db)"

ON_WEIGHT = f"var(--on-weight, {INK})"  # from half full on the page's ink is a shade too light: black there
ON_WEIGHT_FROM, WHITE_TEXT_FROM = 0.5, 0.93  # text then has 4.5 to 1 on every weight, on a light page and a dark one


def weight_fill(weight: float) -> tuple[str, float]:
    """Return the (color, opacity) that shows a weight; the scale is 0 to 1 in every figure.

    Raises ValueError for a number outside 0 to 1 (a score, say, that has not been through softmax).
    """
    if not -1e-6 <= weight <= 1 + 1e-6:
        raise ValueError(f"weight: expected a number from 0 to 1, got {weight}")
    return WEIGHT, min(max(weight, 0.0), 1.0)


def signed_fill(value: float, largest: float) -> tuple[str, float]:
    """Return the (color, opacity) that shows a signed value, centered at 0 and strongest at +-largest.

    The strongest is not quite full: the page's ink stays readable on it, on a light page and a dark one.
    """
    if largest <= 0 or abs(value) > largest * (1 + 1e-6):
        raise ValueError(f"value: expected a number from -{largest} to {largest}, got {value}")
    return (POSITIVE if value >= 0 else NEGATIVE), STRONGEST_SIGNED * min(abs(value) / largest, 1.0)


def text_on(opacity: float) -> str:
    """Return the text color that stays readable on a cell filled with this opacity."""
    if opacity < ON_WEIGHT_FROM:
        return INK
    return "#ffffff" if opacity >= WHITE_TEXT_FROM else ON_WEIGHT
