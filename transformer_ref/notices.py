"""Warnings that point at the line of the caller, however deep in this package they arise."""

import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).resolve().parent)


class Notice(UserWarning):
    """A warning about the user's input, such as a line that is cut."""


def warn_user(text: str) -> None:
    """Warn at the line of the nearest caller outside this package (`skip_file_prefixes` in Python 3.12)."""
    frame, level = sys._getframe(1), 2  # 2 is the caller of this function
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, Notice, stacklevel=level if frame is not None else 2)
