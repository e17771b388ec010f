"""06.3: several attentions side by side, as a module for one sentence or two."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import torch
from torch import Tensor, nn

from autograder.catalogue import families
from autograder.catalogue.ch06_multi_head_attention.shared import THREE_WORDS, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Role
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import Answer, answer, correct, mistake
from autograder.catalogue.laws import sums_to_one
from autograder.catalogue.probes import FAR, UNTOUCHED, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row
from transformer_ref.model import attention
from transformer_ref.model.multi_head_attention import merge_heads, split_heads

CROSS, MERGE, MODULE, OUTPUT, SPLIT, TWO_HEADS = sections("cross merge module output split two-heads")


class MultiHeadAttention(nn.Module):
    """Project, split, attend, merge, project; the weights are kept on the module."""

    def __init__(self, d_model: int, h: int, bias: bool = True) -> None:
        super().__init__()
        if d_model % h:
            raise ValueError(f"d_model: expected a multiple of h ({h}), got {d_model}")
        self.h, self.last_weights = h, None
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x_q: Tensor, x_kv: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        x_kv = x_q if x_kv is None else x_kv
        query = split_heads(self.query(x_q), self.h)
        key, value = split_heads(self.key(x_kv), self.h), split_heads(self.value(x_kv), self.h)
        attended, self.last_weights = attention.explicit_attention(query, key, value, mask)
        return self.output(merge_heads(attended))


def projections(d_model: int, h: int, bias: bool = True) -> tuple[Role, ...]:
    return (
        Role("query", d_model, d_model, ("q", "wq", "query", "queries"), h),
        Role("key", d_model, d_model, ("k", "wk", "key", "keys"), h),
        Role("value", d_model, d_model, ("v", "wv", "value", "values"), h),
        Role("output", d_model, d_model, ("o", "wo", "out", "output"), h, cut_inputs=True),
    )


def made(g: torch.Generator, D: int, h: int, arguments: tuple, dtype=torch.float32) -> Case:
    """A module with random weights, scaled so that scores stay near 1, and its inputs."""
    weights = {role: normal(g, D, D, dtype=dtype) / D**0.5 for role in ("query", "key", "value", "output")}
    return Case(arguments, construct=(D, h), weights=weights)


def itself(g: torch.Generator, B: int, T: int, D: int, h: int, size: float = 1.5,
           dtype: torch.dtype = torch.float32) -> Case:
    return made(g, D, h, (size * normal(g, B, T, D, dtype=dtype),), dtype)


def across(g: torch.Generator, B: int, Tq: int, Tk: int, D: int, h: int, dtype: torch.dtype = torch.float32) -> Case:
    return made(g, D, h, (1.5 * normal(g, B, Tq, D, dtype=dtype), 1.5 * normal(g, B, Tk, D, dtype=dtype)), dtype)


def far_away(g: torch.Generator) -> Case:
    """One feature of every word of x_kv is 100,000,000. It shifts all entries of all keys alike, and the queries of a
    head sum to 0, so no score is large."""
    case = across(g, 2, 4, 3, 8, 4, dtype=torch.float64)
    case.arguments[1][..., 0] = FAR
    case.weights["value"][0] = 0
    case.weights["key"][0] = 1
    case.weights["query"][:, 1::2] = -case.weights["query"][:, ::2]
    return case


def biased(g: torch.Generator, B: int, T: int, D: int, h: int) -> Case:
    """Every entry of every bias is 0.5, however the biases are stored. That of the keys changes no result."""
    case = itself(g, B, T, D, h)
    return replace(case, weights={**(case.weights or {}), "bias": torch.tensor(0.5)})


def no_bias(g: torch.Generator, B: int, T: int, D: int, h: int) -> Case:
    """A module without biases: one that exists all the same has an effect, unless it is that of the keys."""
    x, mask = 1.5 * normal(g, B, T, D), torch.eye(T, dtype=torch.bool)
    return replace(biased(g, B, T, D, h), arguments=(x,), construct=(D, h, False), before=(x.flip(1), x, mask))


def no_key_bias(g: torch.Generator, B: int, T: int, D: int, h: int) -> Case:
    """Keys so small and queries so large that a bias added to the keys, which changes no result otherwise, swallows
    them: every word then gets the same weight. All numbers are powers of two times small integers, so the products are
    exact in any order."""
    case = no_bias(g, B, T, D, h)
    drawn = torch.randint(-1, 2, (2, D, D), generator=g).float()
    weights = {**(case.weights or {}), "query": drawn[0] * 2.0**40, "key": drawn[1] * 2.0**-43}
    x = torch.randint(-2, 3, (B, T, D), generator=g).float()
    return replace(case, arguments=(x,), before=(x.flip(1), x, torch.eye(T, dtype=torch.bool)), weights=weights)


def masked(g: torch.Generator, B: int, Tq: int, Tk: int, D: int, h: int, sizes: Callable[..., tuple[int, ...]]) -> Case:
    """sizes: of the mask, from (B, h, Tq, Tk). Every query may attend to its first key; others are drawn."""
    mask = torch.rand(sizes(B, h, Tq, Tk), generator=g) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return made(g, D, h, (1.5 * normal(g, B, Tq, D), 1.5 * normal(g, B, Tk, D), mask))


def masked_itself(g: torch.Generator, B: int, T: int, D: int, h: int) -> Case:
    """Scores up to 3,000, among which the mask chooses; x_kv is passed as None. The keys are the negative queries, so
    every word gets its own lowest score. One word may attend only to itself, and in one head that score is -3,000: all
    hidden keys fit better, and -1,000 does not hide them."""
    mask = (torch.rand(T, T, generator=g) < 0.5) | torch.eye(T, dtype=torch.bool)
    case = made(g, D, h, (normal(g, B, T, D, dtype=torch.float64), None, mask), torch.float64)
    x, weights = case.arguments[0], dict(case.weights or {})
    weights["key"] = -weights["query"]
    sizes = (x @ weights["query"]).unflatten(-1, (h, D // h)).square().sum(-1).amax((0, 2)) / (D // h) ** 0.5  # (T,)
    word = int(sizes.argmax())
    mask[word] = torch.arange(T) == word
    return replace(case, arguments=(x * (3_000 / float(sizes[word])) ** 0.5, None, mask), weights=weights)


def indivisible(g: torch.Generator, D: int, h: int) -> Case:
    return made(g, D, h, (normal(g, 2, 3, D),))


def never_called(g: torch.Generator, D: int, h: int) -> Case:
    """Sizes that do not fit, and no input for forward: a ValueError can only come from the constructor."""
    return replace(indivisible(g, D, h), arguments=())


def row_sums(evidence: Evidence) -> str:
    return f"Your rows sum to {row(evidence.got[1].flatten(0, -2).sum(-1)[:4])}."


def still_seen(evidence: Evidence) -> str:
    return f"Hidden keys still get a weight, up to {evidence.got[1][evidence.expected[1] == 0].max().item():.2g}."


def finite(evidence: Evidence) -> bool | None:
    """Whether hidden keys get small weights and the others nearly the correct ones, or, where scores are large, whether
    all hidden keys of a query get the same weight."""
    if not isinstance(evidence.got, tuple) or not all(isinstance(part, Tensor) for part in evidence.got):
        return False
    (_, weights), right = evidence.got, evidence.expected[1]
    if weights.shape != right.shape or not (right == 0).any():
        return False
    if evidence.arguments[0].abs().max() <= 20:
        return bool(0 < weights[right == 0].max() < 0.05 and (weights - right).abs().max() < 0.05)
    if len(evidence.arguments) < 3:
        return None
    hidden_keys = ~evidence.arguments[2].expand(right.shape)
    least = weights.masked_fill(~hidden_keys, 1).amin(-1)
    most = weights.masked_fill(~hidden_keys, 0).amax(-1)
    return bool((most > 0.01).any() and ((most - least < 1e-6) | ~hidden_keys.any(-1)).all())


def by_words(evidence: Evidence) -> bool | None:
    """Whether the scores were divided by the root of the number of queries or of keys: the logarithms of the weights
    differ by a factor that only this explains. Hidden keys, and a single key, cannot show it."""
    if not isinstance(evidence.got, tuple) or not all(isinstance(part, Tensor) for part in evidence.got):
        return False
    (_, weights), right = evidence.got, evidence.expected[1]
    if weights.shape != right.shape:
        return False
    if right.shape[-1] == 1 or bool((right < 1e-30).any()):
        return None
    got, wanted = (table.double().log() - table.double().log().mean(-1, keepdim=True) for table in (weights, right))
    d_k = evidence.arguments[0].shape[-1] / right.shape[1]
    others = [T for T in right.shape[-2:] if d_k != T]
    return any(torch.allclose(got, wanted * (d_k / T) ** 0.5, 1e-2, 1e-3) for T in others) if others else None


def lacks_matrices(evidence: Evidence) -> bool:
    """Whether the result is the structure of a class, whose matrices hold fewer numbers than four projections."""
    found = getattr(evidence.got, "parameters", None)
    return found is not None and sum(prod(shape) for _, shape in found if len(shape) > 1) < 4 * _width(evidence) ** 2


def in_a_list(evidence: Evidence) -> bool:
    return lacks_matrices(evidence) and "collection" in evidence.got.unregistered


def made_anew(evidence: Evidence) -> bool:
    return lacks_matrices(evidence) and not evidence.got.unregistered and not evidence.got.repeatable


def _width(evidence: Evidence) -> int:
    return evidence.arguments[0].shape[-1]


def over_heads(evidence: Evidence) -> str:
    table = evidence.got[1]
    return f"The first cell of every head: {row(table[0, :, 0, 0])}, in all {row(table[0, :, 0, 0].sum()[None])}."


def kept(evidence: Evidence) -> str:
    return (
        f"last_weights has the shape {tuple(evidence.got[1].shape)} where {tuple(evidence.expected[1].shape)} was "
        f"expected."
    )


IDENTITY = torch.eye(4)
WORKED = Case((THREE_WORDS[None],), WORDS, construct=(4, 2),
              weights=dict.fromkeys(("query", "key", "value", "output"), IDENTITY))

RIGHT = answer("""
    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, h, bias=True):
            super().__init__()
            if d_model % h != 0:
                raise ValueError("d_model must be a multiple of h")
            self.h, self.d_k = h, d_model // h
            self.W_q = nn.Linear(d_model, d_model, bias=bias)
            self.W_k = nn.Linear(d_model, d_model, bias=bias)
            self.W_v = nn.Linear(d_model, d_model, bias=bias)
            self.W_o = nn.Linear(d_model, d_model, bias=bias)

        def split(self, x):
            B, T, D = x.shape
            return x.reshape(B, T, self.h, self.d_k).transpose(1, 2)

        def merge(self, z):
            B, h, T, d_k = z.shape
            return z.transpose(1, 2).reshape(B, T, h * d_k)

        def forward(self, x_q, x_kv=None, mask=None):
            if x_kv is None:
                x_kv = x_q
            q, k, v = self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)
            q, k, v = self.split(q), self.split(k), self.split(v)
            scores = q @ k.transpose(-2, -1)
            scores = scores / self.d_k ** 0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            weights = torch.softmax(scores, dim=-1)
            self.last_weights = weights
            attended = self.merge(weights @ v)
            return self.W_o(attended)
""")
Q_LAYER, K_LAYER, V_LAYER, O_LAYER = (f"self.W_{name} = nn.Linear(d_model, d_model, bias=bias)" for name in "qkvo")
LAYERS = "\n        ".join((Q_LAYER, K_LAYER, V_LAYER, O_LAYER))
PROJECTED = "q, k, v = self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)"
SPLIT_UP = "q, k, v = self.split(q), self.split(k), self.split(v)"
SPLITTING = "x.reshape(B, T, self.h, self.d_k).transpose(1, 2)"
DIVISION, SOFTMAX = "scores = scores / self.d_k ** 0.5", "weights = torch.softmax(scores, dim=-1)"
HIDING = 'scores = scores.masked_fill(~mask, float("-inf"))'
MASKING = f"if mask is not None:\n            {HIDING}"
CHECK = 'if d_model % h != 0:\n            raise ValueError("d_model must be a multiple of h")\n        '
NO_SCALE = RIGHT.without(DIVISION)


def layered(layers: str, projected: str) -> Answer:
    """The right answer with other layers for queries, keys and values."""
    return RIGHT.but("\n        ".join((Q_LAYER, K_LAYER, V_LAYER)), layers).but(PROJECTED, projected)


EXERCISE = Exercise(
    id="multi-head-attention", number="06.3", difficulty=3, minutes=45, visible_points=3, hidden_points=7,
    reference=MultiHeadAttention, roles=projections, kept_attributes=("last_weights",), section=MODULE,
    forbidden=("MultiheadAttention",),
    probes=(
        visible("three words, two heads, weights given", WORKED,
                laws=(sums_to_one("every query's weights sum to 1", part=1),)),
        visible("two sentences, d_model 15, 3 heads", itself, 2, 4, 15, 3),
        visible("4 queries, 4 keys of other words", across, 2, 4, 4, 15, 3),
        visible("4 queries, 6 keys", across, 2, 4, 6, 15, 3),
        visible("a mask for all sentences", masked, 2, 4, 6, 10, 2, lambda B, h, Tq, Tk: (Tq, Tk), checks="inputs"),
        visible("every bias is 0.5", biased, 2, 3, 8, 2),
        visible("bias=False, so there is none", no_bias, 2, 4, 6, 3),
        visible("d_model 10, 4 heads", indivisible, 10, 4),
        *usual_probes(across, other=(3, 5, 4, 12, 2), smallest=(1, 2, 3, 6, 3), common=(2, 4, 3, 8, 4),
                      precise=far_away),
        hidden("one head", itself, 2, 4, 6, 1, announced_by="`d_model` must be a multiple of `h`"),
        hidden("as many heads as features", itself, 2, 4, 5, 5, announced_by="`d_model` must be a multiple of `h`"),
        hidden("no bias, and no mask after a mask", no_key_bias, 2, 3, 8, 2,
               announced_by="bias: whether the four projections add one"),
        hidden("a mask for each sentence", masked, 3, 4, 6, 10, 2, lambda B, h, Tq, Tk: (B, 1, 1, Tk),
               announced_by="broadcasts to (B, h, Tq, Tk)"),
        hidden("a mask for each head", masked, 2, 4, 6, 15, 3, lambda B, h, Tq, Tk: (B, h, Tq, Tk),
               checks=UNTOUCHED, announced_by="broadcasts to (B, h, Tq, Tk)"),
        # As many sentences as heads, so that a mask for each sentence would fit, too.
        hidden("the same mask of each head in all sentences", masked, 3, 4, 6, 9, 3,
               lambda B, h, Tq, Tk: (h, Tq, Tk), announced_by="such as (Tq, Tk), (h, Tq, Tk) or (B, 1, 1, Tk)"),
        hidden("a mask in self-attention, large scores", masked_itself, 2, 5, 8, 4,
               announced_by="or from x_q where x_kv is None"),
        hidden("one query, one key", across, 1, 1, 1, 6, 2, announced_by="x_q (B, Tq, d_model)"),
        hidden("large scores", itself, 2, 5, 8, 2, 60.0, torch.float64, announced_by="must not give NaN"),
        hidden("the same in training", itself, 2, 3, 9, 3, checks="training", announced_by="no dropout"),
        hidden("d_model 15, 9 heads", never_called, 15, 9, announced_by="otherwise the constructor raises ValueError"),
        hidden("more heads than features", never_called, 2, 4,
               announced_by="otherwise the constructor raises ValueError"),
    ),
    mistakes=(
        mistake("divided by the root of d_model", RIGHT.but("self.d_k ** 0.5", "x_q.shape[-1] ** 0.5"), MODULE,
            """The scores were divided by the root of d_model. Each head compares only d_k = d_model / h numbers, so its
            scores grow with the root of d_k."""),
        mistake("no scaling", NO_SCALE, MODULE,
            "Your weights are too sharp: the division by the root of d_k is missing. It is the d_k of one *head*."),
        families.DIVIDED_BY_D_K(RIGHT.but("self.d_k ** 0.5", "self.d_k"), MODULE),
        mistake("divided by the root of h", RIGHT.but("self.d_k ** 0.5", "self.h ** 0.5"), MODULE,
            """The scores were divided by the root of the number of heads. What makes a score large is how many products
            it adds up: d_k."""),
        mistake("divided by the root of the number of words", RIGHT.but("self.d_k ** 0.5", "k.shape[-2] ** 0.5"),
                MODULE,
            """The scores were divided by the root of the number of words (queries or keys). A score does not grow with
            the length of a sentence; it adds up d_k products.""", shows=by_words),
        mistake("multiplied by the root of d_k", RIGHT.but(DIVISION, DIVISION.replace("/", "*")), MODULE,
            """Your weights are far too sharp: the scores were multiplied by the root of d_k. They grow with it already,
            so they are divided."""),
        mistake("no output projection", RIGHT.without(O_LAYER).but("self.W_o(attended)", "attended"), OUTPUT,
            """There are three matrices; there should be four. Most often it is W_O that is missing: without it the
            output of head 0 stays in the first d_k features. (If you have W_O, two of queries, keys and values share
            one.)"""),
        mistake("an output projection that nobody uses", RIGHT.but("self.W_o(attended)", "attended"), OUTPUT,
            "W_O was made and never used: the merged heads came back as they were."),
        mistake("one head's weights for all", RIGHT.but(SOFTMAX, SOFTMAX + "[:, :1].expand(-1, self.h, -1, -1)"),
                TWO_HEADS,
            "All heads share the weights of head 0. Each head has its own queries and keys, and so its own weights."),
        mistake("the mean of the heads' weights for all", RIGHT.but(SOFTMAX, SOFTMAX + """
                  weights = weights.mean(dim=1, keepdim=True).expand(-1, self.h, -1, -1)""".replace(
                      "                  ", "        ")),
            TWO_HEADS, "The heads' weights were averaged and used for all of them: one average again, which is what "
                       "heads avoid."),
        mistake("keys and values from those who ask",
                RIGHT.but("self.W_k(x_kv), self.W_v(x_kv)", "self.W_k(x_q), self.W_v(x_q)"), CROSS,
            """Changing x_kv did not change the result: keys and values were computed from x_q, or x_kv was overwritten.
            In cross-attention they come from the *other* sentence."""),
        mistake("keys from those who ask", RIGHT.but("self.W_k(x_kv)", "self.W_k(x_q)"), CROSS,
            "The keys were computed from x_q. Both keys *and* values come from x_kv."),
        mistake("values from those who ask", RIGHT.but("self.W_v(x_kv)", "self.W_v(x_q)"), CROSS,
            "The values were computed from x_q. Both keys *and* values come from x_kv."),
        mistake("queries from those who are asked", RIGHT.but("self.W_q(x_q)", "self.W_q(x_kv)"), CROSS,
            "The queries were computed from x_kv, so x_q has no effect. Return one output for each word of x_q."),
        mistake("the two sentences exchanged",
                RIGHT.but(PROJECTED, "q, k, v = self.W_q(x_kv), self.W_k(x_q), self.W_v(x_q)"), CROSS,
            "The two sentences are exchanged: the first argument gives the queries, the second gives keys and values. "
            "One output for "
            "each word of x_q."),
        mistake("x_kv asked for its truth", RIGHT.but("if x_kv is None:\n            x_kv = x_q", "x_kv = x_kv or x_q"),
                CROSS,
            """A tensor is neither true nor false, so `or` and `if x_kv` stop with an error. Ask whether it `is
            None`."""),
        mistake("x_kv always needed", RIGHT.but("if x_kv is None:\n            x_kv = x_q\n        ", ""), CROSS,
            "With x_kv left out there is nothing to compute keys and values from. None means self-attention: then they "
            "come from x_q."),
        mistake("softmax over the heads", RIGHT.but("dim=-1", "dim=1"), TWO_HEADS,
            "Your weights sum to 1 over the heads. In each head the weights of each *query* should sum to 1 over the "
            "keys: the last axis.",
            quotes=over_heads),
        mistake("softmax over the queries", RIGHT.but("dim=-1", "dim=-2"), TWO_HEADS,
            "The softmax runs over the queries. The weights of each *query* sum to 1 over the keys: the last axis.",
            quotes=row_sums),
        mistake("no softmax", RIGHT.but(SOFTMAX, "weights = scores"), TWO_HEADS,
            "The values were mixed by the scores themselves. Scores are not weights: a softmax makes the weights of "
            "each query sum to 1.",
            quotes=row_sums),
        families.DIVIDED_AFTER_THE_SOFTMAX(NO_SCALE.but("dim=-1)", "dim=-1) / self.d_k ** 0.5"),
            MODULE, quotes=row_sums),
        mistake("mask ignored", RIGHT.but(MASKING, "pass"), MODULE,
            """The mask has no effect. Where it is False the query may not attend: hide that score before the softmax.
            (masked_fill returns a new tensor and leaves the old one unchanged: its result has to be kept.)"""),
        mistake("mask the wrong way round", RIGHT.but("~mask", "mask"), MODULE,
            """You hid what may be seen and kept what should be hidden. True = *may* attend here. (nn.MultiheadAttention
            reads its masks the other way round.)"""),
        mistake("mask after the softmax",
                RIGHT.without(HIDING).but("if mask is not None:\n",
                                          "if mask is None:\n            mask = True\n").after(
                  SOFTMAX, "weights = weights * mask"), MODULE,
            "The weights were hidden after the softmax, so the rest no longer sums to 1. Hide *scores*, before the "
            "softmax.",
            quotes=row_sums),
        mistake("scores times mask", RIGHT.but(HIDING, "scores = scores * mask"), MODULE,
            """Hidden scores became 0 (multiplying by the mask does that, and so does 1e-9 written for -1e9). A score of
            0 is not hidden: e to the power of 0 is 1, so these words still get a weight. Minus infinity hides."""),
        mistake("a finite number for minus infinity", RIGHT.but(HIDING, "scores = scores - 10.0 * ~mask"), MODULE,
            """The weight of a hidden key must be exactly 0, however small the other scores are. In your code hidden
            scores end at a finite number, such as -10 or -1,000: it was added to them or put in their place, or all
            scores were limited to it, as clamp does. At the softmax they must be minus infinity.""",
            quotes=still_seen, shows=finite),
        mistake("mask added to the scores", RIGHT.but(HIDING, "scores = scores + mask"), MODULE,
            """The mask was added to the scores. In a sum True counts as 1 and False as 0, so nothing is hidden: the
            scores of the visible keys are larger by 1, and that is all. Where the mask is False, put minus
            infinity."""),
        mistake("mask with an axis of its own for the heads", RIGHT.but("~mask", "~mask.unsqueeze(1)"), MODULE,
            """An axis was put into the mask. It comes ready to broadcast to (B, h, Tq, Tk): shapes are matched from the
            right, so leave it as it is."""),
        mistake("three axes taken for a mask of each sentence",
                RIGHT.but("~mask", "~(mask.unsqueeze(1) if mask.ndim == 3 else mask)"), MODULE,
            """A mask with three axes was read as (B, Tq, Tk), one for each sentence. Shapes are matched from the right,
            so it is (h, Tq, Tk): one for each head. Leave it as it is."""),
        mistake("heads split by view alone", RIGHT.but(SPLITTING, "x.reshape(B, self.h, T, self.d_k)"), SPLIT,
            """The heads were cut with a single view or reshape, so head 0 received pieces of *other words* (see 06.1).
            Cut the features first, then move the head axis."""),
        mistake("heads merged by reshape alone",
                RIGHT.but("z.transpose(1, 2).reshape(B, T, h * d_k)", "z.reshape(B, T, h * d_k)"), MERGE,
            """The heads were joined with a single view or reshape, so a word's vector holds one head of *several words*
            (see 06.2)."""),
        mistake("split and merged by reshape alone", RIGHT.but(SPLITTING, "x.reshape(B, self.h, T, self.d_k)").but(
                  "z.transpose(1, 2).reshape(B, T, h * d_k)", "z.reshape(B, T, h * d_k)"), SPLIT,
            """Two things at once: the heads were cut with a single reshape, and joined with one. Both ways the pieces
            of several words got mixed (see 06.1 and 06.2)."""),
        mistake("view after the exchange", RIGHT.but("z.transpose(1, 2).reshape(", "z.transpose(1, 2).view("), MERGE,
            """view raises an error: a transpose only changes the strides. Use reshape, or contiguous() before
            view."""),
        mistake("interleaved heads", RIGHT.but(SPLITTING, "x.reshape(B, T, self.d_k, self.h).permute(0, 3, 1, 2)"),
                SPLIT,
            "The features of the heads are interleaved: head 0 got features 0, h, 2h and so on. It should work on the "
            "first d_k features of each projection."),
        mistake("heads added up", RIGHT.but("z.transpose(1, 2).reshape(B, T, h * d_k)", "z.sum(dim=1).repeat(1, 1, h)"),
                MERGE,
            "The heads were added up. They belong side by side: h times d_k numbers for each word."),
        mistake("heads averaged",
                RIGHT.but("z.transpose(1, 2).reshape(B, T, h * d_k)", "z.mean(dim=1).repeat(1, 1, h)"), MERGE,
            "The heads were averaged. They belong side by side: h times d_k numbers for each word."),
        mistake("a single head", RIGHT.but(SPLIT_UP, "q, k, v = q[:, None], k[:, None], v[:, None]"), SPLIT,
            "There is one head of d_model features, whatever h is: the projections were never split."),
        mistake("values not split", RIGHT.but("self.split(v)", "v[:, None].expand(-1, self.h, -1, -1)").but(
                  "self.merge(weights @ v)", "(weights @ v).mean(dim=1)"), SPLIT,
            "Queries and keys are split, but the values are not: each head returns all d_model features, and the "
            "heads were averaged."),
        mistake("input cut in place of projections", RIGHT.but(LAYERS, """
                  self.W_q = nn.Linear(self.d_k, self.d_k, bias=bias)
                  self.W_k = nn.Linear(self.d_k, self.d_k, bias=bias)
                  self.W_v = nn.Linear(self.d_k, self.d_k, bias=bias)
                  self.W_o = nn.Linear(d_model, d_model, bias=bias)
                  """.rstrip(" ")).but(PROJECTED, "q, k, v = self.split(x_q), self.split(x_kv), self.split(x_kv)").but(
                  SPLIT_UP, "q, k, v = self.W_q(q), self.W_k(k), self.W_v(v)"), MODULE,
            """The words were cut first and projected afterward, so head 0 sees only the first d_k features of each
            word. Project all d_model features, then cut."""),
        mistake("the weights forgotten", RIGHT.without("self.last_weights = weights"), MODULE,
            "The result is right, but .last_weights holds no weights. After every call it must hold those of all "
            "heads, (B, h, Tq, Tk), and the attribute must have exactly this name."),
        mistake("the mean of the heads kept",
                RIGHT.but("self.last_weights = weights", "self.last_weights = weights.mean(dim=1)"), MODULE,
            "The result is right, but .last_weights holds the mean of the heads. Keep every head's own.", quotes=kept),
        mistake("scores kept", RIGHT.but("self.last_weights = weights", "self.last_weights = scores"), MODULE,
            "The result is right, but .last_weights holds the scores before the softmax. Keep the weights.",
            quotes=row_sums),
        mistake("the weights without the mask kept", RIGHT.without("self.last_weights = weights").before(
                  "if mask is not None:", "self.last_weights = torch.softmax(scores, dim=-1)"), MODULE,
            """The result is right, but .last_weights holds the weights before anything was hidden. Keep those that
            mixed the values."""),
        families.TWO_RESULTS(RIGHT.but("return self.W_o(attended)", "return self.W_o(attended), weights"),
            MODULE, name="weights returned too", result="output; the weights stay on the module, in .last_weights"),
        mistake("queries and keys exchanged",
                RIGHT.but(PROJECTED, "q, k, v = self.W_k(x_q), self.W_q(x_kv), self.W_v(x_kv)"), MODULE,
            "The query projection makes your keys, and the key projection makes your queries."),
        families.QUERIES_WITH_THEMSELVES(RIGHT.but("k.transpose(-2, -1)", "q.transpose(-2, -1)"), MODULE),
        mistake("keys times queries", RIGHT.but("q @ k.transpose(-2, -1)", "k @ q.transpose(-2, -1)"), MODULE,
            """Queries and keys are exchanged in the product that gives the scores, so each row belongs to a key. Row i
            must hold the scores of query i, one for each key."""),
        mistake("keys made by the query projection", RIGHT.but("self.W_k(x_kv)", "self.W_q(x_kv)"), MODULE,
            "The keys were made by the query projection; the one for keys was made and never used."),
        mistake("one projection for queries, keys and values",
                RIGHT.but("self.W_k(x_kv), self.W_v(x_kv)", "self.W_q(x_kv), self.W_q(x_kv)"), MODULE,
            """Queries, keys and values were all made by the query projection; the projections for keys and values
            were created and never used."""),
        mistake("keys and values exchanged",
                RIGHT.but("self.W_k(x_kv), self.W_v(x_kv)", "self.W_v(x_kv), self.W_k(x_kv)"), MODULE,
            "The key projection makes your values, and the value projection makes your keys."),
        mistake("a ReLU at the end", RIGHT.but("self.W_o(attended)", "F.relu(self.W_o(attended))"), MODULE,
            "Nothing in your result is below 0: there is a ReLU at its end. The output projection is the last step."),
        mistake("softmax over the heads and no scaling", NO_SCALE.but("dim=-1", "dim=1"), TWO_HEADS,
            "Two things at once: the softmax runs over the heads instead of the keys, and the division by the root of "
            "d_k is missing.",
            quotes=over_heads),
        mistake("keys mixed instead of values", RIGHT.but("weights @ v", "weights @ k"), MODULE,
            """Your weights mix vectors that the key projection makes: the keys themselves, or values made by the wrong
            projection. Keys are only compared with queries; the values have their own projection, and they are
            mixed."""),
        mistake("projections made in forward", layered("self.bias = bias", """
                  q, k, v = (nn.Linear(x.shape[-1], x.shape[-1], bias=self.bias)(x) for x in (x_q, x_kv, x_kv))"""),
                  MODULE,
            """Not all four projections are registered, and two calls with the same input give different results. Layers
            that are made in forward are new in every call, so they learn nothing. Create all four once, in the
            constructor.""", shows=made_anew),
        mistake("plain tensors instead of parameters", layered(
                  "self.W_q, self.W_k, self.W_v = (torch.randn(d_model, d_model) for _ in range(3))",
                  "q, k, v = x_q @ self.W_q, x_kv @ self.W_k, x_kv @ self.W_v"), MODULE,
            "The matrices are plain tensors, so an optimizer would never see them. nn.Parameter or nn.Linear "
            "registers them."),
        mistake("heads kept in a plain list", layered("""
                  self.heads = [nn.Linear(d_model, d_model, bias=bias) for _ in range(3)]""",
                  "q, k, v = self.heads[0](x_q), self.heads[1](x_kv), self.heads[2](x_kv)"), MODULE,
            """Some of your layers or parameters are in a plain Python list, which hides them from the module: they are
            not registered, so no optimizer finds them. nn.ModuleList registers layers, nn.ParameterList parameters.""",
            shows=in_a_list),
        mistake("no check of the sizes", RIGHT.but(CHECK, ""), SPLIT,
            """The constructor accepts a d_model that is not a multiple of h. Left to torch, that ends in a different
            error, or in none. Check the sizes in the constructor, not in forward, and raise a ValueError."""),
        mistake("sizes checked in forward", RIGHT.but(CHECK, "").but("B, T, D = x.shape", """
                  B, T, D = x.shape
                  if D % self.h:
                      raise ValueError("D must be a multiple of h")"""), SPLIT,
            """The constructor accepts a d_model that is not a multiple of h. A ValueError in forward comes too late:
            a module that cannot work exists by then. Check the sizes in the constructor."""),
        mistake("an assert in place of ValueError", RIGHT.but(CHECK, "assert d_model % h == 0\n        "), SPLIT,
            "The sizes are checked by assert, which raises AssertionError. The task asks for a ValueError."),
        mistake("the rest cut off", RIGHT.but(CHECK, "").but(
                  "x.reshape(B, T, self.h, self.d_k)",
                  "x[..., :self.h * self.d_k].reshape(B, T, self.h, self.d_k)").but(
                  "self.W_o(attended)", "self.W_o(F.pad(attended, (0, x_q.shape[-1] - attended.shape[-1])))"), SPLIT,
            "Where d_model is not a multiple of h you dropped what was left over. Raise a ValueError in the "
            "constructor."),
        mistake("no biases", RIGHT.but(LAYERS, LAYERS.replace("bias=bias", "bias=False")), MODULE,
            "Your projections add no bias. With bias=True, which must also be the default, each of the four adds one: "
            "d_model numbers that are learned, as those of nn.Linear are."),
        mistake("biases in any case", RIGHT.but(LAYERS, LAYERS.replace("bias=bias", "bias=True")), MODULE,
            "Your projections add a bias even with bias=False. Do all four of them receive that argument?"),
        mistake("x added to the output", RIGHT.but("return self.W_o(attended)", "return x_q + self.W_o(attended)"),
                MODULE,
            "x was added to the output. That sum, the residual, comes in chapter 09 and outside of attention."),
        families.FUTURE_FORBIDDEN(RIGHT.before(SOFTMAX, """
                  later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
                  scores = scores.masked_fill(later, float("-inf"))"""),
            MODULE, here="Only the mask that is passed in hides words."),
        families.DROPOUT_ON_THE_WEIGHTS(RIGHT.after(SOFTMAX, "weights = F.dropout(weights, 0.5)"), MODULE),
        families.DROPOUT_IN_TRAINING(RIGHT.after(O_LAYER, "self.drop = nn.Dropout(0.5)").after(
                  SOFTMAX, "weights = self.drop(weights)"),
            MODULE),
        families.FROZEN_PROJECTIONS(RIGHT.after(O_LAYER, "self.requires_grad_(False)"), MODULE),
        mistake("weights cut off from the gradient", RIGHT.but("dim=-1)", "dim=-1).detach()"), MODULE,
            """The values are right, but the weights that mix the values were detached, so no gradient reaches the query
            and key projections. Detach only what you *keep*."""),
        families.NAN_FOR_LARGE_SCORES(RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores)
                  weights = weights / weights.sum(dim=-1, keepdim=True)"""),
            MODULE),
        mistake("softmax over the queries and no scaling", NO_SCALE.but("dim=-1", "dim=-2"), TWO_HEADS,
            "Two things at once: the softmax runs over the queries instead of the keys, and the division by the root "
            "of d_k is missing.",
            quotes=row_sums),
        mistake("split by view alone and no scaling", NO_SCALE.but(SPLITTING, "x.reshape(B, self.h, T, self.d_k)"),
                SPLIT,
            """Two things at once: the heads were cut with a single reshape, which mixes words, and the division by the
            root of d_k is missing."""),
        *usual_mistakes(RIGHT, arguments="x_q", squeezed=MERGE, viewed=MODULE),
    ),
    correct=(
        correct("four Linears", RIGHT),
        correct("one fused Linear for self and cross", layered(
            "self.qkv = nn.Linear(d_model, 3 * d_model, bias=bias)",
            "q, k, v = self.qkv(x_q).chunk(3, -1)[0], *self.qkv(x_kv).chunk(3, -1)[1:]")),
        correct("fused, all of one head together", layered("self.qkv = nn.Linear(d_model, 3 * d_model, bias=bias)", """
            def cut(x):
                return self.qkv(x).view(x.shape[0], x.shape[1], self.h, 3 * self.d_k).transpose(1, 2).chunk(3, dim=-1)
            q, (_, k, v) = cut(x_q)[0], cut(x_kv)""").without(SPLIT_UP)),
        correct("heads as modules of their own", """
            class Head(nn.Module):
                def __init__(self, d_model, d_k, bias):
                    super().__init__()
                    self.query = nn.Linear(d_model, d_k, bias=bias)
                    self.key = nn.Linear(d_model, d_k, bias=bias)
                    self.value = nn.Linear(d_model, d_k, bias=bias)

                def forward(self, a, b, mask):
                    s = torch.einsum("bqd,bkd->bqk", self.query(a), self.key(b)) / math.sqrt(self.key.out_features)
                    if mask is not None:
                        s = torch.where(mask, s, torch.tensor(float("-inf"), dtype=s.dtype))
                    w = F.softmax(s, dim=-1)
                    return w @ self.value(b), w

            class MultiHeadAttention(nn.Module):
                def __init__(self, d_model, h, bias=True):
                    super().__init__()
                    if d_model % h:
                        raise ValueError(f"{d_model} features for {h} heads")
                    self.heads = nn.ModuleList(Head(d_model, d_model // h, bias) for _ in range(h))
                    self.out = nn.Linear(d_model, d_model, bias=bias)

                def forward(self, x_q, x_kv=None, mask=None):
                    x_kv = x_q if x_kv is None else x_kv
                    shape = (x_q.shape[0], len(self.heads), x_q.shape[1], x_kv.shape[1])
                    masks = [None] * len(self.heads) if mask is None else mask.expand(shape).unbind(1)
                    results = [head(x_q, x_kv, m) for head, m in zip(self.heads, masks)]
                    self.last_weights = torch.stack([w for _, w in results], dim=1)
                    return self.out(torch.cat([z for z, _ in results], dim=-1))
        """),
        correct("bare parameters, one for each head", """
            class MultiHeadAttention(nn.Module):
                def __init__(self, D, heads, bias=True):
                    super().__init__()
                    if D % heads:
                        raise ValueError("D")
                    d = D // heads
                    self.Q = nn.Parameter(torch.randn(heads, D, d))
                    self.K = nn.Parameter(torch.randn(heads, D, d))
                    self.V = nn.Parameter(torch.randn(heads, D, d))
                    self.O = nn.Parameter(torch.randn(heads, d, D))
                    self.added = nn.Parameter(torch.zeros(3, heads, 1, d)) if bias else torch.zeros(3)
                    self.bias = nn.Parameter(torch.zeros(D)) if bias else 0
                    self.last_weights = None

                def forward(self, a, b=None, mask=None):
                    b = a if b is None else b
                    q, k, v = (torch.einsum("btd,hdk->bhtk", x, W) + c
                               for x, W, c in zip((a, b, b), (self.Q, self.K, self.V), self.added))
                    s = torch.einsum("bhqk,bhsk->bhqs", q, k) * q.size(-1) ** -0.5
                    if mask is not None:
                        s = s + torch.zeros_like(s).masked_fill(mask.logical_not(), -math.inf)
                    w = s.softmax(-1)
                    self.last_weights = w.detach()
                    return torch.einsum("bhqs,bhsk,hkd->bqd", w, v, self.O) + self.bias
        """),
        correct("kernels of three axes, biases of two", """
            class MultiHeadAttention(nn.Module):
                def __init__(self, d_model, h, bias=True):
                    super().__init__()
                    if d_model % h:
                        raise ValueError(f"{d_model} features for {h} heads")
                    d_k = d_model // h
                    self.w_q, self.w_k, self.w_v = (nn.Parameter(torch.randn(d_model, h, d_k)) for _ in range(3))
                    self.w_o = nn.Parameter(torch.randn(h, d_k, d_model))
                    for name in ("b_q", "b_k", "b_v"):
                        self.register_parameter(name, nn.Parameter(torch.zeros(h, d_k)) if bias else None)
                    self.register_parameter("b_o", nn.Parameter(torch.zeros(d_model)) if bias else None)

                def forward(self, x_q, x_kv=None, mask=None):
                    x_kv = x_q if x_kv is None else x_kv
                    q = torch.einsum("btd,dhk->bthk", x_q, self.w_q)
                    k = torch.einsum("btd,dhk->bthk", x_kv, self.w_k)
                    v = torch.einsum("btd,dhk->bthk", x_kv, self.w_v)
                    if self.b_q is not None:
                        q, k, v = q + self.b_q, k + self.b_k, v + self.b_v
                    scores = torch.einsum("bqhk,bshk->bhqs", q, k) / math.sqrt(q.shape[-1])
                    if mask is not None:
                        scores = scores.masked_fill(~mask, -torch.inf)
                    self.last_weights = torch.softmax(scores, dim=-1)
                    out = torch.einsum("bhqs,bshk,hkd->bqd", self.last_weights, v, self.w_o)
                    return out if self.b_o is None else out + self.b_o
        """),
        correct("bare square matrices, weights kept detached", layered("""
            self.wq = nn.Parameter(torch.randn(d_model, d_model))
            self.wk = nn.Parameter(torch.randn(d_model, d_model))
            self.wv = nn.Parameter(torch.randn(d_model, d_model))
            self.added = nn.Parameter(torch.zeros(3, d_model)) if bias else torch.zeros(3)
        """, """
            q, k, v = (x @ w + b for x, w, b in zip((x_q, x_kv, x_kv), (self.wq, self.wk, self.wv), self.added))
        """).but(
            "self.last_weights = weights", "self.last_weights = weights.detach().clone()")),
        correct("bare square matrices, outputs first", layered("""
            self.a = nn.Parameter(torch.randn(d_model, d_model))
            self.b = nn.Parameter(torch.randn(d_model, d_model))
            self.c = nn.Parameter(torch.randn(d_model, d_model))
            self.biases = nn.ParameterList(torch.zeros(d_model) for _ in range(3 if bias else 0))
        """, """
            a, b, c = self.biases if len(self.biases) else (None, None, None)
            q, k, v = F.linear(x_q, self.a, a), F.linear(x_kv, self.b, b), F.linear(x_kv, self.c, c)
        """)),
        correct("the heads in the middle", layered("""
            self.wq = nn.Parameter(torch.randn(d_model, h, d_model // h))
            self.wk = nn.Parameter(torch.randn(d_model, h, d_model // h))
            self.wv = nn.Parameter(torch.randn(d_model, h, d_model // h))
            self.b = nn.Parameter(torch.zeros(3, h, 1, d_model // h)) if bias else torch.zeros(3)
        """, "q, k, v = x_q, x_kv, x_kv").but(SPLIT_UP, """
            q, k, v = (torch.einsum("btd,dhk->bhtk", x, w) + b
                       for x, w, b in zip((q, k, v), (self.wq, self.wk, self.wv), self.b))""")),
        correct("a loop over the heads",
                RIGHT.but(SPLIT_UP, "parts = list(zip(*(x.chunk(self.h, -1) for x in (q, k, v))))").but("""\
        scores = q @ k.transpose(-2, -1)
        scores = scores / self.d_k ** 0.5
""", """\
        scores = torch.stack([a @ b.mT for a, b, _ in parts], 1) / math.sqrt(self.d_k)
""").but("self.merge(weights @ v)", "torch.cat([weights[:, i] @ c for i, (_, _, c) in enumerate(parts)], -1)")),
        correct("keys and values fused, the library's softmax and -1e9", layered("""
            self.to_q = nn.Linear(d_model, d_model, bias=bias)
            self.to_kv = nn.Linear(d_model, 2 * d_model, bias=bias)
        """, "q, (k, v) = self.to_q(x_q), self.to_kv(x_kv).chunk(2, dim=-1)").but('float("-inf")', "-1e9").but(
            "torch.softmax(scores, dim=-1)", "F.softmax(scores, dim=-1)")),
        correct("the fused kernel for the output", RIGHT.but(
            "self.merge(weights @ v)", "self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))")),
        correct("queries scaled first, weights as a buffer", RIGHT.after(
            O_LAYER, 'self.register_buffer("last_weights", None, persistent=False)').without(DIVISION).but(
            "self.split(q)", "self.split(q) / math.sqrt(self.d_k)")),
        correct("ModuleList of four", RIGHT.but(
            LAYERS, "self.layers = nn.ModuleList([nn.Linear(d_model, d_model, bias=bias) for _ in range(4)])").but(
            PROJECTED, "q, k, v = (layer(x) for layer, x in zip(self.layers, (x_q, x_kv, x_kv)))").but("self.W_o(",
                "self.layers[-1](")),
    ),
    hints=(
        "which steps are those of 05.5, and which two are new? What is the shape after each step?",
        "x_q (B, Tq, D) gives q (B, h, Tq, d_k); x_kv gives k and v (B, h, Tk, d_k); weights (B, h, Tq, Tk); merged "
        "(B, Tq, D).",
        "constructor: check the sizes, four projections. forward: project, split, scores over the root of d_k, hide "
        "where the "
        "mask is False, softmax over the last axis, keep the weights, mix, merge, project once more.",
    ),
)
