"""A figure in two arrangements, one for a page and one for a phone, with its numbers as text below them."""

from collections.abc import Iterable

from transformer_ref.visualization.drawing import Drawing

PAGE, PHONE = 720.0, 350.0  # pixels; a drawing of this width is read at its own size in the book's column, on a phone
WIDEST = 960.0  # what a hero may grow to where the column is wider
TURNS = 600  # a column narrower than this many pixels gets the arrangement for the phone

# The column decides, not the screen, so a notebook next to a file list gets the narrow one; and what is not shown is
# not read aloud. It is here and not in the book's style sheet because notebooks have no such sheet.
STYLE = (
    ".chapter-hero{container-type:inline-size;margin:1rem 0;break-inside:avoid}.chapter-hero .for-phone{display:none}"
    f"@container(max-width:{TURNS - 1}px)"
    + "{.chapter-hero .for-page{display:none}.chapter-hero .for-phone{display:block}}"
)


class Hero:
    """wide, narrow: the same figure for a page and for a phone. words: its numbers as text, for `print`.

    Raises ValueError if a drawing is wider than the page or the phone.
    """

    def __init__(self, wide: Drawing, narrow: Drawing, words: Iterable[str]) -> None:
        for name, drawing, widest in (("wide", wide, PAGE), ("narrow", narrow, PHONE)):
            if drawing.width > widest:
                raise ValueError(f"{name}: expected a drawing of at most {widest:g} pixels, got {drawing.width:g}")
        self.wide, self.narrow, self.words = wide, narrow, "\n".join(words)

    def __str__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        return (
            f"<div class='chapter-hero'><style>{STYLE}</style>"
            f"<div class='for-page'>{self.wide.to_svg(widest=WIDEST)}</div>"
            f"<div class='for-phone'>{self.narrow.to_svg(widest=1.3 * PHONE)}</div></div>"
        )
