"""00.5: the shapes of five lines, predicted."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Misconception, Section
from autograder.catalogue.families import A_SIZE_THAT_IS_A_FLOAT
from autograder.catalogue.known_answers import Answer, answer, correct, mistake
from autograder.catalogue.probes import visible

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


RIGHT = answer(f"""
    def predict_shapes():
        return {LINES}
""")
ASKED = answer("""
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
""")


def returning(value: Any) -> Answer:
    return RIGHT.but(str(LINES), str(value))


def shape_of(value: Any) -> tuple[int, ...] | None:
    """A predicted shape as a tuple; None for what is not a shape."""
    whole = isinstance(value, (list, tuple)) and all(type(size) is int for size in value)
    return tuple(value) if whole else None


def is_set(value: Any) -> bool:
    """Whether a value is a set, of which only a description arrives."""
    return not isinstance(value, str) and str(value) == "<builtins.set>"


def has_float(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(size, float) for size in value)


def one_line(name: str, why: str, shape: tuple, section: Section, message: str,
             is_it: Callable[[Any], bool]) -> Misconception:
    """A line whose predicted shape satisfies `is_it`; other lines may be wrong too."""

    def quotes(evidence: Evidence) -> str:
        return f'In the line "{name}" you predicted {shape_of(evidence.got[name])}.'

    def shows(evidence: Evidence) -> bool:
        return set(evidence.got) == set(LINES) and is_it(shape_of(evidence.got[name]))

    return mistake(f"{name}: {why}", returning(LINES | {name: shape}), section, message, quotes, shows)


def line(name: str, why: str, shapes: list[tuple[int, ...]], section: Section, message: str) -> Misconception:
    """A line predicted as one of these shapes."""
    return one_line(name, why, shapes[0], section, message, lambda shape: shape in shapes)


def another(name: str, shape: tuple[int, ...], section: Section, message: str) -> Misconception:
    """A line predicted as a wrong shape without a message of its own."""
    return one_line(name, "another shape", shape, section, message, lambda found: found not in (None, LINES[name]))


def no_shape(name: str, source: str, is_it: Callable[[Any], bool], message: str) -> Misconception:
    """A line predicted as a value that is not a shape."""
    return mistake(name, source, SHAPE, message, shows=lambda evidence: any(map(is_it, evidence.got.values())))


EXERCISE = Exercise(
    id="predict-shapes", number="00.5", difficulty=2, minutes=7, visible_points=2, hidden_points=0,
    reference=predict_shapes, section=PREDICT,
    probes=(visible("five lines", Case(()), hide_expected=True),),
    mistakes=(
        no_shape("shapes as text", returning(LINES | {"swap": "(3, 2, 4)"}), lambda value: isinstance(value, str),
                 "You returned a string where a shape belongs. All five lines run, so each has a shape: a tuple of "
                 "whole numbers without quotes, such as (7, 2)."),
        no_shape("tensors instead of shapes", ASKED.replace(".shape", ""), lambda value: isinstance(value, Tensor),
                 "Tensors came back. Return the *shapes* of the five results, as plain tuples of whole numbers, "
                 "such as (7, 2)."),
        no_shape("a count instead of a shape", returning({name: math.prod(shape) for name, shape in LINES.items()}),
                 lambda value: isinstance(value, int),
                 """A single number is not a shape. A shape has one size for each axis, as a tuple such as (7, 2). With
                 one axis it needs a comma, (7,): without it, (7) is only the number 7."""),
        no_shape("sets instead of shapes", returning({name: {*shape} for name, shape in LINES.items()}), is_set,
                 "Braces make a set, which has no order and holds nothing twice. A shape is a tuple, in parentheses, "
                 "such as (7, 2)."),
        A_SIZE_THAT_IS_A_FLOAT(returning(LINES | {"cut": (4, 6.0)}), STRIP,
                               shows=lambda evidence: any(map(has_float, evidence.got.values()))),
        no_shape("lines left open", returning(f"dict.fromkeys({list(LINES)}, ...)"),
                 lambda value: value is None or not isinstance(value, (str, Tensor, int, list, tuple, dict)),
                 "Not every line has a shape yet. All five lines run, so each has one: a tuple of whole numbers, "
                 "such as (7, 2)."),
        mistake("a list of shapes", returning(list(LINES.values())), SHAPE,
            "A list, a tuple or a set came back. Return a dictionary with the shape of each of the five names. (A "
            "comma after the closing brace makes a tuple of it; a comma in place of a colon makes a set.)",
            shows=lambda evidence: isinstance(evidence.got, (list, tuple)) or is_set(evidence.got)),
        line("swap", "nothing moved", [(2, 3, 4)], TURN,
             "That is the shape of x itself. transpose(0, 1) exchanges the sizes of axes 0 and 1."),
        line("swap", "all axes turned", [(4, 3, 2), (4, 2, 3), (3, 4, 2)], TURN,
             """The 4, the last size, moved. transpose(0, 1) exchanges the sizes of axes 0 and 1 and leaves the last one
             where it is. (.T reverses all three.)"""),
        line("swap", "last two axes", [(2, 4, 3)], TURN,
             "The last two sizes were exchanged. Axes count from 0, so 0 and 1 are the *first* two."),
        another("swap", (6, 4), TURN,
                """transpose(0, 1) keeps every size that x has, 2 and 3 and 4, and exchanges the first two. Nothing is
                added, joined or lost."""),
        line("cut", "the -1 kept", [(4, -1)], STRIP,
             "-1 is not a size: it means “whatever is left over”. x has 24 numbers on its strip. Cut into 4 rows, how "
             "many are in each?"),
        line("cut", "an axis kept", [(4, 2, 3), (4, 3, 2), (2, 3, 4)], STRIP,
             """view(4, -1) names two axes, so the result has two, whatever x had. The strip of 24 numbers is cut into 4
             rows: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …"""),
        line("cut", "one size dropped", [(4, 3), (4, 4), (4, 2)], STRIP,
             """Some numbers got lost: x has 24 on its strip, and view must use every one. The strip is cut like
             this: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …"""),
        line("cut", "6 rows of 4", [(6, 4)], STRIP,
             """Rows and columns are exchanged: the first number given to view is the number of *rows*. The strip is cut
             like this: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …"""),
        another("cut", (4, 24), STRIP,
                """x has 2·3·4 = 24 numbers on its strip, and view(4, -1) cuts it into 4 rows: 0 1 2 … | 6 7 8 … |
                12 13 14 … | 18 19 20 … How many are in each?"""),
        line("product", "the shared size kept", [(2, 3, 4, 5), (2, 3, 4, 4, 5)], PRODUCT,
             "The 4 is the size that x and w share: it is summed over, so it disappears."),
        line("product", "shape of x", [(2, 3, 4)], PRODUCT,
             "The last axis of x meets the first of w and is replaced by the last of w, which has a different size."),
        line("product", "batch lost", [(3, 5), (2, 5), (5,)], PRODUCT,
             "The axes in front of the product are carried along: every word of *every* sentence is multiplied."),
        line("product", "w on the left", [(5, 2, 3), (2, 5, 3)], PRODUCT,
             "The sizes are those of w first. In x @ w the axes of x come first, and the size that w adds comes last."),
        another("product", (6, 5), PRODUCT,
                "(2, 3, 4) @ (4, 5): the two 4s meet and disappear. The remaining axes of x come first, "
                "those of w last."),
        line("sum", "the wrong axis", [(3, 4), (2, 3)], SPREAD,
             "That is what is left when a different axis is summed over. dim=1 names the axis that *disappears*, "
             "counted from 0."),
        line("sum", "the axis kept", [(2, 1, 4)], SPREAD,
             "A sum removes its axis, unless keepdim=True keeps it as a 1. Here it does not."),
        line("sum", "only the axis", [(3,)], SPREAD,
             "3 is the size of the axis that is summed over. It is the one that disappears; the others stay."),
        line("sum", "everything summed", [(), (1,)], SPREAD,
             "Without an axis, sum() would leave a single number, shape (). With dim=1 only that one axis goes."),
        line("sum", "nothing summed", [(2, 3, 4)], SPREAD,
             "That is the shape of x itself. A sum makes one number of many: the axis it runs along disappears."),
        another("sum", (8,), SPREAD,
                "x is (2, 3, 4), and dim=1 is the axis of size 3. That size disappears, the others keep their order."),
        line("spread", "no spreading", [(3, 1), (4,), (3,)], SPREAD,
             """u has 3 rows of 1, v has 4 numbers. Laid over each other from the right, the 1 meets the 4 and is
             stretched; v has one axis, and one of size 1 is added in front and stretched as well."""),
        line("spread", "sizes put in a row", [(3, 1, 4), (1, 3, 4)], SPREAD,
             """The shapes were written one after the other. They are laid *over* each other, from the right: the last
             size of u meets the last of v."""),
        line("spread", "rows and columns exchanged", [(4, 3)], SPREAD,
             "Rows and columns are exchanged: u has 3 *rows*, and v broadcasts along them with its 4 numbers."),
        line("spread", "sizes added", [(7, 1), (3, 5), (7,)], SPREAD,
             """Adding two tensors adds their numbers, not their sizes. Lay the shapes over each other from the right: 1
             stretches, a missing axis counts as 1."""),
        another("spread", (12,), SPREAD,
                """Lay (3, 1) and (4) over each other from the right: equal sizes agree, a 1 or a missing axis stretches
                to the other's size."""),
    ),
    correct=(
        correct("by hand", RIGHT),
        correct("lists", returning({name: list(shape) for name, shape in LINES.items()})),
        correct("another order, built by dict", returning(
            "dict(spread=(3, 4), sum=(2, 4), product=(2, 3, 5), cut=(4, 6), swap=(3, 2, 4))")),
        correct("asked of torch", ASKED),
        correct("worked out", """
            def predict_shapes():
                B, T, D, m = 2, 3, 4, 5
                shapes = {}
                shapes["swap"] = (T, B, D)
                shapes["cut"] = (4, B * T * D // 4)
                shapes["product"] = (B, T, m)
                shapes["sum"] = (B, D)
                shapes["spread"] = (3, 4)
                return shapes
        """),
        correct("torch.Size", returning({name: torch.Size(shape) for name, shape in LINES.items()})),
    ),
    hints=(
        "take the lines one at a time, and write the size of each axis of x above the line before you answer.",
        "transpose exchanges two sizes; view keeps 24 numbers; a product and a sum make a size disappear; broadcasting "
        "aligns two shapes from the right.",
        "swap: axes 0 and 1 change places. Cut: 24 numbers in 4 rows. Product: the two 4s vanish. Sum: axis 1 "
        "vanishes. Spread: 1 stretches, a missing axis is added in front.",
    ),
)
