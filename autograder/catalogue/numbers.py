"""A number as a reader would write it."""

import math
from typing import Any


def number(value: Any) -> str:
    """The number with three decimals; with more digits only if three would show 0."""
    value = float(value)
    if math.isnan(value) or math.isinf(value) or value == 0:
        return str(value) if value else "0.000"
    return f"{value:.3f}" if 1e-3 <= abs(value) < 1e5 else f"{value:.3g}"
