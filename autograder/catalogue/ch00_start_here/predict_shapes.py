"""00.5 predict_shapes."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import sections
from autograder.catalogue.exercise import Case, Exercise, Misconception, Probe, Section
from autograder.catalogue.parts import known, right

PREDICT, PRODUCT, SHAPE, SPREAD, STRIP, TURN = sections("predict product shape spread strip turn")

LINES = {
    "swap": (3, 2, 4),
    "cut": (4, 6),
    "product": (2, 3, 5),
    "sum": (2, 4),
    "spread": (3, 4),
}


def predict_shapes() -> dict[str, tuple[int, ...]]:
    """The shapes of the five lines."""
    return dict(LINES)


def _predicted(**changed: Any) -> str:
    """An answer with some of its lines replaced."""
    return f"def predict_shapes():\n    return {LINES | changed!r}\n"


def _shape(value: Any) -> tuple[int, ...] | None:
    """A predicted shape, whatever it was written as; None for what is no shape."""
    if isinstance(value, (list, tuple)) and all(type(size) is int for size in value):
        return tuple(value)
    return None


def _line(
    name: str, why: str, message: str, wrong: tuple[int, ...], section: Section, *others: tuple[int, ...]
) -> Misconception:
    """One line predicted as `wrong` (or as one of the others), in an answer whose other lines may be wrong as well."""
    return known(
        f"{name}: {why}",
        _predicted(**{name: wrong}),
        message,
        section,
        lambda evidence: f'In the line "{name}" you predicted {_shape(evidence.got[name])}.',
        lambda evidence: set(evidence.got) == set(LINES) and _shape(evidence.got[name]) in (wrong, *others),
    )


def _any_other(name: str, message: str, section: Section, wrong: tuple[int, ...]) -> Misconception:
    """One line predicted as any wrong shape that nobody foresaw."""
    return known(
        f"{name}: another shape",
        _predicted(**{name: wrong}),
        message,
        section,
        lambda evidence: f'In the line "{name}" you predicted {_shape(evidence.got[name])}.',
        lambda evidence: set(evidence.got) == set(LINES) and _shape(evidence.got[name]) not in (None, LINES[name]),
    )


def _of_kind(name: str, source: str, message: str, kind: Callable[[Any], bool]) -> Misconception:
    """A value that is no shape at all, in some line."""
    return known(
        name, source, message, SHAPE, None, lambda evidence: any(kind(value) for value in evidence.got.values())
    )


EXERCISE = Exercise(
    id="predict-shapes",
    number="00.5",
    visible_points=2,
    hidden_points=0,
    section=PREDICT,
    reference=predict_shapes,
    probes=(Probe("five lines", lambda g: Case(()), hidden=False, quiz=True),),
    wrong=(
        _of_kind(
            "shapes as text",
            _predicted(swap="(3, 2, 4)"),
            "A shape in quotes is a text. Leave the quotes away: a shape is a tuple of whole numbers, such as (7, 2).",
            lambda value: isinstance(value, str),
        ),
        _of_kind(
            "tensors instead of shapes",
            "def predict_shapes():\n"
            "    x, w = torch.zeros(2, 3, 4), torch.zeros(4, 5)\n"
            "    u, v = torch.zeros(3, 1), torch.zeros(4)\n"
            '    return {"swap": x.transpose(0, 1), "cut": x.view(4, -1), "product": x @ w, "sum": x.sum(1), "spread": u + v}\n',
            "Tensors came back. Their *shapes* are wanted, as tuples of whole numbers.",
            lambda value: isinstance(value, Tensor),
        ),
        _of_kind(
            "a count instead of a shape",
            _predicted(swap=24, cut=24, product=30, sum=8, spread=12),
            "A single number tells how many numbers there are, not how they are arranged. A shape has one size for each axis, as a tuple such as (7, 2).",
            lambda value: isinstance(value, int),
        ),
        _of_kind(
            "lines left open",
            "def predict_shapes():\n    return dict.fromkeys(('swap', 'cut', 'product', 'sum', 'spread'), ...)\n",
            "Not every line has a shape yet. Replace each ... with a tuple of whole numbers, such as (7, 2).",
            lambda value: value is None or not isinstance(value, (str, Tensor, int, list, tuple, dict)),
        ),
        known(
            "a list of shapes",
            f"def predict_shapes():\n    return {list(LINES.values())!r}\n",
            "A list came back. A dictionary is wanted, which says for each of the five names what its shape is.",
            SHAPE,
            None,
            lambda evidence: isinstance(evidence.got, (list, tuple)),
        ),
        _line(
            "swap",
            "nothing moved",
            "That is the shape of x itself. transpose(0, 1) exchanges the sizes at places 0 and 1.",
            (2, 3, 4),
            TURN,
        ),
        _line(
            "swap",
            "all axes turned",
            "All three sizes changed places, as .T would do it. transpose(0, 1) exchanges the sizes at places 0 and 1 and leaves the rest alone.",
            (4, 3, 2),
            TURN,
            (4, 2, 3),
            (3, 4, 2),
        ),
        _line(
            "swap",
            "last two axes",
            "The last two sizes were exchanged. Axes count from 0, so 0 and 1 are the *first* two.",
            (2, 4, 3),
            TURN,
        ),
        _any_other(
            "swap",
            "transpose(0, 1) keeps every size that x has, 2 and 3 and 4, and exchanges the first two. Nothing is added, joined or lost.",
            TURN,
            (6, 4),
        ),
        _line(
            "cut",
            "the -1 kept",
            "-1 is no size: it says “whatever is left over”. x has 24 numbers on its strip. Cut into 4 rows, how many are in each?",
            (4, -1),
            STRIP,
        ),
        _line(
            "cut",
            "an axis kept",
            "view(4, -1) names two axes, so the result has two, whatever x had. The strip of 24 numbers is cut into 4 rows: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …",
            (4, 2, 3),
            STRIP,
            (4, 3, 2),
            (2, 3, 4),
        ),
        _line(
            "cut",
            "one size dropped",
            "Some numbers got lost: x has 24 on its strip, and view must use every one. The strip is cut like this: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …",
            (4, 3),
            STRIP,
            (4, 4),
            (4, 2),
        ),
        _line(
            "cut",
            "6 rows of 4",
            "Rows and columns are exchanged: the first number given to view is the number of *rows*. The strip is cut like this: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …",
            (6, 4),
            STRIP,
        ),
        _any_other(
            "cut",
            "x has 2·3·4 = 24 numbers on its strip, and view(4, -1) cuts it into 4 rows: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 … How many are in each?",
            STRIP,
            (4, 24),
        ),
        _line(
            "product",
            "the shared size kept",
            "The 4 is the size that x and w share: it is summed over, so it disappears.",
            (2, 3, 4, 5),
            PRODUCT,
            (2, 3, 4, 4, 5),
        ),
        _line(
            "product",
            "shape of x",
            "The last axis of x meets the first of w and is replaced: what w makes of 4 numbers has another size.",
            (2, 3, 4),
            PRODUCT,
        ),
        _line(
            "product",
            "batch lost",
            "The axes in front of the product are carried along: every word of *every* sentence is multiplied.",
            (3, 5),
            PRODUCT,
            (2, 5),
            (5,),
        ),
        _line(
            "product",
            "w on the left",
            "The sizes are those of w first. In x @ w the axes of x come first, and the size that w adds stands last.",
            (5, 2, 3),
            PRODUCT,
            (2, 5, 3),
        ),
        _any_other(
            "product",
            "(2, 3, 4) @ (4, 5): the two 4s meet and disappear. What is left of x stands in front, what is left of w behind.",
            PRODUCT,
            (6, 5),
        ),
        _line(
            "sum",
            "the wrong axis",
            "That is what is left when another axis goes. dim=1 names the axis that *disappears*, counted from 0.",
            (3, 4),
            SPREAD,
            (2, 3),
        ),
        _line(
            "sum",
            "the axis kept",
            "A sum removes its axis, unless keepdim=True keeps it as a 1. Here nothing asks for that.",
            (2, 1, 4),
            SPREAD,
        ),
        _line(
            "sum",
            "only the axis",
            "3 is the size of the axis that is summed over. It is the one that disappears; the others stay.",
            (3,),
            SPREAD,
        ),
        _line(
            "sum",
            "everything summed",
            "Without an axis, sum() would leave a single number, shape (). With dim=1 only that one axis goes.",
            (),
            SPREAD,
            (1,),
        ),
        _line(
            "sum",
            "nothing summed",
            "That is the shape of x itself. A sum makes one number of many: the axis it runs along disappears.",
            (2, 3, 4),
            SPREAD,
        ),
        _any_other(
            "sum",
            "x is (2, 3, 4), and dim=1 is the place of the 3. That size disappears, the others keep their order.",
            SPREAD,
            (8,),
        ),
        _line(
            "spread",
            "no spreading",
            "u has 3 rows of 1, v has 4 numbers. Laid over each other from the right, the 1 meets the 4 and is repeated; v has no second axis, so it is repeated for every row.",
            (3, 1),
            SPREAD,
            (4,),
            (3,),
        ),
        _line(
            "spread",
            "sizes put in a row",
            "The shapes were written one after the other. They are laid *over* each other, from the right: the last size of u meets the last of v.",
            (3, 1, 4),
            SPREAD,
            (1, 3, 4),
        ),
        _line(
            "spread",
            "rows and columns exchanged",
            "Rows and columns are exchanged: u has 3 *rows*, and v lies along them with its 4 numbers.",
            (4, 3),
            SPREAD,
        ),
        _line(
            "spread",
            "sizes added",
            "Adding two tensors adds their numbers, not their sizes. Lay the shapes over each other from the right: 1 stretches, a missing axis counts as 1.",
            (7, 1),
            SPREAD,
            (3, 5),
            (7,),
        ),
        _any_other(
            "spread",
            "Lay (3, 1) and (4) over each other from the right: equal sizes agree, a 1 or a missing axis stretches to the other's size.",
            SPREAD,
            (12,),
        ),
    ),
    right=(
        right("by hand", _predicted()),
        right(
            "lists",
            "def predict_shapes():\n    return {'swap': [3, 2, 4], 'cut': [4, 6], 'product': [2, 3, 5], 'sum': [2, 4], 'spread': [3, 4]}\n",
        ),
        right(
            "another order, built by dict",
            "def predict_shapes():\n    return dict(spread=(3, 4), sum=(2, 4), product=(2, 3, 5), cut=(4, 6), swap=(3, 2, 4))\n",
        ),
        right(
            "asked of torch",
            """
            def predict_shapes():
                x, w = torch.zeros(2, 3, 4), torch.zeros(4, 5)
                u, v = torch.zeros(3, 1), torch.zeros(4)
                return {
                    "swap": x.transpose(0, 1).shape,
                    "cut": x.view(4, -1).shape,
                    "product": (x @ w).shape,
                    "sum": x.sum(dim=1).shape,
                    "spread": (u + v).shape,
                }
            """,
        ),
        right(
            "worked out",
            """
            def predict_shapes():
                B, T, D, m = 2, 3, 4, 5
                shapes = {}
                shapes["swap"] = (T, B, D)
                shapes["cut"] = (4, B * T * D // 4)
                shapes["product"] = (B, T, m)
                shapes["sum"] = (B, D)
                shapes["spread"] = (3, 4)
                return shapes
            """,
        ),
        right(
            "torch.Size",
            "def predict_shapes():\n    S = torch.Size\n    return {'swap': S([3, 2, 4]), 'cut': S([4, 6]), 'product': S([2, 3, 5]), 'sum': S([2, 4]), 'spread': S([3, 4])}\n",
        ),
    ),
    hints=(
        "take the lines one at a time, and write the shape of x above each axis before you answer.",
        "transpose exchanges two sizes; view keeps 24 numbers; a product and a sum make a size disappear; shapes that meet are laid over each other from the right.",
        "swap: places 0 and 1 change. Cut: 24 numbers in 4 rows. Product: the two 4s vanish. Sum: the size at place 1 vanishes. Spread: 1 stretches, a missing axis is added in front.",
    ),
)
