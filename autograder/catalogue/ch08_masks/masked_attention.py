"""08.4: hide the scores, not the shares."""


import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch05_self_attention.shared import FUSED
from autograder.catalogue.ch08_masks.shared import EMBEDDINGS, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law
from autograder.catalogue.families import Family, in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import GRADIENTS, PROMISED, hidden, normal, second_call, turned, visible
from autograder.catalogue.quotes import row, row_sums
from transformer_ref.model import attention

SCORES, NOBODY, CONSTANTS, CONVENTION, AXIS = sections("scores nobody constants convention axis")


def masked_attention(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V over the keys that the mask allows, and the weights."""
    return tuple(attention.explicit_attention(Q, K, V, mask))


def some_hidden(g: torch.Generator, *shape: int) -> Tensor:
    """A mask in which every query has a key, and most have a hidden one."""
    mask = torch.rand(*shape, generator=g) < 0.6
    first = torch.randint(shape[-1], shape[:-1], generator=g)
    return mask.scatter(-1, first[..., None], True)


def inputs(
    g: torch.Generator, B: int, h: int, Tq: int, Tk: int, d_k: int, d_v: int, dtype: torch.dtype = torch.float32
) -> Case:
    Q, K, V = normal(g, B, h, Tq, d_k), normal(g, B, h, Tk, d_k), normal(g, B, h, Tk, d_v)
    return Case((Q.to(dtype), K.to(dtype), V.to(dtype), some_hidden(g, B, 1, Tq, Tk)))


def turned_in_memory(g: torch.Generator) -> Case:
    case = inputs(g, 2, 3, 4, 5, 6, 7, dtype=torch.float64)
    return Case((*map(turned, case.arguments[:3]), case.arguments[3]))


def causal(g: torch.Generator) -> Case:
    """A mask of two axes, for every sentence and head."""
    return Case((normal(g, 2, 3, 5, 4), normal(g, 2, 3, 5, 4), normal(g, 2, 3, 5, 6), torch.ones(5, 5).tril().bool()))


def no_mask(g: torch.Generator) -> Case:
    return Case((*inputs(g, 2, 1, 3, 4, 5, 6).arguments[:3], None))


def for_each_head(g: torch.Generator) -> Case:
    Q, K, V, _ = inputs(g, 2, 3, 4, 5, 6, 7).arguments
    return Case((Q, K, V, some_hidden(g, 2, 3, 4, 5)))


def large_scores(g: torch.Generator) -> Case:
    """Scores of about a million, whose pads are hidden by a mask of (B, 1, 1, Tk). The first sentence has one real
    key, whose score for the first query is far below 0: only a constant below that hides the others."""
    Q, K, V, _ = inputs(g, 3, 2, 4, 5, 6, 7, dtype=torch.float64).arguments
    mask = some_hidden(g, 3, 1, 1, 5)
    mask[0] = torch.arange(5) == 0
    Q[0, :, 0] = -K[0, :, 0]
    return Case((1000 * Q, 1000 * K, V, mask))


def poisoned(g: torch.Generator) -> Case:
    """A hidden key has a value of a million, another one the largest scores: neither may matter."""
    Q, K, V, _ = inputs(g, 2, 2, 3, 5, 4, 6).arguments
    mask = torch.ones(2, 1, 3, 5, dtype=torch.bool)
    mask[0, ..., 1], mask[1, ..., 3] = False, False
    V[0, :, 1], V[1, :, 3] = 1e6, -1e6
    K[0, :, 1] = 20 * Q[0, :, 0]
    return Case((Q, K, V, mask))


def low_scores(g: torch.Generator) -> Case:
    """The allowed scores lie around -200 and below a hidden one's constant, if that is small."""
    K = torch.full((1, 1, 4, 4), -200.0) + torch.arange(4.0)[:, None]
    K[..., 3, :] = 1.0
    mask = torch.tensor([[True, True, True, False], [True, False, True, False]])
    return Case((torch.full((1, 1, 2, 4), 0.5), K, normal(g, 1, 1, 4, 3), mask))


def very_low_scores(g: torch.Generator) -> Case:
    """The allowed scores lie around -20,000, which float32 has no trouble with."""
    case = low_scores(g)
    Q, K, V, mask = case.arguments
    return Case((100 * Q, K, V, mask))


def nobody(g: torch.Generator, B: int = 2, dtype: torch.dtype = torch.float32) -> Case:
    """One query of each sentence may attend to no key."""
    Q, K, V, mask = inputs(g, B, 3, 4, 5, 6, 7, dtype=dtype).arguments
    mask[0, 0, 2] = False
    if B > 1:
        mask[1, 0, 0] = False
    return Case((Q, K, V, mask))


def half(g: torch.Generator) -> Case:
    return inputs(g, 1, 2, 3, 4, 5, 6, dtype=torch.float16)


RUNNING = EMBEDDINGS[None, None]
PAST = torch.ones(4, 4, dtype=torch.bool).tril()


def with_a_blind_word() -> Case:
    mask = PAST.clone()
    mask[1] = False
    return Case((RUNNING, RUNNING, RUNNING, mask), WORDS)


def hidden_is_zero(got) -> bool:
    return bool((got[1].flatten(0, -3)[0].masked_select(~PAST) == 0).all())


def first_row(evidence: Evidence) -> str:
    weights = evidence.got[1].flatten(0, -2)[0][:4]
    return f"The first word's weights are {row(weights)}; only itself is open to it."


def both_weights(evidence: Evidence) -> tuple[Tensor, Tensor] | None:
    """The returned weights and the correct ones, if the returned ones are finite and of the right shape."""
    got = evidence.got
    if not isinstance(got, (tuple, list)) or len(got) != 2 or not isinstance(got[1], Tensor):
        return None
    weights, right = got[1].double(), evidence.expected[1].double()
    return (weights, right) if weights.shape == right.shape and torch.isfinite(weights).all() else None


def extreme_rows(evidence: Evidence) -> Tensor:
    """Whether the largest allowed score of each row is far from 0, or far below a hidden one, (B, h, Tq, 1)."""
    Q, K, _, mask = evidence.arguments
    scores = Q.double() @ K.double().mT / Q.shape[-1] ** 0.5
    allowed = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
    top = allowed.amax(-1, keepdim=True)
    return (top.abs() > 5) | (top < scores.amax(-1, keepdim=True) - 5)


def rows_too_small(evidence: Evidence) -> bool:
    """Whether each wrong row of weights has extreme scores, and is the correct one times a number below 1, such as
    0."""
    if (both := both_weights(evidence)) is None:
        return False
    weights, right = both
    left = weights.sum(-1, keepdim=True)
    is_less = (left < 0.999).logical_and(right.sum(-1, keepdim=True) > 0.999)
    is_product = torch.allclose(weights, left * right, rtol=1e-3, atol=1e-4)
    return bool(is_less.any()) and is_product and not bool((is_less & ~extreme_rows(evidence)).any())


def rows_emptied(evidence: Evidence) -> bool | None:
    """Whether every row with a hidden key is 0, and each other one 0 or right; None where extreme scores can do that
    too."""
    mask = evidence.arguments[3]
    if mask is None or (both := both_weights(evidence)) is None:
        return False
    weights, right = both
    has_hidden = ~mask.expand(right.shape).all(-1)
    if bool((has_hidden & (right > 0).any(-1) & extreme_rows(evidence)[..., 0]).any()):
        return None
    is_empty, is_right = (weights == 0).all(-1), torch.isclose(weights, right, rtol=1e-2, atol=3e-3).all(-1)
    return bool(is_empty[has_hidden].all() and (is_empty | is_right).all())


RIGHT = answer("""
    def masked_attention(Q, K, V, mask):
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float('-inf'))
        weights = torch.softmax(scores, dim=-1)
        weights = torch.nan_to_num(weights)
        return weights @ V, weights
""")
HIDE = "scores = scores.masked_fill(~mask, float('-inf'))"
WEIGHTS, NAN = "weights = torch.softmax(scores, dim=-1)", "weights = torch.nan_to_num(weights)"
AFTER = """
    if mask is not None:
        weights = weights * mask
"""


def hides_by(constant: str) -> str:
    """The answer that masks scores with a constant."""
    return RIGHT.but("float('-inf')", constant).without(NAN)


# fmt: off
NOT_LOW_ENOUGH = Family("minus ten thousand added", """-10,000 is not low enough: where the allowed scores are near
    -20,000, the hidden keys have larger scores and take the weight. If you set their weights to 0 after the softmax,
    nothing is left. Use minus infinity.""")
# fmt: on

EXERCISE = Exercise(
    id="masked-attention", number="08.4", difficulty=3, minutes=30, visible_points=2, hidden_points=6,
    reference=masked_attention, section=SCORES, forbidden=FUSED,
    omits={"precision": "a share has the same seven digits in either precision"},
    probes=(
        visible("four words, causal", Case((RUNNING, RUNNING, RUNNING, PAST), WORDS),
                laws=(Law("hidden words get exactly 0", hidden_is_zero),)),
        visible("2 sentences, 3 heads, 4 queries, 5 keys", inputs, 2, 3, 4, 5, 6, 7),
        visible("a query without any allowed key", with_a_blind_word()),
        visible("scores around -200", low_scores),
        visible("scores around -20,000", very_low_scores),
        visible("float16", half, rtol=1e-2, atol=3e-3),
        hidden("other sizes", inputs, 3, 2, 5, 7, 4, 6, announced_by=PROMISED),
        hidden("one sentence, one head, one query", inputs, 1, 1, 1, 4, 3, 2, announced_by=PROMISED),
        hidden("a mask of two axes", causal, announced_by="broadcasts to (B, h, Tq, Tk)"),
        hidden("a mask for each head", for_each_head, announced_by="broadcasts to (B, h, Tq, Tk)"),
        hidden("pads hidden, and scores of a million", large_scores, announced_by="broadcasts to (B, h, Tq, Tk)"),
        hidden("no mask", no_mask, announced_by="None allows everything"),
        hidden("what is hidden does not matter", poisoned, announced_by="even if they hold a million"),
        hidden("no allowed key", nobody, announced_by="A query **without any allowed key** gets zeros"),
        hidden("no allowed key, in float16", nobody, dtype=torch.float16, rtol=1e-2, atol=3e-3,
               announced_by="float16 input gives float16 output"),
        hidden("no allowed key, gradients", nobody, dtype=torch.float64, checks=GRADIENTS,
               announced_by="no gradient is NaN"),
        hidden("float64, transposed in memory", turned_in_memory, announced_by=PROMISED),
        second_call(inputs, 2, 3, 4, 5, 4, 5),
    ),
    mistakes=(
        mistake("mask after the softmax", RIGHT.but(HIDE, "pass").after(WEIGHTS, AFTER), SCORES,
            """The hidden weights were set to 0 *after* the softmax. Their part is lost, so the rows no longer sum to 1,
            and how much is lost depends on the words that should be hidden. Hide the scores, before the
            softmax.""", quotes=row_sums),
        mistake("scores times the mask", RIGHT.but(HIDE, "scores = scores * mask"), SCORES,
            """The hidden scores became 0, or next to it: a product with the mask, a fill with 0 or with -1e-9 (which is
            almost 0, not minus a billion) all do that. A score of 0 is an ordinary score: its exponential is 1. Only
            minus infinity becomes a weight of 0.""", quotes=first_row),
        mistake("the wrong way round", RIGHT.but("~mask", "mask"), CONVENTION,
            """You kept exactly what should be hidden. Here, as in F.scaled_dot_product_attention, True = may attend;
            nn.MultiheadAttention means the opposite.""", quotes=first_row),
        mistake("the wrong way round, and NaN", RIGHT.but("~mask", "mask").without(NAN), CONVENTION,
            """You kept exactly what should be hidden: here True = may attend. And a query for which nothing is left is
            NaN, where it should get zeros."""),
        mistake("the mask added", RIGHT.but(HIDE, "scores = scores + mask"), SCORES,
            """The mask was added to the scores as it is. True counts as 1 there and False as 0, so hidden words are
            only a little less likely. Only minus infinity hides a score.""", quotes=first_row),
        mistake("always causal", RIGHT.but("~mask", "~torch.ones(scores.shape[-2:]).tril().bool()"), SCORES,
            "Your code makes a causal mask of its own. Use the mask that it is given, whatever that hides."),
        mistake("mask ignored", RIGHT.but(HIDE, "pass"), SCORES,
            """The mask was not used: every word attends to every other, including the future. (masked_fill returns a
            new tensor: its result has to be kept.)""", quotes=first_row),
        mistake("minus a hundred", hides_by("-100.0"), CONSTANTS,
            """Your constant is -100 or so. Scores of -200 occur, and beat it: then the hidden words get everything. Use
            minus infinity, or the least number that the dtype has."""),
        mistake("minus ten thousand", hides_by("-1e4"), CONSTANTS,
            """Your constant is -10,000 or so. Scores below it are rare, but a model can learn them, and the weights of
            a query without any allowed key then go to forbidden ones. Use minus infinity, or the least number that the
            dtype has."""),
        NOT_LOW_ENOUGH(RIGHT.but(HIDE, "scores = scores - 1e4 * (~mask).to(scores.dtype)").but(NAN, """
            if mask is not None:
                weights = weights * mask.any(dim=-1, keepdim=True)
        """), CONSTANTS),
        NOT_LOW_ENOUGH(hides_by("-1e4").after(WEIGHTS, AFTER), CONSTANTS, name="minus ten thousand, then zeros"),
        mistake("minus a billion", hides_by("-1e9"), NOBODY,
            """A query without any allowed key weights all forbidden words equally, since all its scores are the same
            constant. Its weights should be zeros, and its output too. And float16 ends at 65,504: there -1e9 is an
            error."""),
        mistake("the least number of the dtype", hides_by("torch.finfo(scores.dtype).min"), NOBODY,
            """The weights of a query without any allowed key are spread evenly over the forbidden words. That happens
            where all its scores are the same number, such as the least one, and where a NaN is replaced by 1 / Tk. The
            weights should be zeros, and the output too."""),
        mistake("not a number", RIGHT.without(NAN), NOBODY,
            """A query without any allowed key has only scores of minus infinity, so its softmax is 0/0, which is NaN.
            Its weights should be zeros, and its output too."""),
        mistake("added minus infinity",
                RIGHT.but(HIDE, "scores = scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, "
                                "float('-inf'))"),
            NOBODY, """The output is right, but its gradient is not. Was minus infinity *added*? Then the NaN of a
            query without any allowed key flows back through the softmax into Q and K. Filling (masked_fill, where) cuts
            that way; adding does not. Or was a gradient cut off, with .detach(), .data or no_grad?"""),
        mistake("softmax over the queries", RIGHT.but("dim=-1", "dim=-2"), AXIS,
            "The softmax ran over the queries. The weights of each query sum to 1 over its *keys*, the last axis.",
            quotes=row_sums),
        mistake("no scaling", RIGHT.but(" / Q.shape[-1] ** 0.5", ""), SCORES,
            "The division by the root of d_k is missing, so your weights are too sharp."),
        mistake("divided by d_k", RIGHT.but("Q.shape[-1] ** 0.5", "Q.shape[-1]"), SCORES,
            "The scores were divided by d_k itself, not by its root, so your weights are too flat."),
        mistake("divided by the root of the number of keys", RIGHT.but("Q.shape[-1]", "K.shape[-2]"), SCORES,
            "The scores were divided by the root of the number of keys. The width d_k makes them large."),
        mistake("mask turned",
                RIGHT.but("~mask", "~mask.transpose(-2, -1)").but("if mask is not None:",
                    "if mask is not None and (mask.shape[-1] == mask.shape[-2] or True):"), AXIS,
            "Queries and keys of the mask are exchanged. Its last axis runs over the keys, as that of "
            "the scores does."),
        mistake("values hidden instead", RIGHT.but(HIDE, "V = V.masked_fill(~mask.any(dim=-2).unsqueeze(-1), 0.0)"),
                SCORES,
            """The *values* of hidden words were set to 0. They still take their weights, which are then lost. Hide the
            scores."""),
        mistake("shares renormalized without care", RIGHT.but(HIDE, "pass").without(NAN).after(WEIGHTS, """
            if mask is not None:
                weights = weights * mask
                weights = weights / weights.sum(dim=-1, keepdim=True)
        """), NOBODY, """Hiding weights and dividing by the sum of the others is right, except where nothing is left:
            0/0 is NaN, for a query without any allowed key, and where all allowed weights are too small for a
            float."""),
        mistake("the output's row not emptied", RIGHT.but(NAN, """
            mean = weights.nan_to_num(1 / weights.shape[-1])
            weights = weights.nan_to_num()
        """).but("weights @ V, weights", "mean @ V, weights"), NOBODY,
            """The weights of a query without any allowed key are 0, but its output is a mean of all values. It should
            be 0 too."""),
        families.WEIGHTS_NOT_RETURNED(RIGHT.but("weights @ V, weights", "weights @ V"), SCORES, result="mixture"),
        mistake("weights first", RIGHT.but("weights @ V, weights", "weights, weights @ V"), SCORES,
            "The pair is the wrong way round: the mixture comes first, then the weights."),
        mistake("a mask is needed", RIGHT.but("if mask is not None:", "if True:"), SCORES,
            "Your code stops when mask is None. None means that every query may attend to every key."),
        mistake("the scores came back", RIGHT.but("weights @ V, weights", "weights @ V, scores"), SCORES,
            "The second of the pair is the table of scores. It should be the weights, after the softmax."),
        mistake("only the output cleaned",
                RIGHT.without(NAN).but("weights @ V, weights", "torch.nan_to_num(weights @ V), weights"), NOBODY,
            """The output of a query without any allowed key is 0, but its weights came back as NaN. Clean the weights;
            the output follows from them."""),
        mistake("NaN overwritten in place", RIGHT.but(NAN, "weights[torch.isnan(weights)] = 0.0"), NOBODY,
            """The numbers are right, but no gradient can be computed: your code writes into a tensor that already
            exists. That may be an argument, such as V, or the softmax's own result, which its gradient still needs.
            Make a new tensor instead (nan_to_num, where, masked_fill)."""),
        mistake("scores picked by the mask", RIGHT.but(HIDE, "scores[~mask] = float('-inf')"), SCORES,
            """Picking by a mask in brackets needs a mask of the scores' own shape, and this one is smaller: it only
            *broadcasts* to (B, h, Tq, Tk). masked_fill and where broadcast."""),
        in_place("Q", RIGHT.but("Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5",
                                "Q.div_(Q.shape[-1] ** 0.5) @ K.transpose(-2, -1)"), SCORES),
        mistake("divided by the root of d_v", RIGHT.but("Q.shape[-1]", "V.shape[-1]"), SCORES,
            """The scores were divided by the root of d_v, the width of the values. They are products of queries and
            keys: their width is d_k."""),
        mistake("infinity times the mask", RIGHT.but(HIDE, "scores = scores + ~mask * float('-inf')").without(NAN),
                SCORES,
            """With a mask every weight is NaN. Was the mask multiplied by infinity? Where it is 0, the product is NaN,
            and the softmax spreads it over the whole row. Fill in minus infinity; do not multiply by it."""),
        mistake("plus infinity", RIGHT.but("'-inf'", "'inf'"), SCORES,
            """Every query with a hidden key got zeros, perhaps because its softmax was NaN, and NaN became 0. Was the
            mask multiplied by infinity? 0 times infinity is NaN. Or are the hidden scores *plus* infinity? Softmax
            subtracts the largest score, and infinity minus infinity is not a number. Only minus infinity becomes a
            weight of 0: fill it in.""", shows=rows_emptied),
        mistake("a small number added to the sum", RIGHT.but(HIDE, "pass").without(NAN).after(WEIGHTS, """
            if mask is not None:
                weights = weights * mask
                weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-6)
        """), NOBODY,
            """Rows whose allowed scores are very low came out as 0, or as too small: their exponentials were too small
            for a float, or next to nothing in a sum. Which of these is yours? A softmax over *all* scores, hidden ones
            too, whose weights are then set to 0 and divided by the sum of the rest: it subtracts the largest score of
            the row, which may be a hidden one. A constant for the hidden scores that is not low enough. Exponentials
            of the scores as they are, with no maximum subtracted. A small constant, such as 1e-6, added to the sum.
            The largest *allowed* score is the one to subtract: hide scores before the softmax.""",
            shows=rows_too_small),
        *usual_mistakes(RIGHT, detached=SCORES, float32=SCORES, squeezed=SCORES),
    ),
    correct=(
        correct("fill, softmax, nan_to_num", RIGHT),
        correct("a billion, then times the mask",
                RIGHT.but("float('-inf')", "-1e9 if scores.dtype != torch.float16 else -6e4").but(NAN, AFTER)),
        correct("the least number, then times the mask", """
            def masked_attention(Q, K, V, mask):
                s = torch.einsum('...qd,...kd->...qk', Q, K) / math.sqrt(K.size(-1))
                if mask is None:
                    w = s.softmax(-1)
                else:
                    w = torch.where(mask, s, torch.finfo(s.dtype).min).softmax(-1) * mask
                return torch.einsum('...qk,...kv->...qv', w, V), w
        """),
        correct("blind rows shown all, then emptied", """
            def masked_attention(Q, K, V, mask):
                scores = (Q / Q.shape[-1] ** 0.5) @ K.mT
                if mask is None:
                    mask = torch.ones(scores.shape, dtype=torch.bool)
                blind = ~mask.any(-1, keepdim=True)
                weights = scores.masked_fill(~(mask | blind), -float('inf')).softmax(dim=-1)
                weights = weights.masked_fill(blind, 0)
                return weights @ V, weights
        """),
        correct("exponentials by hand", """
            def masked_attention(Q, K, V, mask):
                scores = Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5
                if mask is None:
                    mask = torch.ones_like(scores, dtype=torch.bool)
                mask = mask.expand_as(scores)
                lowest = torch.finfo(scores.dtype).min
                top = scores.masked_fill(~mask, lowest).amax(-1, keepdim=True).detach()
                e = torch.exp(torch.where(mask, scores - top, torch.full_like(scores, lowest))) * mask
                total = e.sum(-1, keepdim=True)
                weights = e / torch.where(total > 0, total, torch.ones_like(total))
                return weights @ V, weights
        """),
        correct("loops over sentences and heads", """
            def masked_attention(Q, K, V, mask):
                B, h, Tq, d = Q.shape
                Tk = K.shape[2]
                full = torch.ones(B, h, Tq, Tk, dtype=torch.bool) if mask is None else mask.expand(B, h, Tq, Tk)
                outs, tables = [], []
                for b in range(B):
                    for i in range(h):
                        scores = (Q[b, i] @ K[b, i].T / d ** 0.5).masked_fill(~full[b, i], -torch.inf)
                        table = torch.nan_to_num(torch.softmax(scores, -1), nan=0.0)
                        tables.append(table)
                        outs.append(table @ V[b, i])
                return torch.stack(outs).view(B, h, Tq, -1), torch.stack(tables).view(B, h, Tq, Tk)
        """),
    ),
    hints=(
        "which score becomes a weight of exactly 0? And what happens to a row that has only such scores?",
        "scores (B, h, Tq, Tk); the mask broadcasts to them; weights have the same shape, the output is "
        "(B, h, Tq, d_v).",
        "scores as in 05.2; minus infinity where the mask is False; softmax over the keys; rows of NaN become 0; mix "
        "the values.",
    ),
)  # fmt: skip
