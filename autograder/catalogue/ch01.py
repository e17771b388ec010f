"""Chapter 01, why attention: five exercises, their probes, and the wrong answers that teachers know."""

import math

import torch
from torch import Tensor

from autograder.catalogue.exercise import Assignment, Case, Evidence, Exercise, Law, Probe, Section
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row, sizes, turned
from autograder.judging.compare import number

BOTTLENECK = Section("01", "How much fits into one vector?", "sec-01-bottleneck")
PADDING = Section("01", "Sentences of different lengths", "sec-01-padding")
GRADIENT = Section("01", "What reaches the first word?", "sec-01-gradients")
LOOK_BACK = Section("01", "Looking back", "sec-01-look-back")
PATHS = Section("01", "How far apart are two words?", "sec-01-paths")
COST = Section("01", "What does it cost?", "sec-01-cost")

# ------------------------------------------------------------------------------------------------ 01.1 path_length


def path_length(kind: str, i: int, j: int, k: int = 3) -> int:
    """Steps from word i to word j: along the chain, up a stack of windows, or directly."""
    distance = abs(i - j)
    if kind == "recurrent":
        return distance
    if kind == "window":
        return math.ceil(distance / ((k - 1) // 2))
    return min(distance, 1)


def _path(
    recurrent: str = "d",
    window: str = "math.ceil(d / ((k - 1) // 2))",
    attention: str = "min(d, 1)",
    distance: str = "abs(i - j)",
) -> str:
    """An answer with one of its lines replaced."""
    return (
        f"def path_length(kind, i, j, k=3):\n    d = {distance}\n    if kind == 'recurrent':\n        return {recurrent}\n"
        f"    if kind == 'window':\n        return {window}\n    return {attention}\n"
    )


def _said(evidence: Evidence) -> str:
    kind, i, j, *rest = evidence.arguments
    window = f" with windows of {rest[0]}" if kind == "window" and rest else ""
    return f"For words {i} and {j}{window} you said {evidence.got}."


def _drawn(low: int, high: int, g: torch.Generator) -> int:
    return int(torch.randint(low, high + 1, (), generator=g))


def _apart(kind: str, g: torch.Generator, distance: int, *k: int, back: bool = False) -> Case:
    """Two words that many places apart, somewhere in the sentence."""
    start = _drawn(2, 9, g)
    words = (start + distance, start) if back else (start, start + distance)
    return Case((kind, *words, *k))


PATH_EXERCISE = Exercise(
    id="path-length",
    number="01.1",
    names=("path_length",),
    visible_points=1,
    hidden_points=2,
    section=PATHS,
    reference={"path_length": path_length},
    probes=(
        Probe("recurrent, words 1 and 50", lambda g: Case(("recurrent", 1, 50)), hidden=False),
        Probe("recurrent, neighbors", lambda g: Case(("recurrent", 4, 5)), hidden=False),
        Probe("windows of 3, words 1 and 50", lambda g: Case(("window", 1, 50, 3)), hidden=False),
        Probe("windows of 7, words 1 and 50", lambda g: Case(("window", 1, 50, 7)), hidden=False),
        Probe("windows of 7, words 2 and 10", lambda g: Case(("window", 2, 10, 7)), hidden=False),
        Probe("attention, words 1 and 50", lambda g: Case(("attention", 1, 50)), hidden=False),
        Probe("recurrent, the later word first", lambda g: _apart("recurrent", g, _drawn(12, 40, g), back=True)),
        Probe("windows of 5", lambda g: _apart("window", g, 2 * _drawn(5, 20, g) + 1, 5)),
        Probe(
            "windows of 7, the later word first", lambda g: _apart("window", g, 3 * _drawn(4, 14, g) + 1, 7, back=True)
        ),
        Probe("windows of 9 that end exactly on the word", lambda g: _apart("window", g, 4 * _drawn(3, 11, g), 9)),
        Probe("windows without a given k", lambda g: _apart("window", g, _drawn(11, 40, g))),
        Probe("a far word in windows of 101", lambda g: _apart("window", g, 50 * _drawn(300, 700, g) + 13, 101)),
        Probe("attention, the later word first", lambda g: _apart("attention", g, _drawn(12, 40, g), back=True)),
        Probe("a word and itself, recurrent", lambda g: _apart("recurrent", g, 0)),
        Probe("a word and itself, windows", lambda g: _apart("window", g, 0, 5)),
        Probe("a word and itself, attention", lambda g: _apart("attention", g, 0)),
    ),
    misconceptions=(
        known(
            "words counted instead of steps",
            _path(distance="abs(i - j) + 1"),
            "Both words were counted. Between neighbors there is 1 step: count the moves, as on a board game, not the squares.",
            PATHS,
            _said,
        ),
        known(
            "words counted in a chain only",
            _path("d + 1"),
            "In the chain you counted both words. Between neighbors there is 1 step: count the moves, not the squares.",
            PATHS,
            _said,
        ),
        known(
            "words in between counted",
            _path(distance="max(abs(i - j) - 1, 0)"),
            "Those are the words that lie *between* the two. The step that arrives counts as well: neighbors are 1 step apart.",
            PATHS,
            _said,
        ),
        known(
            "reach of a whole window",
            _path(window="math.ceil(d / k)"),
            """That is a reach of k words to one side. A window of k stands *around* its word, so only a part of it
            lies on the side you want to go: draw a window of 3 and count.""",
            PATHS,
            _said,
        ),
        known(
            "reach of both sides",
            _path(window="math.ceil(d / (k - 1))"),
            """The word itself was taken off the window, but both of its sides were added together. A step goes to one side.""",
            PATHS,
            _said,
        ),
        known(
            "half of k",
            _path(window="math.ceil(d / (k / 2))"),
            """Half of k counts half of the word in the middle too. The window stands around its word: take that one off first,
            then halve.""",
            PATHS,
            _said,
        ),
        known(
            "the word itself in the reach",
            _path(window="math.ceil(d / ((k + 1) // 2))"),
            "You counted the word in the middle as reached. It is where you stand; only its neighbors to one side bring you on.",
            PATHS,
            _said,
        ),
        known(
            "rounded down",
            _path(window="d // ((k - 1) // 2)"),
            "49 words at 3 a layer: after 16 layers one word is still missing. A layer that is used in part is still a layer.",
            PATHS,
            _said,
        ),
        known(
            "rounded to the nearest",
            _path(window="round(d / ((k - 1) // 2))"),
            "Rounding to the nearest drops a small remainder. One word beyond the last full layer still needs a layer.",
            PATHS,
            _said,
        ),
        known(
            "one layer more, always",
            _path(window="d // ((k - 1) // 2) + 1"),
            "Right where a remainder is left, and one layer too many where the windows end exactly on the word.",
            PATHS,
        ),
        known(
            "not rounded",
            _path(window="d / ((k - 1) // 2)"),
            "There is no part of a layer: a whole number is wanted, the first that is enough.",
            PATHS,
            _said,
        ),
        known(
            "a whole number as float",
            _path(window="float(math.ceil(d / ((k - 1) // 2)))"),
            "The number is right and its type is not: layers are counted with a plain Python int, 17 and not 17.0.",
            PATHS,
        ),
        known(
            "k ignored",
            _path(window="d"),
            "The same number for every k: your windows always reach 1 word to each side. Wider ones reach further.",
            PATHS,
            _said,
        ),
        known(
            "windows that grow by a factor",
            _path(window="0 if d == 0 else max(1, math.ceil(math.log(d, k)))"),
            """A logarithm: that is the path through *dilated* windows, which skip more words in each layer. Here every
            layer has the same plain windows, so each adds the same number of words.""",
            PATHS,
            _said,
        ),
        known(
            "windows taken for attention",
            "def path_length(kind, i, j, k=3):\n    d = abs(i - j)\n    if kind == 'recurrent':\n        return d\n    if kind == 'convolution':\n        return math.ceil(d / ((k - 1) // 2))\n    return min(d, 1)\n",
            """For windows you answered as for attention. Is the kind spelled as the description above the cell spells it? Here it
            is "window".""",
            PATHS,
            _said,
        ),
        known(
            "attention squared",
            _path(attention="d * d"),
            "n squared is what attention *costs*, counted in pairs. The way from one word to another is a single step.",
            COST,
            _said,
        ),
        known(
            "attention walks as well",
            _path(attention="d"),
            "In attention every word asks every other word directly. How far apart they stand makes no difference.",
            PATHS,
            _said,
        ),
        known(
            "attention passes every word",
            _path(attention="max(i, j)"),
            "That counts words of the sentence. Attention may *look at* all of them, but from one to another it is a single step.",
            PATHS,
            _said,
        ),
        known(
            "attention for nothing",
            _path(attention="0"),
            "No path is free: attention carries something from word to word in 1 step. 0 is the distance of a word to itself.",
            PATHS,
            _said,
        ),
        known(
            "attention to itself",
            _path(attention="1"),
            "From a word to itself nothing has to travel: 0 steps, for every kind, attention too.",
            PATHS,
        ),
        known(
            "yes or no",
            _path(attention="d > 0"),
            "For attention you returned True or False. A number of steps is wanted.",
            PATHS,
        ),
        known(
            "at least one layer",
            _path(window="max(1, math.ceil(d / ((k - 1) // 2)))"),
            "From a word to itself nothing has to travel: 0 layers, for windows too.",
            PATHS,
        ),
        known(
            "at least one step",
            _path("max(d, 1)", "max(1, math.ceil(d / ((k - 1) // 2)))", "1"),
            "From a word to itself nothing has to travel: 0 steps, for every kind.",
            PATHS,
        ),
        known(
            "sign kept",
            _path(distance="j - i"),
            "When the later word comes first, your number is negative. A distance has no direction.",
            PATHS,
        ),
        known(
            "forward only",
            _path(distance="max(j - i, 0)"),
            "When the later word comes first, you say 0. We ask how far apart they are, whichever stands first.",
            PATHS,
        ),
        known(
            "negative steps, rounded up",
            """
            def path_length(kind, i, j, k=3):
                d = j - i
                if kind == "recurrent":
                    return d
                if kind == "window":
                    return math.ceil(d / ((k - 1) // 2))
                return 1 if d else 0
            """,
            "Where the later word comes first your number is negative. The way back is as long as the way there.",
            PATHS,
        ),
    ),
    variants=(
        right("ceil", _path()),
        right("integer arithmetic", _path(window="-(-d // (k // 2))", attention="int(d != 0)")),
        right(
            "loop",
            """
            def path_length(kind, first, second, width=3):
                if kind == "attention":
                    return 0 if first == second else 1
                reach = 1 if kind == "recurrent" else (width - 1) // 2
                low, high = min(first, second), max(first, second)
                steps = 0
                while low < high:
                    low += reach
                    steps += 1
                return steps
            """,
        ),
        right(
            "table",
            """
            def path_length(kind, i, j, k=3):
                d = max(i, j) - min(i, j)
                reach = {"recurrent": 1, "window": (k - 1) // 2, "attention": max(d, 1)}[kind]
                return (d + reach - 1) // reach
            """,
        ),
        right(
            "divmod",
            """
            def path_length(kind, i, j, k=3):
                d = i - j if i > j else j - i
                if kind == "recurrent":
                    return d
                if kind == "attention":
                    return 1 if d else 0
                full, rest = divmod(d, k // 2)
                return full + (rest > 0)
            """,
        ),
        right(
            "recursion by match",
            """
            def path_length(kind, i, j, k=3):
                match kind:
                    case "recurrent":
                        return abs(j - i)
                    case "window":
                        return int(math.ceil(2 * abs(j - i) / (k - 1)))
                    case "attention":
                        return int(i != j)
            """,
        ),
    ),
    hints=(
        "write words 1 to 5 in a row and count the moves from 1 to 5: along the row, with windows of 3, with windows of 5.",
        "d = how far apart the words are, 0 or more. A window of k reaches (k - 1) / 2 words to each side in one layer.",
        "recurrent: d. window: d divided by the reach, rounded up. attention: 1, but 0 when the words are the same.",
    ),
)

# ------------------------------------------------------------------------------------------------ 01.2 gradient_norms


def gradient_norms(W: Tensor, T: int) -> Tensor:
    """The spectral norms of the powers of W, from the (T-1)th down to the 0th."""
    power, norms = torch.eye(W.shape[0], dtype=W.dtype), []
    for _ in range(T):
        norms.append(torch.linalg.matrix_norm(power, 2))
        power = power @ W  # (D, D)
    return torch.stack(norms[::-1])  # (T,)


def _norms(
    norm: str = "torch.linalg.matrix_norm(power, 2)",
    step: str = "power @ W",
    count: str = "T",
    result: str = "torch.stack(norms[::-1])",
) -> str:
    """An answer with one of its lines replaced; `n` counts the steps taken."""
    return (
        "def gradient_norms(W, T):\n    power, norms = torch.eye(W.shape[0], dtype=W.dtype), []\n"
        f"    for n in range({count}):\n        norms.append({norm})\n        power = {step}\n    return {result}\n"
    )


_ROTATION = 0.9 * torch.tensor([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
_SHEAR = torch.tensor([[1.0, 1.0], [0.0, 1.0]])


def _rotation(g: torch.Generator, D: int, scale: float) -> Tensor:
    return scale * torch.linalg.qr(normal(g, D, D, dtype=torch.float64))[0]


def _yours(evidence: Evidence) -> str:
    if not isinstance(evidence.got, Tensor) or evidence.got.dim() != 1:
        return ""
    return f"Yours are {row(evidence.got)}."


NORMS_EXERCISE = Exercise(
    id="gradient-norms",
    number="01.2",
    names=("gradient_norms",),
    visible_points=1,
    hidden_points=2,
    section=GRADIENT,
    reference={"gradient_norms": gradient_norms},
    probes=(
        Probe("a rotation that shrinks by 0.9, T = 6", lambda g: Case((_ROTATION, 6)), hidden=False),
        Probe("a shear, T = 4", lambda g: Case((_SHEAR, 4)), hidden=False),
        Probe("other sizes", lambda g: Case((normal(g, 5, 5) / 5**0.5, 7))),
        Probe("one number, below 0", lambda g: Case((-0.5 - 0.4 * torch.rand(1, 1, generator=g), 5))),
        Probe("the last state alone", lambda g: Case((normal(g, 3, 3), 1))),
        Probe("a matrix whose powers die out", lambda g: Case((normal(g, 3, 3).triu(1), 6))),
        Probe("vanishing", lambda g: Case((_rotation(g, 3, 0.5), 40)), rtol=1e-3, atol=0.0),
        Probe("exploding", lambda g: Case((_rotation(g, 4, 2.5).float(), 30)), rtol=1e-3),
        Probe("float64, transposed in memory", lambda g: Case((turned(normal(g, 4, 4, dtype=torch.float64)) / 2, 6))),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 3), 5)), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "elementwise power",
            _norms("torch.linalg.matrix_norm(W**n, 2)"),
            """** raises each *number* of W to the power. Walking back k steps multiplies k *matrices*; for a rotation the
            difference is plain: turned twice is still a rotation, its squared numbers are not.""",
            GRADIENT,
            _yours,
        ),
        known(
            "elementwise power, the identity last",
            _norms("torch.linalg.matrix_norm(W**n if n else power, 2)"),
            """** raises each *number* of W to the power; your last value is right, the others are not. Walking back k steps multiplies
            k *matrices*.""",
            GRADIENT,
            _yours,
        ),
        known(
            "elementwise product",
            _norms(step="power * W"),
            "* multiplies number by number, and with the identity that leaves only the diagonal. Walking back a step is a *matrix* product.",
            GRADIENT,
            _yours,
        ),
        known(
            "Frobenius norm",
            _norms("torch.linalg.matrix_norm(power)"),
            """Your value at t = T is the root of D instead of 1: this is the Frobenius norm, all numbers squared and added.
            The spectral norm asks how much the matrix can stretch *one* vector.""",
            GRADIENT,
            _yours,
        ),
        known(
            "reversed",
            _norms(result="torch.stack(norms)"),
            """The numbers are right and stand in reverse. Entry t is about the state at time t; at t = T nothing lies
            between, so the *last* one is exactly 1.""",
            GRADIENT,
            _yours,
        ),
        known(
            "reversed, from the first power",
            _norms(
                result="torch.stack([torch.linalg.matrix_norm(torch.linalg.matrix_power(W, t), 2) for t in range(1, T + 1)])"
            ),
            """Your entry t holds the t-th power. From state t to state T there are T - t steps: many for the first state, none for the
            last.""",
            GRADIENT,
            _yours,
        ),
        known(
            "one step too many",
            _norms(
                result="torch.stack([torch.linalg.matrix_norm(p @ W, 2) for p in [torch.linalg.matrix_power(W, n) for n in range(T)]][::-1])"
            ),
            "At t = T no step lies between a state and itself, so the last value is exactly 1. Yours are all one step further.",
            GRADIENT,
            _yours,
        ),
        known(
            "one value too many",
            _norms(count="T + 1"),
            "There are T states, from 1 to T, so T values are wanted. From the first to the last there are T - 1 steps.",
            GRADIENT,
            sizes,
        ),
        known(
            "the last state left out",
            _norms(count="T", result="torch.stack(norms[:0:-1]) if T > 1 else torch.zeros(0, dtype=W.dtype)"),
            "One value is missing: t runs up to T itself, where the derivative of the last state by itself is the identity.",
            GRADIENT,
            sizes,
        ),
        known(
            "power of the norm",
            _norms("torch.linalg.matrix_norm(W, 2) ** n"),
            """This is the norm of one step, raised to a power, which is only an upper bound: two steps need not stretch the same
            direction. (The same numbers come out when W and its transpose take turns.) Multiply the same W each time, take the
            norm last.""",
            GRADIENT,
            _yours,
        ),
        known(
            "power of the largest eigenvalue",
            _norms("torch.linalg.eigvals(W).abs().max() ** n"),
            """That is the largest eigenvalue to the power. It tells the story in the long run, but a matrix can
            stretch first: the shear has eigenvalues of 1 and its powers grow.""",
            GRADIENT,
            _yours,
        ),
        known(
            "largest row sum",
            _norms("power.abs().sum(dim=1).max()"),
            "The largest row sum is a norm too, but another one. The spectral norm is the largest singular value.",
            GRADIENT,
            _yours,
        ),
        known(
            "largest number",
            _norms("power.abs().max()"),
            "The largest number in the matrix is not how far it stretches a vector. The spectral norm is the largest singular value.",
            GRADIENT,
            _yours,
        ),
        known(
            "smallest singular value",
            _norms("torch.linalg.matrix_norm(power, -2)"),
            "That is the *smallest* singular value: the direction that is squeezed most. The spectral norm is the largest.",
            GRADIENT,
            _yours,
        ),
        known(
            "root forgotten",
            _norms("torch.linalg.eigvalsh(power.T @ power)[-1]"),
            "Your values are the squares of the right ones: the eigenvalues of a matrix times its transpose are *squared* singular values.",
            GRADIENT,
            _yours,
        ),
        known(
            "determinant",
            _norms("torch.linalg.det(power).abs()"),
            "The determinant says how a volume changes, and a stretch one way can hide a squeeze another way. Here the largest stretch is wanted.",
            GRADIENT,
            _yours,
        ),
        known(
            "a list",
            _norms(result="[float(n) for n in norms[::-1]]"),
            "You returned a list of Python numbers. A tensor of shape (T,) is wanted, with the dtype of W.",
            GRADIENT,
        ),
        known(
            "always float32",
            _norms(result="torch.stack(norms[::-1]).float()"),
            "float64 went in and float32 came out. The result keeps the dtype of W.",
            GRADIENT,
        ),
        known(
            "the identity in another dtype",
            """
            def gradient_norms(W, T):
                power, norms = torch.eye(W.shape[0]), []
                for _ in range(T):
                    norms.append(torch.linalg.matrix_norm(power, 2))
                    power = power @ W
                return torch.stack(norms[::-1])
            """,
            "A float64 matrix W meets a float32 identity: torch makes float32 unless it is told otherwise. Make it with the dtype of W.",
            GRADIENT,
        ),
        known(
            "W changed in place",
            """
            def gradient_norms(W, T):
                step, norms = W.clone(), [torch.ones((), dtype=W.dtype)]
                for _ in range(T - 1):
                    norms.append(torch.linalg.matrix_norm(W, 2))
                    W.copy_(W @ step)
                return torch.stack(norms[::-1])
            """,
            "Your function changed the caller's W. Keep the running product in a tensor of its own.",
            GRADIENT,
        ),
    ),
    variants=(
        right("running product", _norms()),
        right(
            "matrix_power",
            "def gradient_norms(W, T):\n    return torch.stack([torch.linalg.matrix_norm(torch.linalg.matrix_power(W, T - t), ord=2) for t in range(1, T + 1)])\n",
        ),
        right(
            "autograd",
            """
            def gradient_norms(W, T):
                def run(h, steps):
                    for _ in range(steps):
                        h = W @ h
                    return h
                start = torch.zeros(W.shape[0], dtype=W.dtype)
                norms = []
                for t in range(1, T + 1):
                    J = torch.autograd.functional.jacobian(lambda h: run(h, T - t), start)
                    norms.append(torch.linalg.svdvals(J)[0])
                return torch.stack(norms).detach()
            """,
        ),
        right(
            "backward, in place",
            """
            def gradient_norms(weight, length):
                out = torch.ones(length, dtype=weight.dtype)
                J = torch.eye(weight.size(0), dtype=weight.dtype)
                for t in range(length - 2, -1, -1):
                    J = weight.T.mm(J)
                    out[t] = torch.linalg.svd(J)[1].max()
                return out
            """,
        ),
        right(
            "a batch of powers",
            """
            def gradient_norms(W, T):
                powers = [torch.eye(len(W), dtype=W.dtype)]
                while len(powers) < T:
                    powers.insert(0, W @ powers[0])
                return torch.linalg.norm(torch.stack(powers), ord=2, dim=(-2, -1))
            """,
        ),
        right(
            "root of an eigenvalue",
            _norms("torch.linalg.eigvalsh(power.T.double() @ power.double())[-1].clamp(min=0).sqrt().to(W.dtype)"),
        ),
    ),
    hints=(
        "what is the derivative of the last state by itself? And by the state one step before it?",
        "each power of W is (D, D) and gives one number; the powers run from T - 1 down to 0, so the result is (T,).",
        "power = identity; T times: note its largest singular value, then power = power times W. Reverse what you noted.",
    ),
)

# ------------------------------------------------------------------------------------------------ 01.3 layer_cost


def layer_cost(kind: str, n: int, d: int, k: int) -> int:
    """Multiplications in one layer over n words of width d."""
    return {"recurrent": n * d * d, "convolution": k * n * d * d, "attention": n * n * d}[kind]


def break_even(d: int) -> int:
    """The length at which attention and recurrence cost the same: n n d = n d d."""
    return d


def _cost(
    recurrent: str = "n * d * d", convolution: str = "k * n * d * d", attention: str = "n * n * d", even: str = "d"
) -> str:
    """An answer with one of its lines replaced."""
    return (
        "def layer_cost(kind, n, d, k):\n    if kind == 'recurrent':\n"
        f"        return {recurrent}\n    if kind == 'convolution':\n        return {convolution}\n    return {attention}\n"
        f"\ndef break_even(d):\n    return {even}\n"
    )


def _priced(evidence: Evidence) -> str:
    if len(evidence.arguments) == 1:
        return f"For d = {evidence.arguments[0]} you said {evidence.got}."
    kind, n, d, k = evidence.arguments
    window = f", k = {k}" if kind == "convolution" else ""
    return f"For {kind} with n = {n}, d = {d}{window} you said {evidence.got:,}."


def _layer(kind: str, g: torch.Generator, k: int = 3) -> Case:
    return Case((kind, _drawn(60, 900, g), 8 * _drawn(5, 7, g) + 1, k))


COST_EXERCISE = Exercise(
    id="layer-cost",
    number="01.3",
    names=("layer_cost", "break_even"),
    visible_points=1,
    hidden_points=1,
    section=COST,
    reference={"layer_cost": layer_cost, "break_even": break_even},
    probes=(
        Probe("attention, n = 50, d = 512", lambda g: Case(("attention", 50, 512, 3)), hidden=False),
        Probe("recurrent, n = 50, d = 512", lambda g: Case(("recurrent", 50, 512, 3)), hidden=False),
        Probe("convolution, n = 50, d = 512, k = 5", lambda g: Case(("convolution", 50, 512, 5)), hidden=False),
        Probe("break even at d = 512", lambda g: Case((512,), function="break_even"), hidden=False),
        Probe("attention, other sizes", lambda g: _layer("attention", g)),
        Probe("recurrent, other sizes", lambda g: _layer("recurrent", g, 5)),
        Probe("convolution, other sizes", lambda g: _layer("convolution", g, 7)),
        Probe("one word", lambda g: Case(("attention", 1, _drawn(20, 90, g), 3))),
        Probe("a whole book", lambda g: Case(("attention", 1000 * _drawn(200, 400, g), 4_096, 3))),
        Probe("break even at another width", lambda g: Case((_drawn(60, 400, g),), function="break_even")),
        Probe("break even at width 1", lambda g: Case((1,), function="break_even")),
    ),
    misconceptions=(
        known(
            "attention as a recurrent step",
            _cost(attention="n * d * d"),
            """Doubling n must quadruple attention: every word asks every word. Yours only doubles. One pair of words costs one
            dot product of d numbers; how many pairs are there?""",
            COST,
            _priced,
        ),
        known(
            "pairs only",
            _cost(attention="n * n"),
            "That is the number of pairs. Each pair costs a dot product, and a dot product of two vectors of d numbers takes d multiplications.",
            COST,
            _priced,
        ),
        known(
            "each word once",
            _cost(attention="n * d"),
            "That is one dot product a word. Each of the n words asks *all* n words.",
            COST,
            _priced,
        ),
        known(
            "each pair once",
            _cost(attention="n * (n - 1) // 2 * d"),
            "You counted each pair once and left out the word itself. A asks B and B asks A are two questions, and each word asks itself as well.",
            COST,
            _priced,
        ),
        known(
            "no word asks itself",
            _cost(attention="n * (n - 1) * d"),
            "You left out the pairs of a word with itself. Each word asks every word, itself too: n times n.",
            COST,
            _priced,
        ),
        known(
            "both squared",
            _cost(attention="n * n * d * d"),
            "d times too many: for each of the n times n pairs there is a *dot product*, d multiplications, and no matrix.",
            COST,
            _priced,
        ),
        known(
            "attention times heads",
            _cost(attention="8 * n * n * d"),
            "Eight times too many: heads divide the width among themselves, d / 8 each, so together they cost what one head of width d costs.",
            COST,
            _priced,
        ),
        known(
            "both products of attention",
            _cost(attention="2 * n * n * d"),
            """Twice ours: you counted the dot products and the weighted sum. True of the machine, but as in the paper's table
            factors like 2 are left out for all kinds: count the dot products.""",
            COST,
            _priced,
        ),
        known(
            "projections counted as well",
            _cost(attention="n * n * d + 3 * n * d * d"),
            """You added what it costs to make queries, keys and values. True of the machine (and for short sentences it is the larger
            part); here we count the dot products between words.""",
            COST,
            _priced,
        ),
        known(
            "recurrent and attention exchanged",
            _cost(recurrent="n * n * d", attention="n * d * d"),
            "The two are exchanged. A recurrent step multiplies a d by d matrix for each word; attention compares each word with each word.",
            COST,
            _priced,
        ),
        known(
            "recurrent without the matrix",
            _cost(recurrent="n * d"),
            "A recurrent step multiplies the state by a d by d *matrix*: every new number is a sum over all d old ones.",
            COST,
            _priced,
        ),
        known(
            "one step fewer",
            _cost(recurrent="(n - 1) * d * d"),
            "You counted the steps *between* the words. Each word costs a step, the first one as well: n in all.",
            COST,
            _priced,
        ),
        known(
            "both matrices of a recurrent step",
            _cost(recurrent="2 * n * d * d"),
            "Twice ours: one matrix for the state and one for the input. True of the machine; we leave factors like 2 out for all kinds and count one.",
            COST,
            _priced,
        ),
        known(
            "k forgotten",
            _cost(convolution="n * d * d"),
            "A convolution looks at k words around each place, and each of the k has a d by d matrix of its own. Your number does not depend on k.",
            COST,
            _priced,
        ),
        known(
            "one window only",
            _cost(convolution="k * d * d"),
            "That is the cost of one window. There is a window around each of the n words.",
            COST,
            _priced,
        ),
        known(
            "k squared",
            _cost(convolution="k * k * n * d * d"),
            "k by k is the window of an *image*. A sentence has one direction: k words a window.",
            COST,
            _priced,
        ),
        known(
            "convolution without matrices",
            _cost(convolution="k * n * d"),
            "That is one weight for each of the k words and each feature. Here each of the k words meets a d by d matrix.",
            COST,
            _priced,
        ),
        known(
            "one side of the window",
            _cost(convolution="(k - 1) // 2 * n * d * d"),
            "The reach to one side was counted. All k words of the window are multiplied, both sides and the middle.",
            COST,
            _priced,
        ),
        known(
            "break even at d squared",
            _cost(even="d * d"),
            "Put it in: at n = d², attention costs d times as much as recurrence. Write both costs as an equation and cancel what stands on both sides.",
            COST,
            _priced,
        ),
        known(
            "break even at the root",
            _cost(even="int(d**0.5)"),
            "Put it in: at the root of d attention is still the cheaper one by far. Write both costs as an equation and cancel what stands on both sides.",
            COST,
            _priced,
        ),
        known(
            "break even with a convolution",
            _cost(even="3 * d"),
            "That is where attention meets a *convolution* with windows of 3. Compare it with a recurrent layer.",
            COST,
            _priced,
        ),
        known(
            "break even at half",
            _cost(even="d // 2"),
            "Half of d comes out when attention's two products are counted. With the costs of this exercise, write both as an equation and cancel.",
            COST,
            _priced,
        ),
        known(
            "first length that is dearer",
            _cost(even="d + 1"),
            "That is the first length at which attention costs *more*. The one at which both cost the same is wanted.",
            COST,
            _priced,
        ),
        known(
            "always 512",
            _cost(even="512"),
            "512 is the answer for d = 512. What is it for another width?",
            COST,
        ),
        known(
            "break even as float",
            _cost(even="d * d / d"),
            "The number is right, but / makes a float of it. A length is a whole number: a plain Python int.",
            COST,
        ),
        known(
            "costs as float",
            _cost("n * d**2.0", "k * n * d**2.0", "n**2.0 * d"),
            "The numbers are right, but they are floats. Multiplications are counted with plain Python ints, exact at any size.",
            COST,
        ),
        known(
            "one step of the recurrence",
            """
            def layer_cost(kind, n, d, k):
                if kind == "recurrent":
                    return d * d
                return k * n * d * d if kind == "convolution" else n * n * d

            def break_even(d):
                return d
            """,
            "For the recurrent layer you counted one step. Every one of the n words takes such a step.",
            COST,
        ),
        known(
            "no windows at the edges",
            """
            def layer_cost(kind, n, d, k):
                if kind == "convolution":
                    return k * (n - k + 1) * d * d
                return n * d * d if kind == "recurrent" else n * n * d

            def break_even(d):
                return d
            """,
            "You counted only the windows that fit inside the sentence. Each of the n words has a window of its own, at the edges too.",
            COST,
        ),
        known(
            "floats",
            """
            def layer_cost(kind, n, d, k):
                if kind == "convolution":
                    return float(k * n * d * d)
                return float(n * d * d if kind == "recurrent" else n * n * d)

            def break_even(d):
                return d / 1
            """,
            "The numbers are right and their type is not: multiplications are counted, with plain Python ints. A single / makes a float, even of 4 / 2.",
            COST,
        ),
    ),
    variants=(
        right("products", _cost()),
        right("powers", _cost("n * d**2", "k * layer_cost('recurrent', n, d, k)", "d * pow(n, 2)")),
        right(
            "table",
            "def layer_cost(kind, n, d, k):\n    return dict(recurrent=n * d * d, convolution=n * k * d * d, attention=n * d * n)[kind]\n\nbreak_even = lambda d: d\n",
        ),
        right(
            "one product",
            """
            def layer_cost(kind, words, width, window):
                factor = {"recurrent": width, "convolution": window * width, "attention": words}[kind]
                return words * width * factor

            def break_even(width):
                return int(width)
            """,
        ),
        right(
            "searched",
            """
            def layer_cost(kind, n, d, k):
                match kind:
                    case "recurrent":
                        return n * (d * d)
                    case "convolution":
                        return sum(n * d * d for _ in range(k))
                    case "attention":
                        return (n * n) * d

            def break_even(d):
                n = 1
                while layer_cost("attention", n, d, 3) < layer_cost("recurrent", n, d, 3):
                    n += 1
                return n
            """,
        ),
        right("divided", _cost(even="(d * d) // d")),
    ),
    hints=(
        "for each kind ask: how many small products are there, and how many multiplications does one of them take?",
        "a vector times a (d, d) matrix takes d times d; a dot product of d numbers takes d. n words; n times n pairs; k matrices a window.",
        "recurrent: n times d times d. convolution: k times that. attention: n times n times d. Set the first equal to the last and solve for n.",
    ),
)

# ------------------------------------------------------------------------------------------------ 01.4 last_state


def last_state(H: Tensor, lengths: Tensor | list[int]) -> Tensor:
    """Each sentence's state at its own last real word."""
    last = torch.as_tensor(lengths) - 1  # (B,)
    return H[torch.arange(H.shape[0]), last]  # (B, D)


_STATES = torch.tensor(
    [
        [[1.1, 1.2, 1.3], [2.1, 2.2, 2.3], [3.1, 3.2, 3.3], [0.0, 0.0, 0.0]],
        [[5.1, 5.2, 5.3], [6.1, 6.2, 6.3], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)  # (sentence, word, D)


def _last(body: str) -> str:
    """An answer whose lengths are a tensor, whatever was passed."""
    return f"def last_state(H, lengths):\n    lengths = torch.as_tensor(lengths)\n    rows = torch.arange(H.shape[0])\n    return {body}\n"


def _second(evidence: Evidence) -> str:
    if evidence.got.shape != evidence.expected.shape:
        return ""
    return f"For the second sentence you return {row(evidence.got[1])}, where its last word has {row(evidence.expected[1])}."


STATE_EXERCISE = Exercise(
    id="last-state",
    number="01.4",
    names=("last_state",),
    visible_points=1,
    hidden_points=2,
    section=PADDING,
    reference={"last_state": last_state},
    probes=(
        Probe(
            "two sentences, of 3 and 2 words",
            lambda g: Case((_STATES, torch.tensor([3, 2])), ("first", "second")),
            hidden=False,
        ),
        Probe(
            "lengths in a list, one sentence without pads",
            lambda g: Case((normal(g, 3, 5, 2), [2, 5, 1])),
            hidden=False,
        ),
        Probe("other sizes", lambda g: Case((normal(g, 4, 7, 3), torch.tensor([7, 2, 5, 3])))),
        Probe("all end before the end", lambda g: Case((normal(g, 3, 8, 4), torch.tensor([4, 6, 1])))),
        Probe("one sentence of one word", lambda g: Case((normal(g, 1, 1, 4), torch.tensor([1])))),
        Probe(
            "states with zeros in them",
            lambda g: Case((normal(g, 2, 6, 5) * torch.tensor([[[1.0], [1.0], [1.0], [0.0], [1.0], [0.0]]]), [4, 2])),
        ),
        Probe(
            "float64, transposed in memory", lambda g: Case((turned(normal(g, 2, 6, 5, dtype=torch.float64)), [3, 6]))
        ),
        Probe(
            "gradients", lambda g: Case((normal(g, 2, 4, 3, dtype=torch.float64), torch.tensor([2, 3]))), also=GRADIENTS
        ),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 6, 2), torch.tensor([5, 1, 3]))), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "the last column",
            _last("H[:, -1]"),
            """That is the state at the last *place* of the batch, which for a shorter sentence is a pad. Each sentence ends
            at its own place.""",
            PADDING,
            _second,
        ),
        known(
            "length used as index",
            _last("H[rows, lengths]"),
            "One place too far: counting starts at 0, so the last of 3 words stands at index 2.",
            PADDING,
            _second,
        ),
        known(
            "counted from the end",
            _last("H[rows, -lengths]"),
            "You counted from the end of the row, where the pads stand. The words stand at the beginning.",
            PADDING,
            _second,
        ),
        known(
            "the longest sentence's end for all",
            _last("H[:, lengths.max() - 1]"),
            "One and the same place was read in every row: the end of the *longest* sentence. In the shorter ones a pad stands there.",
            PADDING,
            _second,
        ),
        known(
            "the first sentence's end for all",
            _last("H[:, lengths[0] - 1]"),
            "One and the same place was read in every row: the end of the *first* sentence. Each sentence ends at its own place.",
            PADDING,
            _second,
        ),
        known(
            "the first state",
            _last("H[:, 0]"),
            "That is the state after the *first* word: it has read nothing of the rest.",
            PADDING,
            _second,
        ),
        known(
            "mean over everything",
            _last("H.mean(dim=1)"),
            "That is a mean over all places, pads included. One state is wanted: the one after the last real word.",
            PADDING,
            _second,
        ),
        known(
            "mean over the words",
            _last("torch.stack([h[:n].mean(dim=0) for h, n in zip(H, lengths.tolist())])"),
            "The pads are out, good; but this is the mean of the words' states. One state is wanted: the one after the last real word.",
            PADDING,
            _second,
        ),
        known(
            "sum over the words",
            _last("torch.stack([h[:n].sum(dim=0) for h, n in zip(H, lengths.tolist())])"),
            "That is the sum of the words' states. A recurrent state has already gathered what came before: take the last one.",
            PADDING,
            _second,
        ),
        known(
            "maximum over time",
            _last("H.amax(dim=1)"),
            "For each feature you took the largest number of all places. One state is wanted, as it stands at the last real word.",
            PADDING,
            _second,
        ),
        known(
            "pads blanked, the last column",
            _last("(H * (torch.arange(H.shape[1]) < lengths[:, None])[:, :, None])[:, -1]"),
            "You set the pads to 0 and then read the last place, where a pad stands. Blanking does not move the words.",
            PADDING,
            _second,
        ),
        known(
            "lengths sorted",
            _last("H[rows, lengths.sort(descending=True).values - 1]"),
            "The lengths were sorted, but the sentences were not: row 1 was cut with another row's length.",
            PADDING,
        ),
        known(
            "all rows at all ends",
            _last("H[:, lengths - 1]"),
            """For every sentence the ends of *all* sentences came back. Rows and places must go in pairs: row 0 with its
            end, row 1 with its own.""",
            PADDING,
            sizes,
        ),
        known(
            "length indexes the batch",
            _last("H[lengths.clamp(max=H.shape[0]) - 1, -1]"),
            "The lengths picked *sentences*: the first axis of H is the batch. They should pick places, along the second.",
            PADDING,
            _second,
        ),
        known(
            "time before batch",
            _last("H.transpose(0, 1)[rows.clamp(max=H.shape[1] - 1), (lengths - 1).clamp(max=H.shape[0] - 1)]"),
            "Axes exchanged: H is (B, T, D), sentences first, places second.",
            PADDING,
        ),
        known(
            "an axis kept",
            _last("torch.gather(H, 1, (lengths - 1)[:, None, None].expand(-1, 1, H.shape[2]))"),
            "The states are the right ones, but an axis of length 1 is left where the places were.",
            PADDING,
            sizes,
        ),
        known(
            "squeezed too much",
            _last("torch.gather(H, 1, (lengths - 1)[:, None, None].expand(-1, 1, H.shape[2])).squeeze()"),
            "With a single sentence the batch axis is gone too: squeezing without saying which axis drops every axis of length 1.",
            PADDING,
        ),
        known(
            "pads recognized by zeros",
            _last("torch.stack([h[h.abs().sum(-1).nonzero()[-1, 0]] for h in H])"),
            "You looked for states that are not zero. Pads need not be zero, and words may be; that is why the lengths are given.",
            PADDING,
        ),
        known(
            "lists not accepted",
            "def last_state(H, lengths):\n    return H[torch.arange(H.shape[0]), lengths - 1]\n",
            "Right for a tensor of lengths, but they may come as a plain list too, and a list knows no arithmetic.",
            PADDING,
        ),
        known(
            "cut off from the gradient",
            _last("H.detach()[rows, lengths - 1]"),
            "The values are right, but no gradient flows back into H: .detach(), .data, .item(), numpy or torch.tensor(...) cut the graph.",
            PADDING,
        ),
        known(
            "always float32",
            _last("H[rows, lengths - 1].float()"),
            "float64 went in and float32 came out. The result keeps the dtype of H.",
            PADDING,
        ),
        known(
            "lengths changed in place",
            "def last_state(H, lengths):\n    lengths = torch.as_tensor(lengths)\n    lengths -= 1\n    return H[torch.arange(H.shape[0]), lengths]\n",
            "Your function changed the caller's lengths: -= writes into the tensor that was passed in.",
            PADDING,
        ),
    ),
    variants=(
        right("pairs of indices", _last("H[rows, lengths - 1]")),
        right("gather", _last("H.gather(1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, H.size(-1))).squeeze(1)")),
        right(
            "loop",
            "def last_state(H, lengths):\n    return torch.stack([H[b, int(n) - 1] for b, n in enumerate(lengths)])\n",
        ),
        right(
            "slices",
            "def last_state(H, lengths):\n    return torch.cat([h[n - 1 : n] for h, n in zip(H, list(lengths))], dim=0)\n",
        ),
        right("one-hot", _last("torch.einsum('bt,btd->bd', F.one_hot(lengths - 1, H.shape[1]).to(H.dtype), H)")),
        right("mask", _last("H[torch.arange(H.shape[1]) == (lengths - 1)[:, None]]")),
        right("take_along_dim", _last("torch.take_along_dim(H, (lengths - 1)[:, None, None], dim=1)[:, 0]")),
    ),
    hints=(
        "which index has the last of 3 words? And does every sentence of the batch end at the same place?",
        "H is (B, T, D). One place for each of the B rows, D numbers from each: (B, D).",
        "for each sentence b: take H at row b and place length minus 1; stack the rows. Lengths may be a list: make a tensor of it first.",
    ),
)

# ------------------------------------------------------------------------------------------------ 01.5 additive_context


def additive_context(s: Tensor, H: Tensor, Wa: Tensor, Ua: Tensor, va: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Bahdanau's attention: the mixture of the source states that decoder state s asks for, and its weights."""
    scores = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va  # (B, T)
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)  # (B, T)
    weights = weights.masked_fill(~mask, 0.0)  # a sentence of pads only: zeros instead of 0 / 0
    return (weights.unsqueeze(1) @ H).squeeze(1), weights  # (B, Dh), (B, T)


def _context(
    scores: str = "torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va",
    weights: str = "torch.softmax(scores.masked_fill(~mask, -math.inf), dim=1).masked_fill(~mask, 0.0)",
    context: str = "(w[:, :, None] * H).sum(dim=1)",
    result: str = "context, w",
) -> str:
    """An answer with one of its lines replaced."""
    return (
        f"def additive_context(s, H, Wa, Ua, va, mask):\n    scores = {scores}\n    w = {weights}\n"
        f"    context = {context}\n    return {result}\n"
    )


_BY_HAND = (
    torch.tensor([[0.5]]),
    torch.tensor([[[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]]]),
    torch.tensor([[1.0]]),
    torch.tensor([[1.0], [-0.25]]),
    torch.tensor([2.0]),
    torch.tensor([[True, True, False]]),
)

SHARED_OUT = Law(
    "the weights of a sentence sum to 1", lambda got: torch.allclose(got[1].sum(-1), torch.ones(()), atol=1e-4)
)


def _padded(lengths: list[int], T: int) -> Tensor:
    return torch.arange(T) < torch.tensor(lengths)[:, None]  # (B, T)


def _asked(g: torch.Generator, lengths: list[int], T: int, Ds: int, Dh: int, A: int, dtype=torch.float32) -> Case:
    """A batch of sentences of these lengths; what stands at the pads is large, so that it shows when it is mixed in."""
    B, mask = len(lengths), _padded(lengths, T)
    H = torch.where(mask[:, :, None], normal(g, B, T, Dh, dtype=dtype), 5 + normal(g, B, T, Dh, dtype=dtype))
    return Case(
        (
            normal(g, B, Ds, dtype=dtype),
            H,
            normal(g, Ds, A, dtype=dtype) / Ds**0.5,
            normal(g, Dh, A, dtype=dtype) / Dh**0.5,
            2 * normal(g, A, dtype=dtype),
            mask,
        )
    )


def _saturated(g: torch.Generator) -> Case:
    """Whole numbers so large that every tanh is -1, 0 or 1: scores are exact, and up to hundreds."""
    B, T, Ds, Dh, A = 2, 5, 3, 4, 6
    s, H = (torch.randint(-3, 4, shape, generator=g).float() for shape in ((B, Ds), (B, T, Dh)))
    Wa, Ua = (20.0 * torch.randint(-3, 4, shape, generator=g) for shape in ((Ds, A), (Dh, A)))
    va = torch.tensor([250.0, 130.0, 61.0, 1.0, -90.0, 2.0])
    H[:, 1] = H[:, 0]  # two words share the first place, or stand far below it together
    return Case((s, H, Wa, Ua, va, torch.ones(B, T, dtype=torch.bool)))


def _on_pads(evidence: Evidence) -> str:
    weights, mask = evidence.got[1], evidence.arguments[5]
    if not isinstance(weights, Tensor) or weights.shape != mask.shape:
        return ""
    return f"A padded word got the weight {number(weights[~mask].max())}."


def _weight_sums(evidence: Evidence) -> str:
    weights = evidence.got[1]
    return f"The weights of your sentences sum to {row(weights.sum(-1))}."


def _down(evidence: Evidence) -> str:
    return f"Down the batch your weights sum to {row(evidence.got[1].sum(0)[:4])}; along each sentence to {row(evidence.got[1].sum(1)[:4])}."


def _context_size(evidence: Evidence) -> str:
    return f"Your context has shape {tuple(evidence.got[0].shape)}, where {tuple(evidence.expected[0].shape)} was expected."


CONTEXT_EXERCISE = Exercise(
    id="additive-context",
    number="01.5",
    names=("additive_context",),
    visible_points=1,
    hidden_points=3,
    section=LOOK_BACK,
    reference={"additive_context": additive_context},
    probes=(
        Probe("by hand: two words and a pad", lambda g: Case(_BY_HAND), hidden=False, laws=(SHARED_OUT,)),
        Probe(
            "two sentences, of 5 and 3 words", lambda g: _asked(g, [5, 3], 5, 3, 4, 6), hidden=False, laws=(SHARED_OUT,)
        ),
        Probe("other sizes", lambda g: _asked(g, [2, 7, 4], 7, 6, 5, 8)),
        Probe("one sentence of one word", lambda g: _asked(g, [1], 1, 3, 5, 2)),
        Probe(
            "pads in front", lambda g: Case((*_asked(g, [4, 6], 6, 3, 4, 5).arguments[:5], _padded([4, 6], 6).flip(1)))
        ),
        Probe("large scores", _saturated),
        Probe("a sentence of pads only", lambda g: _asked(g, [3, 0], 4, 5, 3, 2, torch.float64), also=GRADIENTS),
        Probe("float64", lambda g: _asked(g, [4, 2, 3], 4, 2, 6, 5, torch.float64)),
        Probe("gradients", lambda g: _asked(g, [4, 3], 4, 3, 5, 6, torch.float64), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: _asked(g, [3, 2], 3, 4, 5, 6), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "softmax over the batch",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -math.inf), dim=0).masked_fill(~mask, 0.0)"),
            "The sentences share 1 among themselves, place by place: axis 0 is the batch. Each sentence shares out 1 among its own words.",
            LOOK_BACK,
            _down,
        ),
        known(
            "no tanh",
            _context("((s @ Wa)[:, None] + H @ Ua) @ va"),
            """The tanh is missing, so the score is linear, and then s adds the same number to every word: softmax does not see it.
            Your weights would be the same whatever the decoder asks.""",
            LOOK_BACK,
        ),
        known(
            "tanh too late",
            _context("torch.tanh(((s @ Wa)[:, None] + H @ Ua) @ va)"),
            "The tanh came after the sum with va, so no score leaves -1 to 1 and no word can stand out. It belongs on the sum of the two projections.",
            LOOK_BACK,
        ),
        known(
            "s makes no difference",
            _context("(torch.tanh(s @ Wa)[:, None] + torch.tanh(H @ Ua)) @ va"),
            """Your weights do not depend on s: every decoder state would look at the same words. Either s is left out, or it
            is added after the tanh, and softmax does not see a number that is added to every word alike. The two
            projections must meet *before* the tanh.""",
            LOOK_BACK,
        ),
        known(
            "s not spread over the words",
            _context("torch.tanh(s @ Wa + H @ Ua) @ va"),
            """s Wa is (B, A) and H Ua is (B, T, A): they do not meet, or meet wrongly. One projected s belongs to all T words of its own sentence,
            so it needs an axis where the words are.""",
            LOOK_BACK,
        ),
        known(
            "multiplied instead of added",
            _context("torch.tanh((s @ Wa)[:, None] * (H @ Ua)) @ va"),
            "The two projections were multiplied, number by number. Additive attention *adds* them before the tanh.",
            LOOK_BACK,
        ),
        known(
            "relu instead of tanh",
            _context("torch.relu((s @ Wa)[:, None] + H @ Ua) @ va"),
            "A relu stands where the tanh belongs: nothing is below 0 and nothing is bounded by 1.",
            LOOK_BACK,
        ),
        known(
            "sigmoid instead of tanh",
            _context("torch.sigmoid((s @ Wa)[:, None] + H @ Ua) @ va"),
            "A sigmoid stands where the tanh belongs: it runs from 0 to 1, tanh from -1 to 1.",
            LOOK_BACK,
        ),
        known(
            "va left out",
            _context("torch.tanh((s @ Wa)[:, None] + H @ Ua).sum(dim=-1)"),
            "The A numbers of each word were added as they are. va says how much each of them counts: it is learned like the rest.",
            LOOK_BACK,
        ),
        known(
            "dot product instead",
            _context("(H @ Ua @ (s @ Wa)[:, :, None])[:, :, 0]"),
            "You multiplied the two projections, as chapter 05 will. Here they are *added*, passed through tanh and weighed by va.",
            LOOK_BACK,
        ),
        known(
            "pads get weight",
            _context(weights="torch.softmax(scores, dim=1)"),
            "The mask was not used. Pads are no words: they must get a weight of exactly 0, and the words must share all of the 1.",
            PADDING,
            _on_pads,
        ),
        known(
            "pads blanked instead of masked",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                H = H * mask[:, :, None]
                w = torch.softmax(torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va, dim=1)
                return (w[:, :, None] * H).sum(dim=1), w
            """,
            """You set the pads' states to 0, but a vector of zeros still gets a score, and its share is missing for the words. The weight must be 0, not the
            state.""",
            PADDING,
            _on_pads,
        ),
        known(
            "mask turned around",
            _context(weights="torch.softmax(scores.masked_fill(mask, -math.inf), dim=1).nan_to_num()"),
            "The mask was read the wrong way round: True means *may attend*, and your weight lies on the pads.",
            PADDING,
            _on_pads,
        ),
        known(
            "masked after the softmax",
            _context(weights="torch.softmax(scores, dim=1) * mask"),
            "The pads were set to 0 after they had taken their share, so less than 1 is left for the words. Take them out of the *scores*.",
            PADDING,
            _weight_sums,
        ),
        known(
            "score 0 for pads",
            _context(weights="torch.softmax(scores * mask, dim=1)"),
            "The *score* of a pad became 0, and e to the 0 is 1: it still takes a share. What score leaves exactly nothing?",
            PADDING,
            _on_pads,
        ),
        known(
            "NaN where nothing may be attended",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -math.inf), dim=1)"),
            "Right wherever there is a word. A sentence of pads only gives 0 divided by 0, NaN; it should get weights of 0 and a context of 0.",
            PADDING,
        ),
        known(
            "shares for pads where there is no word",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -1e9), dim=1)"),
            """Right wherever there is a word. In a sentence of pads only, all scores are equally low, so the pads share the 1 after all; there the weights
            should be 0.""",
            PADDING,
        ),
        known(
            "minus infinity added",
            _context(
                weights="torch.softmax(scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf), dim=1).nan_to_num()"
            ),
            """The values are right, but in a sentence of pads only the *gradients* are NaN: minus infinity was added to the scores, and the way back
            runs through 0 divided by 0. Replace the scores instead of adding to them.""",
            PADDING,
        ),
        known(
            "no softmax",
            _context(weights="scores.masked_fill(~mask, 0.0)"),
            "These are the scores themselves, any numbers. Shares are wanted: positive, and 1 in all for each sentence.",
            LOOK_BACK,
            _weight_sums,
        ),
        known(
            "sigmoid instead of softmax",
            _context(weights="torch.sigmoid(scores) * mask"),
            "Each word was squeezed between 0 and 1 by itself, so words do not compete. A sentence shares out exactly 1.",
            LOOK_BACK,
            _weight_sums,
        ),
        known(
            "scores divided by the root of A",
            _context("torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va / Ua.shape[1] ** 0.5"),
            "The scores were divided by the root of A. That is chapter 05's dot product; the additive score is taken as it is.",
            LOOK_BACK,
        ),
        known(
            "exponential without care",
            _context(
                weights="(torch.exp(scores) * mask) / (torch.exp(scores) * mask).sum(1, keepdim=True).clamp(min=1e-30)"
            ),
            "Large scores break it: exp of several hundred is infinite, and infinite over infinite is no number. Let torch's softmax do it.",
            LOOK_BACK,
        ),
        known(
            "one sum for the whole batch",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -math.inf).flatten(), dim=0).view_as(scores)"),
            "All sentences of the batch together share 1. Each sentence shares out 1 among its own words.",
            LOOK_BACK,
            _weight_sums,
        ),
        known(
            "only the best word",
            _context(context="H[torch.arange(len(H)), w.argmax(dim=1)] * mask.any(1, keepdim=True)"),
            "The weights are right, but the context is the state of the best word alone. It is the sum of *all* states, each times its weight.",
            LOOK_BACK,
        ),
        known(
            "plain mean",
            _context(context="(H * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)"),
            "The weights are right and then not used: the context is the plain mean of the words' states.",
            LOOK_BACK,
        ),
        known(
            "divided by the number of words",
            _context(context="(w[:, :, None] * H).mean(dim=1)"),
            "The weights are shares already; taking a mean divides by T once more. Add the weighted states up.",
            LOOK_BACK,
        ),
        known(
            "summed over the features",
            _context(context="(w[:, :, None] * H).sum(dim=2)"),
            "The weighted states were added up across their *features*. Add across the words, so that a vector of Dh numbers is left.",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "s as the value",
            _context(context="(w[:, :, None] * s[:, None]).sum(dim=1)"),
            "What you mix is s, the one who asks, and a mixture of copies of s is s. Mix the states of the source.",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "projected states mixed",
            _context(context="(w[:, :, None] * (H @ Ua)).sum(dim=1)"),
            "You mixed H times Ua. The projection serves to *find* the words; what is handed over are the states H themselves.",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "context and weights exchanged",
            _context(result="w, context"),
            "The two results stand in the other order: first the context (B, Dh), then the weights (B, T).",
            LOOK_BACK,
        ),
        known(
            "context alone",
            _context(result="context"),
            "Only the context came back. The weights are wanted as well: they are the alignment that one can look at.",
            LOOK_BACK,
        ),
        known(
            "an axis kept",
            _context(context="w[:, None] @ H"),
            "An axis of length 1 is left in the context: one mixture for each sentence, so (B, Dh).",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "cut off from the gradient",
            _context(result="context.detach(), w.detach()"),
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph, and nothing here could be learned.",
            LOOK_BACK,
        ),
        known(
            "always float32",
            _context(result="context.float(), w.float()"),
            "float64 went in and float32 came out. The results keep the dtype of the input.",
            LOOK_BACK,
        ),
        known(
            "H changed in place",
            _context(context="H.mul_(w[:, :, None]).sum(dim=1)"),
            "Your function changed the caller's H. An operation that ends in _ or such as *= writes into the tensor that was passed in.",
            LOOK_BACK,
        ),
        known(
            "scores instead of weights",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va
                w = torch.softmax(e.masked_fill(~mask, -math.inf), -1).nan_to_num(0.0)
                return (w.unsqueeze(1) @ H).squeeze(1), e
            """,
            "The context is right, and beside it the scores came back. The weights are wanted: what the softmax made of them.",
            LOOK_BACK,
        ),
        known(
            "not low enough",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va
                w = torch.softmax(e.masked_fill(~mask, -10), -1)
                return (w.unsqueeze(1) @ H).squeeze(1), w
            """,
            "Pads got a score of -10, and e to the -10 is small but not 0: they still take a share. Only minus infinity leaves exactly nothing.",
            LOOK_BACK,
        ),
        known(
            "NaN kept in the weights",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va
                w = torch.softmax(e.masked_fill(~mask, -math.inf), -1)
                return (w.nan_to_num(0.0).unsqueeze(1) @ H).squeeze(1), w
            """,
            "In a sentence of pads only, NaN was taken out of the context and stayed in the weights. They should be 0 as well.",
            LOOK_BACK,
        ),
    ),
    variants=(
        right("broadcast and sum", _context()),
        right("bmm", _context(context="torch.bmm(w.unsqueeze(1), H).squeeze(1)")),
        right(
            "einsum",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                energy = torch.tanh(torch.einsum("bd,da->ba", s, Wa).unsqueeze(1) + torch.einsum("btd,da->bta", H, Ua))
                e = torch.einsum("bta,a->bt", energy, va)
                w = e.masked_fill(mask.logical_not(), float("-inf")).softmax(-1).nan_to_num(0.0)
                return torch.einsum("bt,btd->bd", w, H), w
            """,
        ),
        right(
            "linear layers",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = F.linear(torch.tanh(F.linear(s, Wa.T)[:, None] + F.linear(H, Ua.T)), va[None]).squeeze(-1)
                w = torch.where(mask, e, torch.full_like(e, -1e30)).softmax(dim=1)
                w = torch.where(mask, w, torch.zeros_like(w))
                return (w.unsqueeze(-1) * H).sum(1), w
            """,
        ),
        right(
            "loops",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                B, T, D = H.shape
                contexts, weights = [], []
                for b in range(B):
                    places = [t for t in range(T) if mask[b, t]]
                    w = torch.zeros(T, dtype=H.dtype)
                    context = torch.zeros(D, dtype=H.dtype)
                    if places:
                        scores = torch.stack([va @ torch.tanh(Wa.T @ s[b] + Ua.T @ H[b, t]) for t in places])
                        shares = torch.softmax(scores, dim=0)
                        w = w.index_put((torch.tensor(places),), shares)
                        context = sum(share * H[b, t] for share, t in zip(shares, places))
                    contexts.append(context)
                    weights.append(w)
                return torch.stack(contexts), torch.stack(weights)
            """,
        ),
        right(
            "stable by hand",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = (torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) * va).sum(-1)
                e = e.masked_fill(~mask, -1e30)
                p = torch.exp(e - e.amax(dim=1, keepdim=True)) * mask
                w = p / p.sum(dim=1, keepdim=True).clamp(min=1e-30)
                return (w[:, None] @ H)[:, 0], w
            """,
        ),
        right(
            "renormalized",
            """
            def additive_context(state, states, W, U, v, keep):
                a = torch.softmax(torch.tanh(states @ U + (state @ W)[:, None, :]) @ v, dim=-1) * keep
                total = a.sum(-1, keepdim=True)
                a = a / torch.where(total > 0, total, torch.ones_like(total))
                return [torch.sum(a[..., None] * states, dim=-2), a]
            """,
        ),
    ),
    hints=(
        "the score of a word is one number: how do s (one vector) and H (a vector for each word) meet, and what makes one number of A?",
        "s Wa is (B, A), one for a whole sentence; H Ua is (B, T, A). Added: (B, T, A). Times va: (B, T). The weights mix H: (B, Dh).",
        "add the two projections, tanh, times va: scores. Pads to minus infinity, softmax along the words, pads to 0. Sum of weights times states.",
    ),
)

ASSIGNMENT = Assignment(
    id="01_why_attention",
    notebook="why_attention",
    exercises=(PATH_EXERCISE, NORMS_EXERCISE, COST_EXERCISE, STATE_EXERCISE, CONTEXT_EXERCISE),
    visible_modules=(),
)
