"""16.2: attention with its products grouped differently, whose cost grows with the text and not with its square."""

from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.ch16_efficient.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import JudgedParts
from autograder.catalogue.probes import FAR, UNTOUCHED, hidden, normal, second_call, turned, usual_probes, visible
from autograder.catalogue.quotes import wrong_row
from autograder.inside.fixtures.base import Growth
from transformer_ref.beyond import efficient

BRACKETS, PHI, STEPS = sections("brackets phi rnn")
AS_N = "it grows like n"
AS_SQUARE = Remark("the work grows like n times n; it should grow like n")
UNSEEN = Remark("torch saw hardly any of the work; it should be done by torch's operations")
SEEN = 3.2  # entries counted for each input entry: phi alone makes 2.5, an answer computed with torch at least 4.5
LINEAR = 3.0  # twice the words are twice the work in a linear answer, and four times as much in a square one


def linear_attention(Q: Tensor, K: Tensor, V: Tensor, causal: bool) -> Tensor:
    """phi(Q) (phi(K)^T V), each row divided by its sum of weights."""
    return efficient.linear_attention(Q, K, V, causal)


def inputs(g: torch.Generator, B: int, Tq: int, Tk: int, d_k: int, d_v: int, causal: bool = False,
           dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, Tq, d_k, dtype=dtype), normal(g, B, Tk, d_k, dtype=dtype),
                 normal(g, B, Tk, d_v, dtype=dtype), causal))


def in_order(g: torch.Generator, B: int, T: int, d_k: int, d_v: int, dtype: torch.dtype = torch.float32) -> Case:
    return inputs(g, B, T, T, d_k, d_v, True, dtype)


def far_away(g: torch.Generator, causal: bool) -> Case:
    """Values whose difference float32 loses; weights so large that a usual epsilon has no effect on them."""
    Q, K, V, _ = inputs(g, 2, 6, 6, 4, 3, dtype=torch.float64).arguments
    return Case(tuple(turned(each) for each in (Q.abs() * 1e6, K.abs() * 1e6, V + FAR)) + (causal,))


def no_negative(g: torch.Generator, causal: bool) -> Case:
    """Where all numbers are positive phi adds 1 and does nothing else; half of these are large."""
    Q, K, V, _ = inputs(g, 2, 5, 5, 3, 4).arguments
    return Case((Q.abs() * 6, K.abs() * 6, V, causal))


def very_negative(g: torch.Generator, causal: bool) -> Case:
    Q, K, V, _ = inputs(g, 2, 5, 5, 3, 4).arguments
    return Case(((-0.2 - Q.abs()).clamp(min=-2), (-0.2 - K.abs()).clamp(min=-2), V, causal))


def long(g: torch.Generator, T: int, d_k: int, d_v: int, causal: bool) -> Case:
    """One long sentence, for which it is counted how much an answer goes through."""
    return inputs(g, 1, T, T, d_k, d_v, causal)


def how_it_grows(case: Case, result: Any) -> Any:
    """Of a long sentence: the result, and whether twice the words make twice the work or four times as much."""
    if case.arguments[1].shape[-2] < Growth.LONG or not isinstance(result, dict) or set(result) != {"result",
        "numbers"}:
        return _without_its_axis(case, result)
    half, whole = result["numbers"]
    if whole < SEEN * sum(given.numel() for given in case.arguments[:3]):
        grows = UNSEEN
    else:
        grows = AS_N if whole < LINEAR * half else AS_SQUARE
    return JudgedParts({"result": result["result"], "work": grows}, {"numbers": (half, whole)})


def _without_its_axis(case: Case, result: Any) -> Any:
    """A remark instead of what comes out where the sums that are divided by lost their last axis and met the wrong
    one; else the result."""
    Q, K, V, causal = case.arguments
    if not isinstance(result, Tensor) or result.shape == (*Q.shape[:2], V.shape[2]) or len(Q) > 1:
        return result
    table = (torch.nn.functional.elu(Q) + 1) @ (torch.nn.functional.elu(K) + 1).mT
    table = table.tril() if causal else table
    sums, mixed = table.sum(dim=-1), table @ V
    if mixed.shape[-1] not in (1, sums.shape[-1]) or result.shape != torch.broadcast_shapes(mixed.shape, sums.shape):
        return result
    if not _near(result, mixed / sums):
        return result
    return Remark(
        f"shape {tuple(mixed.shape)} is expected, and {tuple(result.shape)} came back: the sums that you divide by "
        f"have the shape {tuple(sums.shape)}, without an axis for the values"
    )


def square(evidence: Evidence) -> bool:
    """Whether the work grows with the square, in a right result."""
    return _right_with(evidence, AS_SQUARE)


def unseen(evidence: Evidence) -> bool:
    """Whether torch saw too little for the whole of the work, in a right result."""
    return _right_with(evidence, UNSEEN)


def _right_with(evidence: Evidence, work: str) -> bool:
    got, wanted = evidence.got, evidence.expected
    return bool(
        isinstance(got, JudgedParts)
        and got["work"] == work
        and isinstance(got["result"], Tensor)
        and torch.allclose(got["result"].double(), wanted["result"].double(), rtol=1e-3, atol=1e-4)
    )


def work(evidence: Evidence) -> str:
    """How many numbers were gone through for half the sentence and for all of it."""
    n, (half, whole) = evidence.arguments[1].shape[-2], evidence.got.told["numbers"]
    return (
        f"For {n // 2} words your code goes through {half:,} numbers, for {n} words through {whole:,}: "
        f"{whole / half:.1f} times as many."
    )


def rows(evidence: Evidence) -> str:
    """The first word that differs, with the sizes of its check: the report shows the row that differs most."""
    queries, keys = (given.shape[-2] for given in evidence.arguments[:2])
    said = wrong_row(evidence, "word", most=5)
    return f"With {queries} queries and {keys} keys {said[0].lower()}{said[1:]}"


def matches(evidence: Evidence, *results: Tensor) -> bool:
    """Whether the result is one of these, and not the correct one."""
    got, wanted = (each["result"] if isinstance(each, dict) else each for each in (evidence.got, evidence.expected))
    if not isinstance(got, Tensor) or got.shape != wanted.shape or _near(got, wanted):
        return False
    return any(_near(got, each) for each in results)


def _near(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one.double(), other.double(), rtol=1e-3, atol=1e-4)


def of_two_softmaxes(evidence: Evidence) -> bool:
    """Whether there is a softmax of the queries along the features and one of the keys along the words, divided by the
    sum of the weights so far or not."""
    Q, K, V, causal = evidence.arguments
    q, k = Q.softmax(dim=-1), K.softmax(dim=-2)
    if not causal:
        return matches(evidence, q @ (k.mT @ V))
    table = (q @ k.mT).tril()
    return matches(evidence, table @ V, table @ V / table.sum(dim=-1, keepdim=True))


def own_key_alone(evidence: Evidence) -> bool:
    """Whether both sums, or one of them, hold only the key of the word itself, where causal is True."""
    return bool(evidence.arguments[3]) and matches(evidence, *_with_its_own_key(evidence))


def whose_key(evidence: Evidence) -> str:
    """Which of the two sums holds only the key of the word itself."""
    both, state, total = (matches(evidence, each) for each in _with_its_own_key(evidence))
    if both:
        return "With causal = True each word gets its own value back: both sums hold only its own key."
    if state:
        return "With causal = True the sum of phi(k) times v holds only the word's own key; the other sum is right."
    return "With causal = True the sum of phi(k) holds only the word's own key; the other sum is right." * total


def _with_its_own_key(evidence: Evidence) -> tuple[Tensor, Tensor, Tensor]:
    """The results with only its own key in both sums, in the sum of values, and in the sum that is divided by."""
    Q, K, V, _ = evidence.arguments
    asked, keys = (torch.nn.functional.elu(each) + 1 for each in (Q, K))
    own, table = (asked * keys).sum(dim=-1, keepdim=True), (asked @ keys.mT).tril()
    return V, own * V / table.sum(dim=-1, keepdim=True), table @ V / own


# phi: queries (1, 1), (2, 1), (1, 2); keys (1, 2), (2, 1), (3, 1) with values 1, 3, 5. The state is (22, 10), the sum
# (6, 4).
THREE = tuple(torch.tensor([each]) for each in (
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]], [[1.0], [3.0], [5.0]],
))  # fmt: skip

RIGHT = answer("""
    def linear_attention(Q, K, V, causal):
        asked = F.elu(Q) + 1
        keys = F.elu(K) + 1
        if causal:
            pairs = keys[..., :, None] * V[..., None, :]
            state = torch.cumsum(pairs, dim=-3)
            total = torch.cumsum(keys, dim=-2)
            mixed = (asked[..., None, :] @ state).squeeze(-2)
            shares = (asked * total).sum(dim=-1, keepdim=True)
            return mixed / shares
        state = keys.transpose(-2, -1) @ V
        total = keys.sum(dim=-2, keepdim=True)
        mixed = asked @ state
        shares = (asked * total).sum(dim=-1, keepdim=True)
        return mixed / shares
""")
ASKED, KEYS = "asked = F.elu(Q) + 1", "keys = F.elu(K) + 1"
PAIRS, STATE_SO_FAR, TOTAL_SO_FAR = (
    "pairs = keys[..., :, None] * V[..., None, :]", "state = torch.cumsum(pairs, dim=-3)",
    "total = torch.cumsum(keys, dim=-2)",
)  # fmt: skip
MIXED = "mixed = asked @ state"
STATE, TOTAL = "state = keys.transpose(-2, -1) @ V", "total = keys.sum(dim=-2, keepdim=True)"
TABLE = answer("""
    def linear_attention(Q, K, V, causal):
        asked = F.elu(Q) + 1
        keys = F.elu(K) + 1
        table = asked @ keys.transpose(-2, -1)
        if causal:
            table = table.tril()
        return table @ V / table.sum(dim=-1, keepdim=True)
""")
BY_TABLE = "return table @ V / table.sum(dim=-1, keepdim=True)"
ONE_BY_ONE = answer("""
    def linear_attention(Q, K, V, causal):
        phi = lambda x: F.elu(x) + 1
        B, T, dk = K.shape
        state = V.new_zeros(B, dk, V.shape[-1])
        total = V.new_zeros(B, dk)
        out = []
        if causal:
            for t in range(T):
                k, q = phi(K[:, t]), phi(Q[:, t])
                state = state + k[:, :, None] * V[:, t][:, None, :]
                total = total + k
                out.append((q[:, :, None] * state).sum(dim=1) / (q * total).sum(dim=1, keepdim=True))
            return torch.stack(out, dim=1)
        for t in range(T):
            state = state + phi(K[:, t])[:, :, None] * V[:, t][:, None, :]
            total = total + phi(K[:, t])
        for t in range(Q.shape[1]):
            q = phi(Q[:, t])
            out.append((q[:, :, None] * state).sum(dim=1) / (q * total).sum(dim=1, keepdim=True))
        return torch.stack(out, dim=1)
""")


NO_SHARES = RIGHT.but("return mixed / shares\n    state", "return mixed\n    state").but(
    "keepdim=True)\n    return mixed / shares", "keepdim=True)\n    return mixed")
COUNTED = NO_SHARES.but("return mixed\n    state",
                        "return mixed / torch.arange(1, K.shape[-2] + 1, dtype=V.dtype)[:, None]\n    state").but(
    "mixed = asked @ state\n", "mixed = asked @ state / K.shape[-2]\n")

EXERCISE = Exercise(
    id="linear-attention", number="16.2", difficulty=3, minutes=35, visible_points=2, hidden_points=4,
    reference=linear_attention, normalize=how_it_grows, harness="growth", section=BRACKETS, quotes=rows, seconds=60.0,
    probes=(
        visible("three words by hand", Case((*THREE, False)), rtol=1e-3),
        visible("the same, each sees itself and those before", Case((*THREE, True)), rtol=1e-3),
        visible("4 queries, 6 keys, negative numbers too", inputs, 2, 4, 6, 3, 5),
        visible("400 words", long, 400, 3, 2, False),
        visible("400 words, causal", long, 400, 3, 2, True),
        *usual_probes(inputs, other=(3, 5, 7, 4, 6), smallest=(1, 1, 4, 1, 3), common=(2, 4, 7, 5, 3)),
        hidden("causal, other sizes", in_order, 3, 6, 4, 5, announced_by="word i sees the keys 0 to i"),
        hidden("causal, one word", in_order, 1, 1, 3, 4, announced_by="word i sees the keys 0 to i"),
        hidden("causal, gradients", in_order, 2, 5, 4, 3, dtype=torch.float64, checks="gradients",
               announced_by="Gradients flow"),
        hidden("values far from 0", far_away, False, rtol=0.0, announced_by="computed in it"),
        hidden("causal, values far from 0", far_away, True, rtol=0.0, announced_by="computed in it"),
        hidden("positive numbers", no_negative, False, announced_by="of either sign"),
        hidden("negative numbers", very_negative, True, announced_by="of either sign"),
        hidden("a longer text", long, 520, 2, 3, False, announced_by="grow as n does"),
        hidden("a longer text, causal", long, 520, 2, 3, True, announced_by="grow as n does"),
        second_call(in_order, 2, 5, 4, 3, name="causal, a second call", checks=UNTOUCHED),
    ),
    mistakes=(
        mistake("the root of d_k", RIGHT.but(ASKED, "asked = F.elu(Q / Q.shape[-1] ** 0.5) + 1"), PHI,
            """The queries were divided by the root of d_k first, as chapter 05 does. Here nothing is divided by a root:
            phi takes numbers as they are."""),
        mistake("the root of d_k in queries and keys",
                RIGHT.but(ASKED, "asked = F.elu(Q / Q.shape[-1] ** 0.25) + 1").but(
                  KEYS, "keys = F.elu(K / K.shape[-1] ** 0.25) + 1"), PHI,
            "Queries and keys were made smaller by a root first, as chapter 05 does. Here nothing is "
            "divided by a root."),
        mistake("no normalizer", NO_SHARES, BRACKETS,
            """The result was not divided by the sum of the weights. Softmax makes the weights of every row sum to 1;
            phi does not, so divide by the sum of the row: phi(q) times the sum of all phi(k)."""),
        mistake("no normalizer where it is causal",
                RIGHT.but("return mixed / shares\n    state", "return mixed\n    state"), STEPS,
            "Where causal is True the result was not divided by the sum of the weights: phi(q) times the sum of phi(k) "
            "so far."),
        mistake("divided by the number of keys", COUNTED, BRACKETS,
            "You divided by the number of keys. Weights differ from key to key: divide by their sum, phi(q) times the "
            "sum of phi(k)."),
        mistake("phi missing", RIGHT.but(ASKED, "asked = Q").but(KEYS, "keys = K"), PHI,
            """phi is missing: weights are plain dot products, and some are negative, so their sum may be near 0 and the
            result anything. phi makes every number positive."""),
        mistake("phi on the queries alone", RIGHT.but(KEYS, "keys = K"), PHI,
            "phi was applied to the queries and not to the keys, so weights can be negative."),
        mistake("phi on the keys alone", RIGHT.but(ASKED, "asked = Q"), PHI,
            "phi was applied to the keys and not to the queries, so weights can be negative."),
        mistake("phi on the values too", RIGHT.before(KEYS, "V = F.elu(V) + 1"), PHI,
            "phi was applied to the values as well. They are what is mixed, and stay as they are."),
        mistake("elu without the 1", RIGHT.but(ASKED, "asked = F.elu(Q)").but(KEYS, "keys = F.elu(K)"), PHI,
            "Your features are elu without the + 1, so they go down to -1: weights can be negative or cancel."),
        mistake("relu in place of phi", RIGHT.but(ASKED, "asked = F.relu(Q)").but(KEYS, "keys = F.relu(K)"), PHI,
            "Negative numbers became 0, as with ReLU. Then all weights of a query may be 0, and 0 / 0 is NaN. phi "
            "is elu + 1, never 0."),
        mistake("relu plus 1", RIGHT.but(ASKED, "asked = F.relu(Q) + 1").but(KEYS, "keys = F.relu(K) + 1"), PHI,
            "All negative numbers became 1, as with ReLU + 1. elu + 1 is e to the x below 0, so that -1 and -2 "
            "still differ."),
        mistake("exp in place of phi", RIGHT.but(ASKED, "asked = Q.exp()").but(KEYS, "keys = K.exp()"), PHI,
            "Your features are exponentials throughout. elu + 1 is e to the x only below 0; above it is x + 1."),
        mistake("softplus in place of phi", RIGHT.but(ASKED, "asked = F.softplus(Q)").but(KEYS, "keys = F.softplus(K)"),
                PHI,
            "Your features are softplus. It is positive too, but the phi of this exercise is elu + 1."),
        mistake("a softmax as features",
                RIGHT.but(ASKED, "asked = Q.softmax(dim=-1)").but(KEYS, "keys = K.softmax(dim=-1)"), PHI,
            "There is a softmax over the features instead of phi. phi looks at each number by itself: elu + 1."),
        mistake("two softmaxes",
                RIGHT.but(ASKED, "asked = Q.softmax(dim=-1)").but(KEYS, "keys = K.softmax(dim=-2)").but(
                  "keepdim=True)\n    return mixed / shares", "keepdim=True)\n    return mixed"), PHI,
            """There is a softmax of the queries along the features and one of the keys along the words instead of phi.
            That is linear attention of another paper (Shen et al. 2018). Here phi looks at each number by itself: elu +
            1.""", shows=of_two_softmaxes),
        mistake("phi of the scores", TABLE.but(ASKED, "asked = Q").but(KEYS, "keys = K").but(
                  "table = asked @ keys.transpose(-2, -1)", "table = F.elu(asked @ keys.transpose(-2, -1)) + 1"),
                  BRACKETS,
            """phi was applied to the scores, after queries met keys. Then it is where the softmax was, and the
            brackets cannot be moved: apply it to queries and to keys, before they meet."""),
        mistake("elu of x + 1", RIGHT.but(ASKED, "asked = F.elu(Q + 1)").but(KEYS, "keys = F.elu(K + 1)"), PHI,
            "The 1 was added before elu, not after it: elu(x + 1) is x + 1 too where x is positive, but below -1 it "
            "is negative."),
        mistake("divided by the sum of its own numbers",
                answer(RIGHT.replace("mixed / shares", "mixed / mixed.sum(dim=-1, keepdim=True)")), BRACKETS,
            """Each result was divided by the sum of its own dv numbers. Divide by the sum of the weights instead:
            phi(q) times the sum of phi(k)."""),
        mistake("divided by the features of the query",
                answer(RIGHT.replace("mixed / shares", "mixed / asked.sum(dim=-1, keepdim=True)")), BRACKETS,
            "Each result was divided by the sum of the query's features. The keys belong to it: phi(q) times the sum "
            "of phi(k)."),
        mistake("divided by the features of the keys",
                answer(RIGHT.replace("mixed / shares", "mixed / total.sum(dim=-1, keepdim=True)")), BRACKETS,
            "Each result was divided by the sum of the keys' features. The query belongs to it: phi(q) times the sum "
            "of phi(k)."),
        mistake("softmax attention", """
            def linear_attention(Q, K, V, causal):
                scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
                if causal:
                    scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
                return scores.softmax(dim=-1) @ V
            """, BRACKETS,
            """That is chapter 05's attention, with softmax and the table. The softmax is between Q K^T and V, so the
            brackets cannot be moved: put phi on both sides in its place."""),
        mistake("softmax without the root", """
            def linear_attention(Q, K, V, causal):
                scores = Q @ K.transpose(-2, -1)
                if causal:
                    scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
                return scores.softmax(dim=-1) @ V
            """, BRACKETS,
            """That is attention with a softmax and the table. The softmax is between Q K^T and V, so the brackets
            cannot be moved: put phi on both sides in its place."""),
        mistake("softmax after phi",
                TABLE.but("table = asked @ keys.transpose(-2, -1)", "table = (asked @ keys.transpose(-2, -1)).exp()"),
                BRACKETS,
            "phi was applied, and then a softmax over the table. phi replaces the exponential; it does not come "
            "before it."),
        mistake("cumulative sum off by one", RIGHT.but(STATE_SO_FAR, "state = torch.cumsum(pairs, dim=-3) - pairs").but(
                  TOTAL_SO_FAR, "total = torch.cumsum(keys, dim=-2) - keys"), STEPS,
            """Word i sees only the words before it: its own key and value are missing from the running sums, so the
            first word has nothing to divide by. It sees itself too."""),
        mistake("off by one, beside an epsilon",
                RIGHT.but(STATE_SO_FAR, "state = torch.cumsum(pairs, dim=-3) - pairs").but(
                  TOTAL_SO_FAR, "total = torch.cumsum(keys, dim=-2) - keys").but("mixed / shares\n    state",
                      "mixed / (shares + 1e-6)\n    state"), STEPS,
            """Word i sees only the words before it: its own key and value are missing from the running sums. For the
            first word both sums are 0, and something small that you divide by keeps that from showing. It sees itself
            too."""),
        mistake("a mask on the state", RIGHT.but("if causal:", "if False:").but(
                  STATE, "state = keys.transpose(-2, -1) @ V\n    state = state.tril() if causal else state"), STEPS,
            """The mask was applied to phi(K)^T V. That table is d_k by d_v and has no axis of words: all of them are
            summed up in it. Stop the sum at word i instead."""),
        mistake("a running sum of the results", RIGHT.but("if causal:", "if False:").but(MIXED,
                  "mixed = asked @ state\n    mixed = mixed.cumsum(dim=-2) if causal else mixed").but(
                  "shares = (asked * total).sum(dim=-1, keepdim=True)\n    return",
                  "shares = (asked * total).sum(dim=-1, keepdim=True)\n    shares = shares.cumsum(dim=-2) if causal "
                  "else shares\n    return"), STEPS,
            """The running sum was taken over the queries' results, after all keys had been summed up. It is the sums
            over *keys* that stop at word i, before the query comes."""),
        mistake("the state off by one, the sum not",
                RIGHT.but(STATE_SO_FAR, "state = torch.cumsum(pairs, dim=-3) - pairs"), STEPS,
            "The running sum of values leaves out the word itself, while the sum that it is divided by holds it. Word "
            "i sees itself in both."),
        mistake("the sum off by one, the state not",
                RIGHT.but(TOTAL_SO_FAR, "total = torch.cumsum(keys, dim=-2) - keys"), STEPS,
            "What is divided by leaves out the word itself, while the running sum of values holds it. Word i sees "
            "itself in both."),
        mistake("the state one word ahead",
                RIGHT.but(STATE_SO_FAR, "state = torch.cumsum(pairs, dim=-3).roll(-1, dims=-3)").but(
                  TOTAL_SO_FAR, "total = torch.cumsum(keys, dim=-2).roll(-1, dims=-2)"), STEPS,
            "Each word used the sums as they are after the next word, so it sees one word of the future."),
        mistake("causal ignored", RIGHT.but("if causal:", "if False:"), STEPS,
            "With causal = True every word still sees all keys: sum only what has come so far."),
        mistake("always causal", RIGHT.but("if causal:", "if causal or Q.shape[-2] == K.shape[-2]:"), STEPS,
            "With causal = False words see only what comes before them. Then all keys count."),
        mistake("causal the wrong way round", RIGHT.but("if causal:", "if not causal:"), STEPS,
            "causal does the opposite of what it says: False masks, and True does not."),
        mistake("sums from the end", RIGHT.but(STATE_SO_FAR, "state = pairs.flip(-3).cumsum(dim=-3).flip(-3)").but(
                  TOTAL_SO_FAR, "total = keys.flip(-2).cumsum(dim=-2).flip(-2)"), STEPS,
            "The sums run from the end, so a word sees itself and what comes *after* it."),
        mistake("the sum of all keys where it is causal",
                RIGHT.but(TOTAL_SO_FAR, "total = keys.sum(dim=-2, keepdim=True)"), STEPS,
            "Where causal is True the values were summed up to word i, and then divided by the weights of *all* words. "
            "Both sums end at word i."),
        mistake("a running sum along the features", RIGHT.but(STATE_SO_FAR, "state = torch.cumsum(pairs, dim=-2)").but(
                  TOTAL_SO_FAR, "total = torch.cumsum(keys, dim=-1)"), STEPS,
            """Where causal is True a sum goes on from word to word. Yours is not carried over, as where a new key is
            written over what was there, or it runs along the features; words are the axis before.""",
            quotes=whose_key, shows=own_key_alone),
        mistake("sums over the batch",
                RIGHT.but(STATE, "state = (keys.transpose(-2, -1) @ V).sum(dim=0, keepdim=True)").but(
                  TOTAL, "total = keys.sum(dim=(0, -2), keepdim=True)"), BRACKETS,
            "The sums run over the sentences of the batch as well, so they see each other."),
        mistake("the divisor summed over the batch",
                RIGHT.but(TOTAL, "total = keys.sum(dim=(0, -2), keepdim=True)"), BRACKETS,
            """The sum that you divide by runs over the keys of all sentences of the batch, so with more than one
            sentence it is too large. Each sentence has its own: B sums of dk numbers."""),
        mistake("the mean of the keys in place of their sum",
                RIGHT.but(TOTAL, "total = keys.mean(dim=-2, keepdim=True)"), BRACKETS,
            """The denominator uses the *mean* of the keys, the numerator their sum: the result is too large by a factor
            of Tk."""),
        mistake("the features of a key made to sum to 1",
                RIGHT.after(KEYS, "keys = keys / keys.sum(dim=-1, keepdim=True)"), BRACKETS,
            "The features of each key were made to sum to 1, so no key can count more than another. The weights of a "
            "*query* sum to 1."),
        mistake("a little added to the sum", answer(RIGHT.replace("mixed / shares", "mixed / (shares + 1e-2)")),
                BRACKETS,
            "Something was added to what you divide by. phi is never 0, so nothing can go wrong there, and the weights "
            "no longer sum to 1."),
        mistake("wrong bracket",
                TABLE.but("table = asked @ keys.transpose(-2, -1)\n    if causal:\n        table = table.tril()",
                          "total = 0").but(BY_TABLE, """
                  if causal:
                      state = torch.cumsum(keys[..., :, None] * V[..., None, :], dim=-3)
                      total = torch.cumsum(keys, dim=-2)
                      return (asked[..., None, :] @ state).squeeze(-2) / (asked * total).sum(dim=-1, keepdim=True)
                  table = asked @ keys.transpose(-2, -1)
                  return table @ V / table.sum(dim=-1, keepdim=True)"""), BRACKETS,
            """The numbers are right, and so is phi, but where causal is False queries meet keys first: (phi(Q)
            phi(K)^T) V goes through every pair of words. Put the brackets around phi(K)^T V, which is d_k by d_v
            however long the text is.""",
            quotes=work, shows=lambda evidence: square(evidence) and not evidence.arguments[3]),
        mistake("causal via a mask on n by n",
                TABLE.but("table = asked @ keys.transpose(-2, -1)\n    if causal:\n        table = table.tril()",
                  "total = 0").but(BY_TABLE, """
                  if causal:
                      table = (asked @ keys.transpose(-2, -1)).tril()
                      return table @ V / table.sum(dim=-1, keepdim=True)
                  return asked @ (keys.transpose(-2, -1) @ V) / (asked @ keys.sum(dim=-2)[..., None])"""), STEPS,
            """The values are correct, but where causal is True your code goes through the text again for each word: in
            a table under a mask, in sums that start at the first word again, or with phi of all words in every step.
            Add up phi(k) times v from word to word instead, and phi(k) along with it; each word uses the sums so
            far.""",
            quotes=work,
            shows=lambda evidence: square(evidence) and evidence.arguments[3]),
        mistake("wrong bracket, and a mask", TABLE, BRACKETS,
            """The values are correct, but your code goes through every pair of words, in a table, row by row, or in
            sums that start again for each word. Put the brackets around phi(K)^T V, which is d_k by d_v however long
            the text is; where causal is True it is a running sum.""",
            quotes=work, shows=square),
        mistake("outside torch", """
            import numpy as np


            def linear_attention(Q, K, V, causal):
                asked, keys, values = (x.detach().numpy() for x in (Q, K, V))
                asked, keys = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (asked, keys))
                table = asked @ keys.swapaxes(-2, -1)
                if causal:
                    table = np.tril(table)
                return torch.from_numpy(table @ values / table.sum(axis=-1, keepdims=True))
            """, BRACKETS,
            """The numbers are right, but torch saw hardly any of the work: it was done in NumPy, in plain Python or in
            another thread, where it cannot be counted and where gradients end. Use torch's operations.""",
            shows=unseen),
        in_place("Q", RIGHT.before(ASKED, "F.elu_(Q)").but(ASKED, "asked = Q + 1"), PHI),
        *usual_mistakes(RIGHT, arguments="Q K V", detached=BRACKETS, float32=BRACKETS, single=BRACKETS,
                        squeezed=BRACKETS, viewed=BRACKETS),
    ),
    correct=(
        correct("running sums", RIGHT),
        correct("word by word", ONE_BY_ONE),
        correct("einsum", """
            def linear_attention(Q, K, V, causal):
                def phi(x):
                    return torch.where(x > 0, x + 1, torch.exp(torch.minimum(x, torch.zeros_like(x))))
                Q, K = phi(Q), phi(K)
                if not causal:
                    S, z = torch.einsum("bnd,bne->bde", K, V), K.sum(1)
                    return torch.einsum("bnd,bde->bne", Q, S) / torch.einsum("bnd,bd->bn", Q, z)[..., None]
                S = torch.einsum("bnd,bne->bnde", K, V).cumsum(1)
                Z = 1 / torch.einsum("bnd,bnd->bn", Q, K.cumsum(1))
                return torch.einsum("bnd,bnde,bn->bne", Q, S, Z)
        """),
        correct("a column of ones", """
            def linear_attention(Q, K, V, causal):
                phi = torch.nn.ELU()
                Q, K = phi(Q) + 1, phi(K) + 1
                V = torch.cat([V, torch.ones_like(V[..., :1])], dim=-1)
                if causal:
                    state = torch.cumsum(K.unsqueeze(-1) * V.unsqueeze(-2), 1)
                    both = torch.matmul(Q.unsqueeze(-2), state)[..., 0, :]
                else:
                    both = Q @ (K.mT @ V)
                return both[..., :-1] / both[..., -1:]
        """),
        correct("by chunks", """
            def linear_attention(Q, K, V, causal):
                Q, K = F.elu(Q) + 1, F.elu(K) + 1
                if not causal:
                    return (Q @ (K.transpose(1, 2) @ V)) / (Q @ K.sum(1).unsqueeze(-1))
                out, state, total = [], 0, 0
                for q, k, v in zip(Q.split(32, 1), K.split(32, 1), V.split(32, 1)):
                    near = torch.tril(q @ k.mT)
                    top = near @ v + q @ state if len(out) else near @ v
                    low = near.sum(-1, keepdim=True) + (q * total).sum(-1, keepdim=True)
                    out.append(top / low)
                    state, total = state + k.mT @ v, total + k.sum(1, keepdim=True)
                return torch.cat(out, 1)
        """),
        correct("sentence by sentence", """
            def linear_attention(Q, K, V, causal):
                results = []
                for q, k, v in zip(F.elu(Q) + 1, F.elu(K) + 1, V):
                    if causal:
                        S = torch.zeros(k.shape[1], v.shape[1], dtype=V.dtype)
                        z = torch.zeros(k.shape[1], dtype=V.dtype)
                        rows = []
                        for i in range(len(k)):
                            S = S + torch.outer(k[i], v[i])
                            z = z + k[i]
                            rows.append(q[i] @ S / (q[i] @ z))
                        results.append(torch.stack(rows))
                    else:
                        S, z = k.T @ v, k.sum(0)
                        results.append((q @ S) / (q @ z)[:, None])
                return torch.stack(results)
        """),
    ),
    hints=(
        "which product of two of the three tables has no axis of length n? And what does each row have to "
        "be divided by?",
        "phi(K)^T V: (B, dk, n) times (B, n, dv) gives (B, dk, dv); phi(Q) times it gives (B, n, dv). The sum of "
        "phi(k): (B, dk); phi(Q) "
        "times it: (B, n).",
        "phi of both; state = sum of phi(k) v^T, total = sum of phi(k), over all words, or word by word where it is "
        "causal; phi(q) state "
        "divided by phi(q) total.",
    ),
)  # fmt: skip
