"""Pictures of which the reader chooses one, by buttons or by sliders, on a page and in a notebook, without a kernel.

All pictures are computed once and travel with the page; a few lines of script (`frames.js`) show the chosen one.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Protocol


class Picture(Protocol):
    """An object that can be drawn as SVG."""

    def to_svg(self) -> str: ...


@dataclass(frozen=True)
class Choices:
    """A row of buttons of which one is pressed.

    name: of the choice. options: label -> value, or labels that are their own values. start: index of the initial one.
    """

    name: str
    options: Mapping[str, Any] | Sequence[str]
    start: int = 0

    @property
    def values(self) -> list:
        """The value of each label."""
        return list(self.options.values() if isinstance(self.options, Mapping) else self.options)

    def to_html(self, number: str, place: int) -> str:
        """Return the buttons; `number` is the widget's, `place` the index of this control."""
        buttons = "".join(
            f'<label class="choice"><input type="radio" autocomplete="off" name="{number}-{place}" value="{index}"'
            f"{' checked' if index == self.start else ''}><span>{escape(label)}</span></label>"
            for index, label in enumerate(self.options)
        )
        return f'<fieldset data-control="{place}"><legend>{escape(self.name)}</legend>{buttons}</fieldset>'


@dataclass(frozen=True)
class Slider:
    """A slider over a row of values. name: of the quantity. values: its positions. said: a value in words, {} stands
    for the number ("{} degrees").
    """

    name: str
    values: Sequence
    said: str = "{}"
    start: int = 0

    def to_html(self, number: str, place: int) -> str:
        """Return the slider, its name before it and its value behind it."""
        said = [escape(self.said.format(value)) for value in self.values]
        handle = f"{number}-{place}"
        return (
            f'<div class="slider" data-control="{place}"><label for="{handle}">{escape(self.name)}</label>'
            f'<input type="range" autocomplete="off" id="{handle}" min="0" max="{len(said) - 1}" value="{self.start}" '
            f'aria-valuetext="{said[self.start]}" data-said="{"|".join(said)}">'
            f'<span aria-hidden="true">{said[self.start]}</span></div>'
        )


class Frames:
    """A widget that shows one picture for each setting of its controls.

    title, number: its heading, such as "Scale switch" and "W05d". draw: called with a value of each control, returns a
    caption, which a screen reader reads when it changes, and a picture, both HTML; the picture may be a drawing.
    Displays itself in Jupyter and in the book. Raises ValueError without controls.
    """

    def __init__(
        self,
        title: str,
        number: str,
        controls: Sequence[Choices | Slider],
        draw: Callable[..., tuple[str, str | Picture]],
    ):
        if not controls:
            raise ValueError("controls: expected at least one, got none")
        self.title, self.number, self.controls = title, number, list(controls)
        self.frames = [draw(*values) for values in itertools.product(*(control.values for control in controls))]

    def _start(self) -> int:
        """Return the index of the first picture among the frames: the last control changes fastest."""
        place = 0
        for control in self.controls:
            place = place * len(control.values) + control.start
        return place

    def to_html(self) -> str:
        """Return the widget; all pictures but the first are in a template, which a browser does not render."""
        shown = [f"<p>{caption}</p>{_html(picture)}" for caption, picture in self.frames]
        controls = "".join(control.to_html(self.number, place) for place, control in enumerate(self.controls))
        counts = ",".join(str(len(control.values)) for control in self.controls)
        caption, picture = self.frames[self._start()]
        return (
            f'<div class="widget frames" id="{self.number}" data-counts="{counts}">'
            f'<p class="widget-head">{escape(self.title)} <span class="widget-id">{self.number}</span></p>'
            f'<div class="widget-controls">{controls}</div>'
            f'<output aria-live="polite">{caption}</output><div class="frame">{_html(picture)}</div>'
            f"<template>{''.join(f'<div>{each}</div>' for each in shown)}</template>"
            f"<script>{_script()}</script></div>"
        )

    def _repr_html_(self) -> str:
        return self.to_html()


def _html(picture: str | Picture) -> str:
    return picture if isinstance(picture, str) else picture.to_svg()


@cache
def _script() -> str:
    return Path(__file__).with_name("frames.js").read_text(encoding="utf-8").strip()
