"""Splits a merge conflict that git or nbdime left in a text into its two texts."""

import re

SAID = (
    "The file held a merge conflict of git (lines such as `<<<<<<<`). Of each place the first version was graded, and "
    "the second where the first held no answer. Please settle the conflict and hand in again."
)

_MARKER = re.compile(r"^(<{7}|\|{7}|={7}|>{7})(?: [^\n]*)?\r?$", re.MULTILINE)
_BOTH, _FIRST, _BASE, _SECOND = "both", "first", "base", "second"


def sides(text: str) -> tuple[str, str] | None:
    """The text with the first side of each conflict, and with the second; None if there is no conflict."""
    if "<<<<<<<" not in text or not re.search(r"^<{7}(?: [^\n]*)?\r?$", text, re.MULTILINE):
        return None
    first, second, state, done = [], [], _BOTH, 0
    for marker in _MARKER.finditer(text):
        part = text[done : marker.start()]
        if state in (_BOTH, _FIRST):
            first.append(part)
        if state in (_BOTH, _SECOND):
            second.append(part)
        done = marker.end() + 1
        sign = marker[1][0]
        if sign == "<":
            state = _FIRST
        elif sign == ">":
            state = _BOTH
        elif state == _BOTH:  # a line of equals signs like any other
            first.append(marker[0] + "\n")
            second.append(marker[0] + "\n")
        else:
            state = _BASE if sign == "|" else _SECOND
    rest = text[done:]
    first += [rest] if state in (_BOTH, _FIRST) else []
    second += [rest] if state in (_BOTH, _SECOND) else []
    return "".join(first), "".join(second)
