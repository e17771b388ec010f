"""06.5: three numbers that say what each head looks at."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from autograder.catalogue.ch06_multi_head_attention.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Misconception
from autograder.catalogue.known_answers import Answer, answer, correct, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import UNTOUCHED, hidden, shares, usual_probes, visible

STATS, TWO_HEADS = sections("stats two-heads")


def head_stats(A: Tensor) -> dict[str, Tensor]:
    """Entropy in nats, mean distance and weight on the diagonal, each (B, h), means over the queries."""
    places = torch.arange(A.shape[-1])
    apart = (places[:, None] - places).abs()
    return {
        "entropy": torch.special.entr(A).sum(-1).mean(-1),
        "mean_distance": (A * apart).sum(-1).mean(-1),
        "diagonal_share": A.diagonal(dim1=-2, dim2=-1).mean(-1),
    }


def inputs(g: torch.Generator, B: int, h: int, T: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((shares(g, B, h, T, T, dtype=dtype),))


def with_zeros(g: torch.Generator, B: int, h: int, T: int) -> Case:
    """Weights of which many are exactly 0, as under a causal mask."""
    scores = torch.randn(B, h, T, T, generator=g).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
    return Case((torch.softmax(scores, dim=-1),))


def one_hot(g: torch.Generator, B: int, h: int, T: int) -> Case:
    return Case((torch.nn.functional.one_hot(torch.randint(T, (B, h, T), generator=g), T).float(),))


THREE_HEADS = torch.stack([
    torch.eye(3),
    torch.full((3, 3), 1 / 3),
    torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [0.2, 0.8, 0.0]]),
])[None]


def wrong_keys(evidence: Evidence) -> list[str]:
    """The keys whose values are not correct."""
    values = [(key, evidence.got.get(key), right) for key, right in evidence.expected.items()]
    return [key for key, got, right in values if not isinstance(got, Tensor) or got.shape != right.shape
            or not torch.allclose(got.to(right.dtype), right, 1e-4, 1e-5)]


def low_entropy(evidence: Evidence) -> bool | None:
    """Whether only the entropy is wrong, as where a large number guards the logarithm: it is a little too small, or, if
    the number is 1, that of log(1 + A)."""
    got, expected = evidence.got, evidence.expected
    if not isinstance(got, dict) or wrong_keys(evidence) != ["entropy"]:
        return False
    value, right = got.get("entropy"), expected["entropy"]
    if not isinstance(value, Tensor) or value.shape != right.shape:
        return False
    weights = evidence.arguments[0]
    plus_one = -(weights * torch.log1p(weights)).sum(-1).mean(-1)
    if torch.allclose(value, plus_one.to(value.dtype), 1e-4, 1e-5):
        return True
    return bool((value <= right + 1e-5).all() and (value > right - 0.3).all())


def one_key(
    key: str, name: str, source: str, message: str, also: Sequence[str] = (), alone: bool = False
) -> Misconception:
    """A mistake in the value of one key; other keys may be wrong too. also: other sources of the same mistake; alone:
    which count only where the other keys are right."""
    namespaces: list[dict] = [{"torch": torch, "math": math} for _ in (source, *also)]
    for each, namespace in zip((source, *also), namespaces, strict=True):
        exec(compile(each, "<mistake>", "exec"), namespace)

    def quotes(evidence: Evidence) -> str:
        got, wanted = (found[key].flatten()[:3].tolist() for found in (evidence.got, evidence.expected))
        others = [other for other in wrong_keys(evidence) if other != key]
        too = f" ({' and '.join(others)} {'are' if len(others) > 1 else 'is'} wrong, too.)" if others else ""
        return f"Your {key} is {' '.join(map(number, got))}; it should be {' '.join(map(number, wanted))}.{too}"

    def shows(evidence: Evidence) -> bool:
        got, expected = evidence.got[key], evidence.expected[key]
        same = False
        for namespace in namespaces if not alone or wrong_keys(evidence) == [key] else namespaces[:1]:
            mistaken = namespace["head_stats"](evidence.arguments[0])[key].to(got.dtype)
            same |= got.shape == mistaken.shape and torch.allclose(got, mistaken, 1e-4, 1e-5, equal_nan=True)
        return same and (got.shape != expected.shape or not torch.allclose(got, expected, 1e-4, 1e-5))

    return mistake(name, source, STATS, message, quotes, shows)


RIGHT = answer("""
    def head_stats(A):
        B, h, T, _ = A.shape
        surprise = torch.where(A > 0, -A * torch.log(A.clamp_min(1e-30)), torch.zeros_like(A))
        entropy = surprise.sum(dim=-1).mean(dim=-1)
        position = torch.arange(T, device=A.device)
        apart = (position[:, None] - position[None, :]).abs()
        distance = (A * apart).sum(dim=-1).mean(dim=-1)
        diagonal = A.diagonal(dim1=-2, dim2=-1).mean(dim=-1)
        return {"entropy": entropy, "mean_distance": distance, "diagonal_share": diagonal}
""")
SURPRISE = "surprise = torch.where(A > 0, -A * torch.log(A.clamp_min(1e-30)), torch.zeros_like(A))"
ENTROPY, DISTANCE = "surprise.sum(dim=-1).mean(dim=-1)", "(A * apart).sum(dim=-1).mean(dim=-1)"
APART, DIAGONAL = "(position[:, None] - position[None, :]).abs()", "A.diagonal(dim1=-2, dim2=-1).mean(dim=-1)"


def one_of(name: str, values: str) -> list[Answer]:
    """The correct answer with one query's value, or the median, instead of the mean over the queries."""
    line = {"entropy": ENTROPY, "distance": DISTANCE}[name]
    return [RIGHT.but(line, values + part) for part in (
        ".amax(dim=-1)", ".amin(dim=-1)", "[..., 0]", "[..., -1]", ".median(dim=-1).values")]


def ending(part: str) -> Answer:
    """The correct answer with each of its three results passed through a method."""
    changed = RIGHT
    for name in ("entropy", "distance", "diagonal"):
        changed = changed.but(f": {name}", f": {name}{part}")
    return changed


EXERCISE = Exercise(
    id="head-stats", number="06.5", difficulty=2, minutes=20, visible_points=1, hidden_points=4,
    reference=head_stats, section=STATS,
    probes=(
        visible("three heads, worked by hand", Case((THREE_HEADS,))),
        visible("2 sentences, 3 heads, 5 words", inputs, 2, 3, 5),
        *usual_probes(inputs, other=(3, 2, 12), smallest=(1, 1, 2), common=(2, 3, 4), gradients=False, zero=False),
        hidden("many weights are exactly 0", with_zeros, 2, 3, 5, checks=UNTOUCHED,
               announced_by="some may be exactly 0"),
        hidden("every weight is 0 or 1", one_hot, 3, 2, 4, announced_by="some may be exactly 0"),
        hidden("one word", inputs, 2, 3, 1, announced_by="A: (B, h, T, T)"),
    ),
    omits={"precision": "a share has the same seven digits in either precision"},
    mistakes=(
        one_key("entropy", "0 times log 0", RIGHT.but(SURPRISE, "surprise = -A * torch.log(A)"),
            """0 times log 0 is 0 times minus infinity, and torch calls that NaN. A weight of 0 contributes 0: handle it
            before the logarithm, or use a torch function that does."""),
        one_key("entropy", "rows with a 0 dropped", RIGHT.but(SURPRISE, "surprise = -A * torch.log(A)").but(
                  ENTROPY, "surprise.sum(dim=-1).nan_to_num(0.0).mean(dim=-1)"),
            """A whole row counts as 0 as soon as one of its weights is 0: the sum was NaN, and was replaced. Only the
            *weight* of 0 adds nothing; the others of its row do. Take care of it before the sum."""),
        one_key("entropy", "rows with a 0 left out", RIGHT.but(SURPRISE, "surprise = -A * torch.log(A)").but(
                  ENTROPY, "surprise.sum(dim=-1).nanmean(dim=-1)"),
            """Rows with a weight of 0 are left out of the mean: their sum is NaN (0 times log 0), and nanmean skips it.
            Only the *weight* of 0 adds nothing. Take care of it before the sum."""),
        one_key("entropy", "bits in place of nats", RIGHT.but("torch.log(", "torch.log2("),
            "The entropy is in bits: base 2. Use nats: the natural logarithm."),
        one_key("entropy", "logarithm to base 10", RIGHT.but("torch.log(", "torch.log10("),
            "The logarithm has base 10. Use nats: the natural logarithm."),
        one_key("entropy", "entropy with the wrong sign", RIGHT.but("-A * torch.log", "A * torch.log"),
            "The entropy is negative. Logarithms of weights are below 0, so there is a minus in front."),
        one_key("entropy", "no weights before the logarithm", RIGHT.but("-A * torch.log", "-torch.log"),
            "The logarithms were added up without their weights. Each counts as much as its weight."),
        one_key("entropy", "no weights before the logarithm of 0", RIGHT.but(SURPRISE, "surprise = -torch.log(A)"),
            """The logarithms were added up without their weights, and the logarithm of a weight of 0 is minus
            infinity. Each counts as much as its weight, so that a weight of 0 adds nothing."""),
        mistake("a large number under the logarithm", RIGHT.but(".clamp_min(1e-30)", ".clamp_min(0.01)"), STATS,
            """The entropy is too small. Was a number such as 0.01, or 1 as in log1p, put inside the logarithm because
            of the weights of 0? Other weights then count wrongly, too. Handle only the weights that are exactly 0, or
            use a far smaller number.""", shows=low_entropy),
        one_key("entropy", "entropy of averaged weights", RIGHT.but(SURPRISE, "mean = A.mean(dim=-2)").but(
                  ENTROPY, "torch.special.entr(mean).sum(dim=-1)"),
            """The rows were averaged first and the entropy taken of the mean. A head whose words each look at *one*
            other word is sharp, though its mean is flat: first each row's entropy, then the mean."""),
        one_key("entropy", "entropy down the columns",
                RIGHT.but("surprise.sum(dim=-1)",
                          "(lambda P: torch.special.entr(P))(A / A.sum(dim=-2, "
                          "keepdim=True).clamp_min(1e-30)).sum(dim=-2)"),
            "The columns were taken for the weights. A *row* holds the weights of one query."),
        one_key("entropy", "entropy summed over the queries", RIGHT.but(ENTROPY, "surprise.sum(dim=(-2, -1))"),
            """The entropies of a head's queries were added up, or only one of them was taken, such as the largest.
            Return the mean over the queries.""", also=one_of("entropy", "surprise.sum(dim=-1)")),
        one_key("entropy", "entropy averaged over the keys too", RIGHT.but(ENTROPY, "surprise.mean(dim=(-2, -1))"),
            "The entropy was divided by the number of keys as well. Within a row it is a sum; only over the rows is "
            "it a mean."),
        one_key("entropy", "entropy as a share of the largest",
                RIGHT.but(ENTROPY, ENTROPY + " / max(math.log(T), 1e-9)"),
            "The entropy was divided by its largest possible value, log T. Return it in nats, as it is."),
        one_key("entropy", "exponential of the entropy", RIGHT.but(ENTROPY, f"torch.exp({ENTROPY})"),
            """There is an exponential too many: of the entropy itself (which gives the number of equal weights with
            that entropy), or of the weights, as a softmax takes it. They are probabilities already: return their
            entropy as it is.""", also=[RIGHT.but(SURPRISE, f"surprise = {again}") for again in (
                "torch.special.entr(torch.softmax(A, dim=-1))", "-A * torch.log_softmax(A, dim=-1)")], alone=True),
        one_key("mean_distance", "signed distance", RIGHT.but(APART, "position[:, None] - position[None, :]"),
            """The distance has a sign, so looking back and looking ahead cancel, or only one of the two counts. It is
            |i − j|.""", also=[RIGHT.but(APART, other) for other in (
                "(position[None, :] - position[:, None])", "(position[:, None] - position[None, :]).clamp(min=0)",
                "(position[None, :] - position[:, None]).clamp(min=0)")]),
        one_key("mean_distance", "sign lost after the sum",
                RIGHT.but(APART, "position[:, None] - position[None, :]").but(
                  DISTANCE, "(A * apart).sum(dim=-1).abs().mean(dim=-1)"),
            """The absolute value was taken after the sum, when distances to earlier and later words had already
            canceled. Each distance |i − j| is positive before it is weighted."""),
        one_key("mean_distance", "distance 0 everywhere", RIGHT.but(APART, "(position - position).abs()"),
            """Your distances do not depend on the query. Is each position subtracted from itself, which gives 0, or are
            they measured from one fixed position, such as the first or the last? A tensor with one axis stays the same
            when it is transposed. One of the two needs one more axis, so that all pairs of positions meet.""",
            also=[RIGHT.but(APART, key) for key in ("position", "position + 1", "T - position", "T - 1 - position")]),
        one_key("mean_distance", "squared distance", RIGHT.but(".abs()", " ** 2"),
            "The distance was squared. It is |i − j|, in words."),
        one_key("mean_distance", "distance without weights",
                RIGHT.but("(A * apart).sum(dim=-1)", "(A * 0 + apart).mean(dim=-1)"),
            "All distances count alike, so every head gets the same number. Each counts as much as its weight."),
        one_key("mean_distance", "distance averaged over the keys too",
                RIGHT.but(DISTANCE, "(A * apart).mean(dim=(-2, -1))"),
            """The distance was divided by the number of keys as well, or by one less (a mean over the keys divides,
            too). The weights of a row sum to 1 already, and the distance is measured in words.""",
            also=[RIGHT.but(DISTANCE, f"{DISTANCE} / max(T - 1, 1)")]),
        one_key("mean_distance", "distance summed over the queries",
                RIGHT.but(DISTANCE, "(A * apart).sum(dim=(-2, -1))"),
            """The distances of a head's queries were added up, or only one of them was taken, such as the largest.
            Return the mean over the queries.""", also=one_of("distance", "(A * apart).sum(dim=-1)")),
        one_key("mean_distance", "distance to the strongest word",
                RIGHT.but(DISTANCE, "(A.argmax(-1) - position).abs().to(A.dtype).mean(-1)"),
            "Only the word with the largest weight was looked at. Every word counts, by its weight.",
            also=[RIGHT.but(DISTANCE, f"{signed}.to(A.dtype).mean(-1)") for signed in (
                "(A.argmax(-1) - position)", "(position - A.argmax(-1))")]),
        one_key("mean_distance", "words counted from one another", RIGHT.but(".abs()", ".abs() + 1"),
            "A word is at distance 1 from itself in your count. |i − j| is 0 there."),
        one_key("diagonal_share", "diagonal summed", RIGHT.but(DIAGONAL, "A.diagonal(dim1=-2, dim2=-1).sum(dim=-1)"),
            "The diagonal was added up. A weight is at most 1: return the mean over the queries."),
        one_key("diagonal_share", "diagonal divided by all cells",
                RIGHT.but("A.diagonal(dim1=-2, dim2=-1).mean(dim=-1)",
                          "A.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / T ** 2"),
            """The diagonal was divided by too many: by all T·T cells, or by the number of heads or of sentences as
            well. There are T queries: divide by T.""",
            also=[RIGHT.but(DIAGONAL, f"{DIAGONAL} / {more}") for more in ("h", "B", "(B * h)")]),
        one_key("diagonal_share", "the other diagonal", RIGHT.but("A.diagonal", "A.flip(-1).diagonal"),
            "You took the diagonal from top right to bottom left. A word meets itself on the one from top left."),
        one_key("diagonal_share", "the largest weight of each row", RIGHT.but(DIAGONAL, "A.amax(dim=-1).mean(dim=-1)"),
            """The mean of each row's *largest* weight came back. The diagonal holds the weight that each word gives
            to itself, large or small."""),
        one_key("diagonal_share", "the diagonal of the first two axes",
                RIGHT.but(DIAGONAL, "A.diagonal().mean(dim=-1)"),
            """The diagonal was taken along the first two axes, sentences and heads, as torch does unless it is told
            otherwise. Queries and keys are the last two."""),
        one_key("diagonal_share", "the first cell alone", RIGHT.but(
                  DIAGONAL, "A[..., 0, 0]"),
            "Only the first word's weight for itself was taken. The diagonal has one cell for each word."),
        mistake("mean over the heads too", ending(".mean(dim=-1)"), TWO_HEADS,
            "The heads were averaged as well, and with them what distinguishes them. Each result is (B, h)."),
        mistake("mean over the heads in place of the queries",
                RIGHT.but(ENTROPY, "surprise.sum(dim=-1).mean(dim=1)").but(
                  DISTANCE, "(A * apart).sum(dim=-1).mean(dim=1)").but(DIAGONAL,
                      "A.diagonal(dim1=-2, dim2=-1).mean(dim=1)"), TWO_HEADS,
            "The heads were averaged, and the queries left: (B, T). Return the mean over the *queries*, a number a "
            "head: (B, h)."),
        mistake("mean over the batch too", ending(".mean(dim=0)"), STATS,
            "The sentences were averaged as well. Each result is (B, h)."),
        mistake("one number each", ending(".mean().item()"), STATS,
            "One number for everything came back under each key. Each result is a tensor of shape (B, h)."),
        mistake("one number for each query", RIGHT.but(ENTROPY, "surprise.sum(dim=-1)").but(
                  DISTANCE, "(A * apart).sum(dim=-1)").but(".mean(dim=-1)", ""), STATS,
            "One number for each query came back: (B, h, T). Return the mean over the queries."),
        mistake("other names for the keys",
                RIGHT.but('"mean_distance"', '"distance"').but('"diagonal_share"', '"diagonal"'), STATS,
            "The dictionary's keys are entropy, mean_distance and diagonal_share."),
        mistake("a tuple", RIGHT.but(
                  '{"entropy": entropy, "mean_distance": distance, "diagonal_share": diagonal}',
                  "entropy, distance, diagonal"), STATS,
            "Three results came back in a row. Return a dictionary with the keys entropy, mean_distance and "
            "diagonal_share."),
        mistake("always float32", ending(".float()"), STATS,
            "float64 went in and float32 came out. The results keep the dtype of the weights."),
        mistake("weights changed in place", RIGHT.before(SURPRISE, "A.clamp_(min=1e-12)"), STATS,
            "Your function wrote into the weights that were passed in: `[...] =`, += and methods whose names end in _ "
            "work in place. Make a new tensor."),
    ),
    correct=(
        correct("where", RIGHT),
        correct("entr", RIGHT.but(SURPRISE, "surprise = torch.special.entr(A)")),
        correct("xlogy", RIGHT.but(SURPRISE, "surprise = -torch.xlogy(A, A)")),
        correct("a tiny number inside", RIGHT.but(SURPRISE, "surprise = -A * torch.log(A + 1e-12)")),
        correct("nan_to_num", RIGHT.but(SURPRISE, "surprise = torch.nan_to_num(-A * A.log())")),
        correct("the library's distribution",
                RIGHT.but(SURPRISE, "surprise = torch.distributions.Categorical(probs=A).entropy()[..., None]")),
        correct("einsum and an identity", RIGHT.but(DIAGONAL, "torch.einsum('bhii->bh', A) / T").but(
            DISTANCE, "torch.einsum('bhij,ij->bh', A, apart.to(A.dtype)) / T")),
        correct("loops", """
            def head_stats(weights):
                B, h, T, _ = weights.shape
                found = {name: torch.zeros(B, h, dtype=weights.dtype)
                    for name in ("diagonal_share", "mean_distance", "entropy")}
                for b in range(B):
                    for i in range(h):
                        for q in range(T):
                            for k in range(T):
                                a = weights[b, i, q, k].item()
                                if a > 0:
                                    found["entropy"][b, i] -= a * math.log(a) / T
                                found["mean_distance"][b, i] += a * abs(q - k) / T
                                if q == k:
                                    found["diagonal_share"][b, i] += a / T
                return found
        """),
        correct("a mask for the diagonal", RIGHT.but(DIAGONAL, "(A * (apart == 0)).sum(dim=(-2, -1)) / T")),
    ),
    hints=(
        "for each of the three: what is one number for one query? Only then: what happens over the queries?",
        "A (B, h, T, T): each row gives one entropy, one distance and one diagonal cell. That makes three tensors "
        "(B, h, T); the mean over the queries makes each of them (B, h).",
        "entropy: minus the sum of a · log a over the keys, 0 where a is 0. Distance: the sum of a · |i − j|. "
        "Diagonal: a at i = j. "
        "Mean of each over the queries.",
    ),
)
