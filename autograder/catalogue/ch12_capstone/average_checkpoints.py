"""12.4: the mean of the last few weights."""

from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch12_capstone.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import of_same_form
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import FAR, UNTOUCHED, hidden, normal, second_call, visible

(AVERAGE,) = sections("average")
State = dict[str, Tensor]


def average_checkpoints(states: list[State], k: int) -> State:
    """The mean of the last k states; integer tensors are those of the newest."""
    if not 1 <= k <= len(states):
        raise ValueError(f"k: expected 1 to {len(states)}, got {k}")
    last, newest = states[-k:], states[-1]
    for state in last:
        if {name: tensor.shape for name, tensor in state.items()} != {name: t.shape for name, t in newest.items()}:
            raise ValueError("states: expected the same names and shapes in each")
    return {
        name: torch.stack([state[name].double() for state in last]).mean(0).to(tensor.dtype)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in newest.items()
    }


ROUNDING = {torch.float64: 0.0, torch.float32: 1e-5, torch.float16: 2e-3}  # of a result, relative
NEAR, DIFFERENT = 1e-3, 0.01  # how close a sum has to come; by how much a factor has to differ from the correct one


class Factors(Remark):
    """The factors by which the states went into a result, in words. Two are equal if all factors are."""

    factors: Tensor

    def __new__(cls, remark: str, factors: Tensor | None = None) -> "Factors":
        made = super().__new__(cls, remark)
        made.factors = torch.zeros(0) if factors is None else factors
        return made

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Factors)
            and self.factors.shape == other.factors.shape
            and torch.allclose(self.factors, other.factors, rtol=0.0, atol=DIFFERENT)
        )

    def __ne__(self, other: object) -> bool:  # a text has its own
        return not self == other

    def __hash__(self) -> int:
        return hash(Factors)


@of_same_form
def by_factors(case: Case, result: Any) -> Any:
    """Of a result that is right in everything but the weights, and whose weights are a sum of the states, each times
    some factor: the factors, in words. Any other result is left as it is."""
    states, k = case.arguments
    if not 1 <= k <= len(states) or not isinstance(result, dict):
        return result
    newest, last = states[-1], states[-k:]
    floats = [name for name, tensor in newest.items() if tensor.is_floating_point()]
    if not all(_fits(state, newest) for state in [*states, result]) or not floats:
        return result
    if any(not torch.equal(result[name], newest[name]) for name in newest.keys() - set(floats)):
        return result
    if len({newest[name].dtype for name in floats}) > 1 or newest[floats[0]].dtype not in ROUNDING:
        return result
    rows = torch.stack([torch.cat([state[name].double().flatten() for name in floats]) for state in states], dim=1)
    sums = torch.cat([result[name].double().flatten() for name in floats])
    if len(rows) < len(states) + 2 or not bool(sums.isfinite().all()):
        return result
    factors = _factors(rows, sums, ROUNDING[newest[floats[0]].dtype])
    correct_ones = torch.tensor([0.0] * (len(states) - k) + [1 / k] * len(last), dtype=torch.float64)
    if factors is None or bool(((factors - correct_ones).abs() < DIFFERENT).all()) or not bool(factors.any()):
        return result
    return Factors(_in_words(factors, k, newest[floats[0]].dtype), factors)


def _fits(state: Any, newest: State) -> bool:
    """Whether a state has the names, shapes and dtypes of the newest."""
    return state.keys() == newest.keys() and all(
        isinstance(tensor, Tensor) and (tensor.shape, tensor.dtype) == (newest[name].shape, newest[name].dtype)
        for name, tensor in state.items()
    )


def _factors(rows: Tensor, sums: Tensor, rounding: float) -> Tensor | None:
    """The factors that make the sums of the rows, (numbers, states); None if there are none, or more than one set."""
    exact = (sums.abs() * rounding + NEAR)[:, None]
    found = torch.linalg.lstsq(rows / exact, sums[:, None] / exact, driver="gelsd")
    if int(found.rank) < rows.shape[1]:
        return None
    factors = found.solution[:, 0]
    if not bool(((rows @ factors - sums).abs() <= exact[:, 0]).all()):
        return None
    return factors.where(factors.abs() >= DIFFERENT, 0.0)


def _in_words(factors: Tensor, k: int, dtype: torch.dtype) -> str:
    n = len(factors)
    each = [f"{number(factor)} times states[{place}]" for place, factor in enumerate(factors) if factor]
    kind = "" if dtype == torch.float32 else f" of {dtype}"
    window = f"states[{n - k}] to states[{n - 1}]" if k > 1 else f"states[{n - 1}]"
    wanted = f"{number(torch.tensor(1 / k))} times each of {window}" if k > 1 else f"1 times {window}"
    return f"your weights{kind} are {' plus '.join(each)}; they should be {wanted}"


def by_hand(values: list[float], k: int) -> Case:
    """States of one weight and a counter of steps."""
    return Case(([{"weight": torch.tensor([value]), "steps": torch.tensor(100 * place)}
                  for place, value in enumerate(values, 1)], k))  # fmt: skip


def inputs(g: torch.Generator, n: int, k: int, D: int = 5, dtype: torch.dtype = torch.float32, at: float = 0.0) -> Case:
    """n states; the table's last row is its first, and a bias holds a zero."""
    return Case(([_state(g, place, D, dtype, at) for place in range(n)], k))


def _state(g: torch.Generator, place: int, D: int, dtype: torch.dtype, at: float) -> State:
    table, bias = normal(g, 4, D, dtype=torch.float64) + at, normal(g, D, dtype=torch.float64) + at
    table[-1], bias[0] = table[0], 0.0
    return {
        "embedding.table": table.to(dtype),
        "norm.bias": bias.to(dtype),
        "steps": torch.tensor(int(torch.randint(40, 90, (), generator=g)) + 101 * place),
        "scale": normal(g, 1, dtype=dtype),
        "frozen": torch.rand(3, generator=g) < 0.5,
    }


def half(g: torch.Generator, n: int, k: int) -> Case:
    """float16, whose numbers end at 65,504, with a few around 50,000."""
    states = inputs(g, n, k).arguments[0]
    large = 30_000 + 25_000 * torch.rand(n, 5, generator=g)
    return Case(([{**{name: t.half() if t.is_floating_point() else t for name, t in state.items()},
                   "norm.bias": row.half()} for state, row in zip(states, large, strict=True)], k))  # fmt: skip


def cancelling(g: torch.Generator) -> Case:
    """float32, of which two states lie around 100,000,000 and minus as much: a sum in float32 loses the one between."""
    states = inputs(g, 4, 3).arguments[0]
    states[1]["norm.bias"] += FAR
    states[3]["norm.bias"] -= FAR
    return Case((states, 3))


def twice_the_same(g: torch.Generator) -> Case:
    """A state that occurs three times."""
    first, other = inputs(g, 2, 2).arguments[0]
    return Case(([other, first, first, first], 4))


def misfit(g: torch.Generator, kind: str) -> Case:
    states = inputs(g, 4, 3).arguments[0]
    odd = states[2]
    if kind == "lacks":
        del odd["norm.bias"]
    elif kind == "more":
        odd["another.bias"] = normal(g, 5)
    elif kind == "newest has more":
        states[-1]["another.bias"] = normal(g, 5)
    elif kind == "renamed":  # as many names and the same shapes
        odd["another.bias"] = odd.pop("norm.bias")
    elif kind == "older":  # of another model, and not among the last three
        del states[0]["norm.bias"]
    elif kind == "order":  # which says nothing
        states[2] = dict(reversed(odd.items()))
    elif kind == "axis":
        odd["norm.bias"] = normal(g, 1, 5)  # as many numbers, and an addition would not stop
    elif kind == "row":
        odd["norm.bias"] = normal(g, 1)  # broadcasts, so that an addition would not stop
    else:
        odd["embedding.table"] = normal(g, 6, 5)  # another vocabulary
    return Case((states, 3))


def first_number(evidence: Evidence) -> str:
    """The first weight and the counter, and the correct ones; "" where the report gives the factors."""
    if not isinstance(evidence.got, dict) or not isinstance(evidence.expected, dict):
        return ""
    name = next(iter(evidence.expected))
    got, wanted = evidence.got.get(name), evidence.expected[name]
    if not isinstance(got, Tensor) or not got.numel():
        return ""
    steps = evidence.got.get("steps")
    counter = f", and steps {steps.item():g}" if isinstance(steps, Tensor) and steps.numel() == 1 else ""
    wanted_counter = f" and {evidence.expected['steps'].item():g}" if counter else ""
    return (
        f"Your {name} begins with {number(got.flatten()[0])}{counter}; expected: "
        f"{number(wanted.flatten()[0])}{wanted_counter}."
    )


RIGHT = answer("""
    def average_checkpoints(states, k):
        if k < 1:
            raise ValueError("k: expected at least 1")
        if k > len(states):
            raise ValueError("k: expected at most as many as there are states")
        last = states[-k:]
        newest = last[-1]
        for state in last:
            if state.keys() != newest.keys():
                raise ValueError("states: expected the same names in each")
            if any(state[name].shape != newest[name].shape for name in newest):
                raise ValueError("states: expected the same shapes in each")
        mean = {}
        for name, tensor in newest.items():
            if tensor.is_floating_point():
                total = sum(state[name].double() for state in last)
                mean[name] = (total / k).to(tensor.dtype)
            else:
                mean[name] = tensor.clone()
        return mean
""")
LAST, TOTAL = "last = states[-k:]", "total = sum(state[name].double() for state in last)"
DIVIDED = "mean[name] = (total / k).to(tensor.dtype)"
NAMES, SHAPES = (
    "if state.keys() != newest.keys():",
    "if any(state[name].shape != newest[name].shape for name in newest):",
)
KEPT = "mean[name] = tensor.clone()"
BELOW_1 = """A k of 0 or less gave a result, but the last 0 states have no mean. Written as a slice from -0 they are
    even the whole list. Raise ValueError for a k below 1."""
NEWEST_MISSING = """The window ends one too early: the newest state, usually the best of them, is not in your mean. A
    slice that ends at -1 leaves out the last."""
OTHER_NAMES = RIGHT.but(NAMES, "if False:").but("in newest):", "in newest.keys() & state.keys()):")

EXERCISE = Exercise(
    id="average-checkpoints", number="12.4", difficulty=1, minutes=40, visible_points=1, hidden_points=4,
    reference=average_checkpoints, normalize=by_factors, section=AVERAGE,
    probes=(
        visible("by hand: the last two of 1, 4, 10", by_hand([1.0, 4.0, 10.0], 2)),
        visible("six states, the last three", inputs, 6, 3),
        visible("a name that one of them lacks", misfit, "lacks"),
        hidden("seven states, the last five", inputs, 7, 5, 3, checks=UNTOUCHED,
               announced_by="the mean of the last k"),
        hidden("the newest alone", inputs, 4, 1, 6, announced_by="k: how many, from 1 to len(states)"),
        hidden("one state, of one number each", inputs, 1, 1, 1, announced_by="k: how many, from 1 to len(states)"),
        hidden("all of them", inputs, 3, 3, checks=UNTOUCHED,
               announced_by="k: how many, from 1 to len(states)"),
        hidden("the same state three times", twice_the_same, announced_by="the mean of the last k"),
        hidden("float64 far from zero", inputs, 4, 3, dtype=torch.float64, at=FAR, rtol=0.0, checks=UNTOUCHED,
               announced_by="computed in float64"),
        hidden("float32, large numbers that cancel", cancelling, announced_by="computed in float64"),
        hidden("float16, up to 55,000", half, 5, 4, rtol=2e-3, announced_by="computed in float64"),
        second_call(inputs, 4, 3),
        hidden("a name too many", misfit, "more", announced_by="names or shapes that differ"),
        hidden("a name too many in the newest", misfit, "newest has more", announced_by="names or shapes that differ"),
        hidden("the same number of names, one of them different", misfit, "renamed",
               announced_by="names or shapes that differ"),
        hidden("a shape that would broadcast", misfit, "row", announced_by="names or shapes that differ"),
        hidden("an axis of size 1 too many", misfit, "axis", announced_by="names or shapes that differ"),
        hidden("the same names in another order", misfit, "order", announced_by="names or shapes that differ"),
        hidden("another model before the last three", misfit, "older", announced_by="differ among the last k states"),
        hidden("another vocabulary", misfit, "vocabulary", announced_by="names or shapes that differ"),
        hidden("the last 0", inputs, 3, 0, announced_by="A k below 1 or above len(states)"),
        hidden("fewer than none", inputs, 3, -1, announced_by="A k below 1 or above len(states)"),
        hidden("more than there are", inputs, 3, 4, announced_by="A k below 1 or above len(states)"),
    ),
    mistakes=(
        mistake("counters averaged", RIGHT.but("if tensor.is_floating_point():", "if True:"), AVERAGE,
            """The counter of steps was averaged like a weight, but the mean of several counts is not the number of
            steps taken. Counters and flags come from the newest state.""", quotes=first_number),
        mistake("counters averaged into fractions", RIGHT.but("if tensor.is_floating_point():", "if True:").but(
                  "(total / k).to(tensor.dtype)",
                  "(total / k).to(tensor.dtype if tensor.is_floating_point() else torch.float32)"), AVERAGE,
            """Whole numbers and truth values were averaged and came back as fractions, which a model cannot load as
            what they are. They come from the newest state, unchanged.""", quotes=first_number),
        mistake("counters from the oldest", RIGHT.but(KEPT, "mean[name] = last[0][name].clone()"), AVERAGE,
            "The counters come from the oldest of the k states; it is the newest whose steps have all been taken.",
            quotes=first_number),
        mistake("counters left out", RIGHT.but(KEPT, "continue"), AVERAGE,
            """Tensors that do not hold floats were left out, so loading the result stops with missing names. They
            come from the newest state."""),
        mistake("the mean of all", RIGHT.but(LAST, "last = list(states)").but("total / k", "total / len(last)"),
                AVERAGE,
            "All states went into the mean, the early ones too, when the model still knew little. Only "
            "the last k count.", quotes=first_number),
        mistake("the sum of all divided by k", RIGHT.but(LAST, "last = list(states)"), AVERAGE,
            "All states were added up, and their sum divided by k. Only the last k go into the sum.",
            quotes=first_number),
        mistake("divided by the number of all", RIGHT.but("total / k", "total / len(states)"), AVERAGE,
            "The sum of the last k states was divided by the number of all states, so every weight is too near 0.",
            quotes=first_number),
        mistake("the first k", RIGHT.but(LAST, "last = states[:k]"), AVERAGE,
            "The first k states were taken. The list begins with the oldest; the good ones are at its end.",
            quotes=first_number),
        mistake("the first k, counters of the newest",
                RIGHT.but(LAST, "last = states[:k]").but("newest = last[-1]", "newest = states[-1]"), AVERAGE,
            "The weights come from the first k states. The list begins with the oldest; the good ones are at its end.",
            quotes=first_number),
        mistake("the newest left out",
                RIGHT.but(LAST, "last = states[-k - 1 : -1] or states[:1]").but("total / k", "total / len(last)").but(
                  "newest = last[-1]", "newest = states[-1]"), AVERAGE,
            NEWEST_MISSING, quotes=first_number),
        mistake("the newest left out, and its counters", RIGHT.but(LAST, "last = states[-k - 1 : -1]"), AVERAGE,
            NEWEST_MISSING, quotes=first_number),
        mistake("one too few",
                RIGHT.but(LAST, "last = states[len(states) - k + 1 :] or states[-1:]").but("total / k",
                    "total / len(last)"), AVERAGE,
            "Only k - 1 states went into your mean: the window begins one too late.", quotes=first_number),
        mistake("one too many",
                RIGHT.but(LAST, "last = states[max(len(states) - k - 1, 0) :]").but("total / k", "total / len(last)"),
                AVERAGE,
            "k + 1 states went into your mean, if there are that many: the window begins one too early.",
            quotes=first_number),
        mistake("the newest alone", RIGHT.but("(total / k).to(tensor.dtype)", "tensor.clone()"), AVERAGE,
            "These are the newest weights, not averaged with anything.", quotes=first_number),
        mistake("the sum", RIGHT.but("total / k", "total"), AVERAGE,
            "The last k states were added up and not divided by k.", quotes=first_number),
        mistake("halved again and again", RIGHT.but(TOTAL, """
                  total = last[0][name].double()
                  for state in last[1:]:
                      total = (total + state[name].double()) / 2""").but("total / k", "total"), AVERAGE,
            """Each state was averaged with the mean so far, two at a time. Then the newest counts half, the one before
            a quarter, and so on. In the mean of k each counts the same.""", quotes=first_number),
        mistake("the median",
                RIGHT.but(TOTAL, "total = torch.stack([state[name].double() for state in last]).median(0).values").but(
                  "total / k", "total"), AVERAGE,
            "This is the median of the last k, not their mean.", quotes=first_number),
        mistake("written into the oldest", RIGHT.but(TOTAL, """
                  total = last[0][name]
                  for state in last[1:]:
                      total += state[name]"""), AVERAGE,
            """The sum was written into one of the states, which are the caller's: one of their dictionaries or tensors
            was changed. Called again, your function averages what it has changed itself. Begin with a new dictionary of
            new tensors."""),
        mistake("written into the newest",
                RIGHT.but(DIVIDED, "mean[name] = tensor.copy_((total / k).to(tensor.dtype))"), AVERAGE,
            """The mean was written into the newest state, which is the caller's: what copy_ or an assignment to a slice
            changes is the model's own weight. Make a new tensor."""),
        mistake("always float32", RIGHT.but("(total / k).to(tensor.dtype)", "(total / k).float()"), AVERAGE,
            "Every weight came back as float32, whatever its dtype was. Convert the mean back to the dtype of its "
            "entry."),
        mistake("always float64", RIGHT.but("(total / k).to(tensor.dtype)", "total / k"), AVERAGE,
            "The mean came back as float64. Compute it in float64, and convert it back to the dtype of the entry."),
        mistake("summed in its own dtype", RIGHT.but("state[name].double()", "state[name]"), AVERAGE,
            """Your sum is computed in the dtype of the weights. In float16 it ends at 65,504, and in float32 it loses
            digits. Sum in float64 and turn the mean back."""),
        mistake("summed in float32", RIGHT.but("state[name].double()", "state[name].float()"), AVERAGE,
            """float64 weights were summed as float32, which holds seven digits: 100,000,000 and 100,000,001 become one
            number there. Sum in float64."""),
        mistake("names in common", OTHER_NAMES.but("for name, tensor in newest.items():", """
                  for name, tensor in newest.items():
                      if any(name not in state for state in last):
                          continue"""), AVERAGE,
            """States of different models were averaged, over the names that they have in common. Half a model is none:
            names that differ raise ValueError."""),
        mistake("names of the newest trusted", RIGHT.but(NAMES, "if not newest.keys() <= state.keys():"), AVERAGE,
            """A state with a name that the newest does not have went by unnoticed: look at the difference in both
            directions. Names that differ raise ValueError."""),
        mistake("names not compared", RIGHT.but(NAMES, "if False:"), AVERAGE,
            """For a name that one state lacks your code stops with KeyError, by accident, and without saying what is
            wrong. Names that differ raise ValueError, before anything is averaged."""),
        mistake("shapes not compared", RIGHT.but(SHAPES, "if False:"), AVERAGE,
            """Shapes that differ were added up: one row was broadcast over all, and the result looks whole. Or torch
            stopped with an error of its own. Compare the shapes, and raise ValueError."""),
        mistake("every state compared", RIGHT.but("for state in last:", "for state in states:"), AVERAGE,
            """A state before the last k was refused. Only the last k go into the mean, so only they have to be of one
            model."""),
        families.ASSERTED(RIGHT.but("""raise ValueError("states: expected the same names in each")""",
                                      "assert False").but(
                  """raise ValueError("states: expected the same shapes in each")""", "assert False"),
            AVERAGE),
        mistake("any k is welcome", RIGHT.but("if k < 1:", "if False:").but("if k > len(states):", "if False:"),
                AVERAGE,
            """k = 0 and a k beyond the list gave a result: a slice never complains, and the last 0 of a list,
            written as a slice from -0, is the whole list. Both raise ValueError."""),
        mistake("k beyond the list", RIGHT.but("if k > len(states):", "if False:"), AVERAGE,
            """The last 4 of 3 states gave a result: a slice never complains, and the sum of 3 was divided by 4. A k
            beyond the list raises ValueError."""),
        mistake("k of 0", RIGHT.but("if k < 1:", "if False:"), AVERAGE, BELOW_1),
        mistake("k of 0, divided by the number taken",
                RIGHT.but("if k < 1:", "if False:").but("total / k", "total / len(last)"), AVERAGE, BELOW_1),
    ),
    correct=(
        correct("sum in double", RIGHT),
        correct("stacked", """
            def average_checkpoints(states, k):
                if k < 1 or k > len(states):
                    raise ValueError(f"k: expected 1 to {len(states)}, got {k}")
                chosen = states[len(states) - k:]
                shapes = [{n: tuple(t.shape) for n, t in s.items()} for s in chosen]
                if any(s != shapes[0] for s in shapes):
                    raise ValueError("states: expected equal names and shapes")
                out = {}
                for n in chosen[-1]:
                    ts = [s[n] for s in chosen]
                    if ts[-1].dtype.is_floating_point:
                        out[n] = torch.stack(ts).to(torch.float64).mean(dim=0).to(ts[-1].dtype)
                    else:
                        out[n] = ts[-1]
                return out
        """),
        correct("a running mean", """
            from collections import OrderedDict

            def average_checkpoints(states, k):
                if not 0 < k <= len(states):
                    raise ValueError("k")
                newest = states[-1]
                mean = OrderedDict((n, t.clone().double() if t.is_floating_point() else t.clone())
                    for n, t in newest.items())
                for count, state in enumerate(reversed(states[-k:-1]), 2):
                    if set(state) != set(newest):
                        raise ValueError("names differ")
                    for n, t in state.items():
                        if t.shape != newest[n].shape:
                            raise ValueError("shapes differ")
                        if t.is_floating_point():
                            mean[n] += (t.double() - mean[n]) / count
                return OrderedDict((n, t.to(newest[n].dtype)) for n, t in mean.items())
        """),
        correct("shares of each", """
            import copy

            class Different(ValueError):
                pass

            def average_checkpoints(states, k):
                if k not in range(1, len(states) + 1):
                    raise Different("k")
                result = copy.deepcopy(states[-1])
                for state in states[-k:]:
                    if sorted(state) != sorted(result):
                        raise Different("names")
                    for name in state:
                        if state[name].size() != result[name].size():
                            raise Different("shapes")
                for name in result:
                    if torch.is_floating_point(result[name]):
                        parts = torch.stack([s[name].double() for s in states[-k:]], dim=-1)
                        result[name] = (parts @ torch.full((k,), 1 / k, dtype=torch.float64)).to(result[name].dtype)
                return result
        """),
    ),
    hints=(
        "what should become of a counter of steps, and what if two states come from different models?",
        "take the last k; compare names and shapes; for each name the k tensors of one shape become one of that shape.",
        "raise ValueError for a k below 1 or above the number of states, and for names or shapes that differ; for each "
        "name: sum floats in float64, divide by k and convert back; copy anything else from the newest state.",
    ),
)  # fmt: skip
