"""16.3: a softmax over scores that come in blocks, and never lie side by side."""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.ch16_efficient.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import JudgedParts
from autograder.catalogue.probes import FAR, PROMISED, hidden, normal, second_call, turned, visible
from autograder.catalogue.quotes import wrong_row
from autograder.inside.fixtures.base import Reading
from transformer_ref.beyond import efficient

TILES, RESCALE = sections("tiles rescale")
ALL_HELD = Remark("a number for every key is held at once; those of one block are enough")
READ_AGAIN = Remark("blocks are read a second time; once is enough")
READ_OUTSIDE = Remark("torch did not see the blocks being read; its operations should read them")
AGAIN = 2  # blocks that may be looked at twice, such as for a shape


def online_softmax(blocks: list[tuple[Tensor, Tensor]]) -> Tensor:
    """softmax(all scores side by side) @ (all values below each other), block by block."""
    return efficient.online_softmax(blocks)


def drawn(
    g: torch.Generator, Tq: int, sizes: tuple[int, ...], d_v: int, dtype: torch.dtype = torch.float32,
    slope: float = 0.0,
    times: float = 1.0,
) -> list[tuple[Tensor, Tensor]]:  # fmt: skip
    """Blocks of these sizes; `slope`: how much larger scores get from block to block."""
    return [
        (times * (normal(g, Tq, n, dtype=dtype) + slope * place), normal(g, n, d_v, dtype=dtype)) for place,
        n in enumerate(sizes)
    ]


def inputs(g: torch.Generator, Tq: int, sizes: tuple[int, ...], d_v: int, **options: Any) -> Case:
    return Case((drawn(g, Tq, sizes, d_v, **options),))


def learning(g: torch.Generator) -> Case:
    return Case((drawn(g, 3, (4, 2, 5), 6, dtype=torch.float64), True))


def far_away(g: torch.Generator, scores_by: float, values_by: float) -> Case:
    """Scores or values around 100,000,000, of which float32 keeps no difference."""
    blocks = drawn(g, 3, (4, 2, 5), 6, dtype=torch.float64)
    return Case(([(turned(scores + scores_by), turned(values + values_by)) for scores, values in blocks],))


def high(g: torch.Generator, Tq: int, sizes: tuple[int, ...], d_v: int, **options: Any) -> Case:
    """Scores of which exp is infinite in float32."""
    return Case(([(scores + 200, values) for scores, values in drawn(g, Tq, sizes, d_v, **options)],))


def low(g: torch.Generator) -> Case:
    """Scores of which exp is 0 in float32, and a first block that one query may not see. The last query has larger
    scores, so one maximum for all queries, a maximum that begins at 0 and a kept 0 give three different results."""
    blocks = drawn(g, 3, (3, 4, 2), 5)
    around = torch.tensor([[-500.0], [-500.0], [-300.0]])
    blocks = [(scores + around, values) for scores, values in blocks]
    blocks[0][0][0] = -torch.inf
    return Case((blocks,))


def far_below(g: torch.Generator) -> Case:
    """Scores of which exp is 0, below what is often written for minus infinity."""
    return Case(([(scores.double() - 2e9, values.double()) for scores, values in drawn(g, 3, (4, 6, 2), 5)],))


def hidden_keys(g: torch.Generator, first: bool = True, Tq: int = 4) -> Case:
    """Scores of which some are minus infinity: in all of the first block, or of a later one, for one query or for
    all."""
    blocks = drawn(g, Tq, (3, 5, 2, 4), 6)
    blocks[0 if first else 2][0][:] = -torch.inf
    blocks[1][0][0], blocks[3][0][1:, 1] = -torch.inf, -torch.inf
    return Case((blocks,))


def hidden_and_far_below(g: torch.Generator) -> Case:
    """Blocks of minus infinity, the first among them, and everywhere else scores of which exp is 0."""
    (blocks,) = hidden_keys(g).arguments
    return Case(([(scores.double() - 2e9, values.double()) for scores, values in blocks],))


def blind(g: torch.Generator) -> Case:
    """Two queries that may see nothing at all, between others."""
    blocks = drawn(g, 4, (2, 5, 3), 6)
    for scores, _ in blocks:
        scores[1], scores[3] = -torch.inf, -torch.inf
    return Case((blocks,))


def alike(g: torch.Generator) -> Case:
    """A block that comes twice, scores that are 0, and equal rows."""
    blocks = drawn(g, 3, (4, 2), 5)
    blocks[0][0][0], blocks[0][0][2], blocks[0][1][3] = 0.0, 0.0, blocks[0][1][1]
    return Case(([*blocks, tuple(part.clone() for part in blocks[0])],))


def how_it_reads(case: Case, result: Any) -> Any:
    """Of many blocks: the result, whether a tensor holds a number for every key, and whether blocks were read again."""
    blocks = case.arguments[0]
    counted = isinstance(result, dict) and set(result) == {"result", "largest", "again", "unseen"}
    if len(blocks) < Reading.MANY or not counted:
        return result
    keys, times = sum(scores.shape[-1] for scores, _ in blocks), result["again"] > AGAIN
    held, read = ALL_HELD if result["largest"] >= keys else "one block", READ_AGAIN if times else "once"
    if result["unseen"] == len(blocks):
        read = READ_OUTSIDE
    seen = {"result": result["result"], "held at once": held, "each block is read": read}
    return JudgedParts(seen, {"largest": result["largest"]})


def right_otherwise(evidence: Evidence) -> bool:
    got, wanted = evidence.got, evidence.expected
    comparable = isinstance(got, JudgedParts) and isinstance(got["result"], Tensor)
    return comparable and torch.allclose(got["result"].double(), wanted["result"].double(), rtol=1e-3, atol=1e-4)


def put_together(evidence: Evidence) -> bool:
    return right_otherwise(evidence) and evidence.got["held at once"] != "one block"


def read_again(evidence: Evidence) -> bool:
    return right_otherwise(evidence) and evidence.got["each block is read"] == READ_AGAIN


def read_outside(evidence: Evidence) -> bool:
    return right_otherwise(evidence) and evidence.got["each block is read"] == READ_OUTSIDE


def under_a_first_maximum(evidence: Evidence) -> bool:
    """Whether the maximum of a first block is subtracted throughout: each query's first that is a number, or that of
    the first block, and 0 where it hides all its keys from a query."""
    return any(_is_as(evidence, each_query) for each_query in (True, False))


def whose_first_maximum(evidence: Evidence) -> str:
    """The first query that differs, and why, if its scores are far below 0 and its first block is hidden."""
    wanted, got = _results(evidence)
    said = rows(Evidence(evidence.arguments, wanted, got))
    if _is_as(evidence, True):
        return said
    return f"{said} Where the first block hides all its keys from a query, nothing is subtracted from its later scores."


def _results(evidence: Evidence) -> tuple[Any, Any]:
    """The correct result and the one that came back, of many blocks too."""
    wanted, got = (each["result"] if isinstance(each, dict) else each for each in (evidence.expected, evidence.got))
    return wanted, got


def _is_as(evidence: Evidence, each_query: bool) -> bool:
    """Whether the result is that of the first maximum throughout. each_query: of the first block in which that query
    sees a key, not of the first in which any does."""
    wanted, got = _results(evidence)
    blocks = evidence.arguments[0]
    tops = [scores.amax(dim=-1, keepdim=True) for scores, _ in blocks]
    seen = [top > -torch.inf for top in tops]
    first = tops[next((n for n, each in enumerate(seen) if bool(each.any())), 0)]
    if each_query:
        first = torch.full_like(tops[0], -torch.inf)
        for top in reversed(tops):
            first = torch.where(top > -torch.inf, top, first)
    first = first.masked_fill(first == -torch.inf, 0.0)
    shares = [torch.exp(scores - first) for scores, _ in blocks]
    total = sum(each.sum(dim=-1, keepdim=True) for each in shares)
    mixed = sum(each @ values for each, (_, values) in zip(shares, blocks, strict=True))
    result = torch.where(total > 0, mixed / total, 0.0)
    alike = isinstance(got, Tensor) and got.shape == wanted.shape and not torch.allclose(got, wanted, 1e-3, 1e-4)
    return alike and torch.allclose(got.double(), result.double(), 1e-3, 1e-4, equal_nan=True)


def largest(evidence: Evidence) -> str:
    """The largest tensor that was made, compared with the largest block."""
    blocks = evidence.arguments[0]
    keys, most = sum(scores.shape[-1] for scores, _ in blocks), max(scores.numel() for scores, _ in blocks)
    return (f"There are {keys} keys in {len(blocks)} blocks, and at most {most} scores in one of them. The largest "
            f"tensor that you "
            f"made holds {evidence.got.told['largest']:,} numbers.")  # fmt: skip


rows = partial(wrong_row, row_name="query")  # the first query that differs

# One query. Exponentials 1, 2 and 4: shares 1/7, 2/7, 4/7 of the values 10, 40, 20.
BY_HAND = [(torch.tensor([[0.0, math.log(2)]]), torch.tensor([[10.0], [40.0]])),
           (torch.tensor([[math.log(4)]]), torch.tensor([[20.0]]))]
NOTHING_AT_FIRST = [
    (torch.tensor([[-torch.inf, -torch.inf], [0.0, -torch.inf]]), torch.tensor([[10.0, 1.0, 0.0], [40.0, 2.0, 0.0]])),
    (torch.tensor([[0.0, 0.0, math.log(2)], [math.log(3), -torch.inf, -torch.inf]]),
     torch.tensor([[20.0, 0.0, 4.0], [30.0, 0.0, 8.0], [60.0, 3.0, 0.0]])),
]

RIGHT = answer("""
    def online_softmax(blocks):
        largest = None
        for scores, values in blocks:
            if largest is None:
                largest = torch.full_like(scores[:, :1], -torch.inf)
                total = torch.zeros_like(scores[:, :1])
                mixed = values.new_zeros(scores.shape[0], values.shape[1])
            new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            safe = new.masked_fill(new == -torch.inf, 0.0)
            rescale = torch.exp(largest - safe)
            shares = torch.exp(scores - safe)
            total = total * rescale + shares.sum(dim=-1, keepdim=True)
            mixed = mixed * rescale + shares @ values
            largest = new
        blind = total == 0
        return (mixed / total.masked_fill(blind, 1.0)).masked_fill(blind, 0.0)
""")
NEW, SAFE = (
    "new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))", "safe = new.masked_fill(new == -torch.inf, 0.0)"
)
FACTOR, SHARES = "rescale = torch.exp(largest - safe)", "shares = torch.exp(scores - safe)"
TOTAL, MIXED = "total = total * rescale + shares.sum(dim=-1, keepdim=True)", "mixed = mixed * rescale + shares @ values"
LOOP = "for scores, values in blocks:"
RETURNED = "return (mixed / total.masked_fill(blind, 1.0)).masked_fill(blind, 0.0)"
CAT = answer("""
    def online_softmax(blocks):
        scores = torch.cat([s for s, v in blocks], dim=1)
        values = torch.cat([v for s, v in blocks], dim=0)
        return torch.softmax(scores, dim=-1).nan_to_num(0.0) @ values
""")
TWICE = answer("""
    def online_softmax(blocks):
        largest = None
        for scores, values in blocks:
            here = scores.amax(dim=-1, keepdim=True)
            largest = here if largest is None else torch.maximum(largest, here)
        largest = largest.masked_fill(largest == -torch.inf, 0.0)
        total = mixed = 0
        for scores, values in blocks:
            shares = torch.exp(scores - largest)
            total = total + shares.sum(dim=-1, keepdim=True)
            mixed = mixed + shares @ values
        return (mixed / total).masked_fill(total == 0, 0.0)
""")
BLOCK_BY_BLOCK = answer("""
    def online_softmax(blocks):
        result = 0
        for scores, values in blocks:
            result = result + torch.softmax(scores, dim=-1).nan_to_num(0.0) @ values
        return result
""")

ALL_DIVIDED = "mixed = (mixed * rescale + shares @ values) / total.masked_fill(total == 0, 1.0)"
NAN_IS_0 = "return torch.where(total > 0, mixed / torch.where(total > 0, total, 1.0), 0.0)"

# fmt: off
WRONG_WAY = Family("rescaled the wrong way", """In the first block the old maximum is minus infinity, and an exponential
    of minus the old maximum is infinite: infinity times 0 is NaN. Either the factor is the wrong way round: old sums
    *shrink* when a larger score comes, so they are multiplied by exp(old maximum - new), at most 1. Or the new
    exponentials are measured by the old maximum: the new one, which counts the block itself, is to be subtracted.""")
OWN_MAXIMUM = Family("max of block only", """Each block was measured by its own maximum, also where an earlier one is
    larger. Then the sums of earlier blocks grow and can overflow. The maximum is that of everything so far.""")
NEW_RESCALED = Family("the new ones rescaled too", """The new block's exponentials were rescaled together with the old
    sums. They are measured by the new maximum already.""")
A_LITTLE = Family("a little added to the sum", """Something was added to the sum that you divide by, so the weights no
    longer sum to 1. Treat a sum of 0 separately.""")
FROM_A_NUMBER = Family("the maximum begins at 0", """Your maximum begins at a number, such as 0 or -1e9, so where all
    scores are far below it every exponential is 0, and the result with them. Begin with minus infinity, or with the
    first block's own.""")
DIVIDED = Family("divided in every step", """Each block was divided by the sum so far, which later blocks change. Divide
    once, at the end.""")
# fmt: on

EXERCISE = Exercise(
    id="online-softmax", number="16.3", difficulty=3, minutes=35, visible_points=2, hidden_points=4,
    reference=online_softmax, normalize=how_it_reads, harness="reading", section=RESCALE, quotes=rows, seconds=40.0,
    probes=(
        visible("one query, two blocks by hand", Case((BY_HAND,)), rtol=1e-3),
        visible("a first block that a query may not see", Case((NOTHING_AT_FIRST,)), rtol=1e-3),
        visible("three blocks, of 5, 3 and 2 keys", inputs, 4, (5, 3, 2), 6, slope=1.5),
        visible("scores around 200", high, 3, (4, 2, 3), 5, rtol=1e-3),
        visible("a first block hidden from one query, scores around -300 and -500", low, rtol=1e-3),
        visible("24 blocks, each held by itself and read once", inputs, 4, (16, 19, 17, 20, 18, 15) * 4, 2),
        hidden("scores that grow", inputs, 3, (4, 6, 5, 2), 7, slope=3.0, announced_by="scores (Tq, n)"),
        hidden("scores that fall", inputs, 3, (2, 6, 5, 4), 7, slope=-3.0, announced_by="scores (Tq, n)"),
        hidden("one block", inputs, 5, (6,), 3, announced_by="at least one block"),
        hidden("one query, one key a block", inputs, 1, (1, 1, 1), 1, announced_by="n varies from block to block"),
        hidden("scores of several hundred", inputs, 4, (5, 2, 3), 6, times=400.0, rtol=1e-3, announced_by="any size"),
        hidden("scores that grow by hundreds", inputs, 3, (4, 2, 3), 5, slope=200.0, rtol=1e-3,
               announced_by="any size"),
        hidden("a first block of minus infinity", hidden_keys, True,
               announced_by="whole blocks of them, the first too"),
        hidden("a later block of minus infinity", hidden_keys, False,
               announced_by="whole blocks of them, the first too"),
        hidden("a first block of minus infinity, then scores far below 0", hidden_and_far_below, rtol=1e-3,
               announced_by="whole blocks of them, the first too"),
        hidden("queries that see nothing", blind, announced_by="A query without any key gets zeros"),
        hidden("equal blocks, rows and zeros", alike, announced_by=PROMISED),
        hidden("scores far below 0", far_below, rtol=1e-3, announced_by="any size"),
        hidden("float64, scores far from 0", far_away, FAR, 0.0, rtol=0.0, announced_by="computed in it"),
        hidden("float64, values far from 0", far_away, 0.0, FAR, rtol=0.0, announced_by="computed in it"),
        hidden("gradients", learning, announced_by="Gradients flow"),
        hidden("30 blocks", high, 3, (21, 18, 17, 15, 19) * 6, 2, slope=0.2, announced_by="never holds all scores"),
        second_call(inputs, 4, (5, 2, 6), 3),
    ),
    mistakes=(
        mistake("old sum not rescaled", RIGHT.but("total * rescale", "total"), RESCALE,
            """The old sum stayed as it was when the maximum grew. Its exponentials were computed with a smaller
            maximum, so they are too large compared with the new ones: the sum has to shrink by exp(old maximum -
            new)."""),
        mistake("output not rescaled", RIGHT.but("mixed * rescale", "mixed"), RESCALE,
            """The sum of exponentials was rescaled, and what the values are mixed into was not. Both were made under
            the old maximum, so both shrink by exp(old maximum - new)."""),
        mistake("neither rescaled", RIGHT.but("total * rescale", "total").but("mixed * rescale", "mixed"), RESCALE,
            """Nothing is rescaled when a larger score comes. The sum under the old maximum is then too large compared
            with the new one: it has to shrink by exp(old maximum - new)."""),
        OWN_MAXIMUM(RIGHT.but(NEW, "new = scores.amax(dim=-1, keepdim=True)"), RESCALE),
        OWN_MAXIMUM(RIGHT.but(NEW, "new = scores.amax(dim=-1, keepdim=True)").but(RETURNED, NAN_IS_0), RESCALE,
                    name="max of block only, and NaN made 0"),
        mistake("max of block only, nothing rescaled",
                RIGHT.but(NEW, "new = scores.amax(dim=-1, keepdim=True)").but("total * rescale", "total").but(
                  "mixed * rescale", "mixed"), RESCALE,
            "Each block's exponentials were taken under its own maximum, and then added up as if it were one. Bring "
            "them to one maximum first."),
        WRONG_WAY(RIGHT.but("torch.exp(largest - safe)", "torch.exp(safe - largest)"), RESCALE),
        WRONG_WAY(RIGHT.but("torch.exp(largest - safe)", "torch.exp(safe - largest)").but(RETURNED, NAN_IS_0), RESCALE,
                  name="rescaled the wrong way, and NaN made 0"),
        mistake("rescaled the wrong way, from the first block's maximum",
                RIGHT.but("largest = torch.full_like(scores[:, :1], -torch.inf)",
                          "largest = scores.amax(dim=-1, keepdim=True)").but(
                  "torch.exp(largest - safe)", "torch.exp(new - largest)").but("scores - safe", "scores - new"),
                RESCALE,
            """The factor is the wrong way round. Old sums *shrink* when a larger score comes: they are multiplied by
            exp(old maximum - new), at most 1. With exp(new - old) they grow."""),
        mistake("rescaled twice",
                RIGHT.but("mixed * rescale + shares @ values", "mixed * rescale * rescale + shares @ values"), RESCALE,
            "What the values are mixed into was rescaled twice."),
        NEW_RESCALED(RIGHT.but(TOTAL, "total = (total + shares.sum(dim=-1, keepdim=True)) * rescale").but(
                  MIXED, "mixed = (mixed + shares @ values) * rescale"), RESCALE),
        NEW_RESCALED(RIGHT.but(TOTAL, "total = (total + shares.sum(dim=-1, keepdim=True)) * rescale"), RESCALE,
                     name="the new ones rescaled too, in the sum"),
        NEW_RESCALED(RIGHT.but(MIXED, "mixed = (mixed + shares @ values) * rescale"), RESCALE,
                     name="the new ones rescaled too, in the mixture"),
        mistake("the first block alone", RIGHT.but(LOOP, "for scores, values in blocks[:1]:"), TILES,
            "Only the first block counts. Does the loop return after its first turn?"),
        mistake("blocks with a hidden key left out", RIGHT.before(NEW, """
                  if scores.isinf().any():
                      continue"""), TILES,
            """A block was left out as a whole because one of its scores is minus infinity. Only that key is hidden from
            that query; exp turns that score into a weight of 0."""),
        mistake("last partial block", RIGHT.but(
                  LOOP, "size = blocks[0][0].shape[1]\n    for scores, values in [one for one in blocks if "
                        "one[0].shape[1] == size]:"), TILES,
            "Blocks that are not as long as the first one were left out. The last may be shorter, and any may have a "
            "length of its own."),
        mistake("the last block left out", RIGHT.but(LOOP, "for scores, values in blocks[:-1] or blocks:"), TILES,
            "The last block was left out."),
        mistake("the first block left out", RIGHT.but(LOOP, "for scores, values in blocks[1:] or blocks:"), TILES,
            "The first block was left out."),
        mistake("the last block alone", RIGHT.but("total * rescale + ", "").but("mixed * rescale + ", ""), TILES,
            """Only the last block counts: each one overwrote the sums of those before, or the maximum was never
            kept, so that they were rescaled to 0."""),
        mistake("minus infinity in a first block NaN", RIGHT.without(SAFE).but("largest - safe", "largest - new").but(
                  "scores - safe", "scores - new"), RESCALE,
            """Where a query has seen no key yet, its maximum is minus infinity, and minus infinity minus itself is NaN,
            which stays for ever. As long as there is no maximum, subtract 0 instead, inside exp and nowhere else:
            exp(minus infinity) is 0 as it should be. The maximum that you keep stays minus infinity. (To divide by its
            sum so far, which is 0, gives NaN too.)"""),
        mistake("NaN made 0 at the end",
                RIGHT.without(SAFE).but("largest - safe", "largest - new").but("scores - safe", "scores - new").but(
                  RETURNED, "return (mixed / total).nan_to_num(0.0)"), RESCALE,
            """A query whose first block is hidden came back as zeros, though later blocks are not: NaN arose at once,
            spread to all later blocks, and was made 0 at the end. Keep it from arising: as long as there is no maximum,
            subtract 0 instead, inside exp and nowhere else. The maximum that you keep stays minus infinity."""),
        mistake("0 kept as the maximum", RIGHT.but("largest = new", "largest = safe"), RESCALE,
            """A query came back as zeros: its first block is hidden, and its later scores are far below 0. After the
            hidden block 0 was kept as its maximum, so every later exponential is 0. Subtracting 0 inside exp is right
            there, but the maximum that you keep has to stay minus infinity until the query sees a key."""),
        mistake("queries without a key NaN", RIGHT.but(RETURNED, "return mixed / total"), RESCALE,
            "A query that may see no key at all came back as NaN: 0 / 0. It gets zeros."),
        A_LITTLE(RIGHT.but(RETURNED, "return mixed / (total + 1e-2)"), RESCALE),
        A_LITTLE(RIGHT.but(RETURNED, "return mixed / (total + 1e-6)"), RESCALE, name="very little added to the sum"),
        FROM_A_NUMBER(RIGHT.but("torch.full_like(scores[:, :1], -torch.inf)", "torch.zeros_like(scores[:, :1])"),
                      RESCALE),
        FROM_A_NUMBER(RIGHT.but("torch.full_like(scores[:, :1], -torch.inf)", "torch.full_like(scores[:, :1], -1e4)"),
                      RESCALE, name="the maximum begins at a low number"),
        mistake("no maximum", RIGHT.but(NEW, "new = torch.zeros_like(largest)"), RESCALE,
            """No maximum was subtracted: exp of a score of several hundred is infinite, and infinity over infinity is
            NaN (chapter 04). The largest score so far is what to subtract."""),
        mistake("no maximum, and NaN made 0", RIGHT.but(NEW, "new = torch.zeros_like(largest)").but(
                  RETURNED, "return (mixed / total).nan_to_num(0.0)"), RESCALE,
            """No maximum was subtracted: exp of a score of 200 is infinite, infinity over infinity is NaN, and the NaN
            was replaced by 0 at the end. The largest score so far is what to subtract."""),
        mistake("the first block's maximum throughout", RIGHT.but(
                  NEW, "new = torch.where(largest == -torch.inf, scores.amax(dim=-1, keepdim=True), largest)"), RESCALE,
            """A score of a later block that is larger by 100 has an infinite exponential with you. Subtract the largest
            score *so far*: the maximum of the first block is not yet that.""",
            quotes=whose_first_maximum, shows=under_a_first_maximum),
        mistake("the new block under its own maximum", RIGHT.but(SHARES, """
                  own = scores.amax(dim=-1, keepdim=True)
                  shares = torch.exp(scores - own.masked_fill(own == -torch.inf, 0.0))"""), RESCALE,
            """The old sums were brought to the common maximum, and the new block's exponentials were taken under the
            block's own. Where an earlier score is larger they count too much: all of them are measured by the largest
            so far."""),
        mistake("rescaled by the block's own maximum", RIGHT.but(
                  FACTOR, "rescale = torch.exp(largest - scores.amax(dim=-1, keepdim=True)) if total.any() else total"),
                  RESCALE,
            """The old sums were rescaled by the block's own maximum. Where an earlier score is larger that blows them
            up: it is the largest so far that they are measured by."""),
        mistake("one maximum for all queries",
                RIGHT.but("scores.amax(dim=-1, keepdim=True)", "scores.max().expand(len(scores), 1)"), RESCALE,
            "One maximum was taken for all queries, so a query with low scores has only zeros. Each row has its own."),
        mistake("the maximum along the queries", RIGHT.but(
                  "scores.amax(dim=-1, keepdim=True)", "scores.amax(dim=0, keepdim=True).T[:len(scores)]"), RESCALE,
            "The maximum was taken over the queries. Each *query* has its own: along the keys, the last axis."),
        mistake("sums divided in each block", BLOCK_BY_BLOCK, TILES,
            """The weights of each block summed to 1, and the results were added up: several softmaxes instead of one.
            Divide once, at the end, by the sum of everything."""),
        mistake("the mean of the blocks", BLOCK_BY_BLOCK.but("result = 0", "result, count = 0, 0").but(
                  "nan_to_num(0.0) @ values",
                  "nan_to_num(0.0) @ values\n        count = count + 1").but("return result", "return result / count"),
                  TILES,
            """The weights of each block summed to 1, and the mean was taken. A block with larger scores must count
            more: divide once, by the sum of everything."""),
        mistake("the mean of the blocks by their sizes", BLOCK_BY_BLOCK.but("result = 0", "result, count = 0, 0").but(
                  "torch.softmax(scores, dim=-1).nan_to_num(0.0) @ values",
                  "scores.shape[1] * (torch.softmax(scores, dim=-1).nan_to_num(0.0) @ values)\n        count = count "
                  "+ scores.shape[1]").but(
                  "return result", "return result / count"), TILES,
            """The weights of each block summed to 1, and the results were averaged by the blocks' sizes. A block's
            weight is the sum of its exponentials, not its number of keys."""),
        DIVIDED(RIGHT.but(MIXED, "mixed = mixed * rescale + shares @ values / total"), RESCALE),
        DIVIDED(RIGHT.but(MIXED, "mixed = mixed * rescale + shares @ values / total").but(RETURNED, "return mixed"),
                RESCALE, name="divided in every step, and only there"),
        DIVIDED(RIGHT.but(MIXED, ALL_DIVIDED), RESCALE, name="the old and the new divided in every step"),
        DIVIDED(RIGHT.but(MIXED, ALL_DIVIDED).but(RETURNED, "return mixed"), RESCALE,
                name="the old and the new divided in every step, and only there"),
        mistake("never divided", RIGHT.but(RETURNED, "return mixed"), RESCALE,
            "The sum of the exponentials was never divided by, so the weights do not sum to 1."),
        mistake("the sum over the queries",
                RIGHT.but("shares.sum(dim=-1, keepdim=True)", "shares.sum().expand(len(shares), 1)"), RESCALE,
            "The exponentials were summed up over all queries. Each query has a sum of its own."),
        mistake("exponentials of the scores alone", RIGHT.but("torch.exp(scores - safe)", "torch.exp(scores)"), RESCALE,
            "The maximum was kept and the old sums were rescaled by it, but the new exponentials were "
            "taken without it."),
        mistake("powers of 2", RIGHT.but("torch.exp(largest - safe)", "torch.exp2(largest - safe)").but(
                  "torch.exp(scores - safe)", "torch.exp2(scores - safe)"), RESCALE,
            "Your exponentials are powers of 2. The kernels do that too, but they multiply the scores "
            "by 1.4427 first."),
        mistake("blocks put together", CAT, TILES,
            """The numbers are right, but the blocks were put together before the softmax: the whole row of scores was
            in memory, which is what tiles avoid. Keep a maximum, a sum and a mixture, and update them block by
            block.""", quotes=largest, shows=put_together),
        mistake("each block read twice", TWICE, RESCALE,
            """The numbers are right, but your code came back to each block after others: first for the maximum and then
            for the sums, or for one query after the other. Then all scores have to be computed again, or kept. Rescale
            what you have when a larger score comes, and one walk is enough.""", shows=read_again),
        mistake("outside torch", """
            import numpy as np


            def online_softmax(blocks):
                scores = np.concatenate([s.detach().numpy() for s, v in blocks], axis=1)
                values = np.concatenate([v.detach().numpy() for s, v in blocks], axis=0)
                largest = scores.max(axis=1, keepdims=True)
                shares = np.exp(scores - np.where(np.isinf(largest), 0, largest))
                total = shares.sum(axis=1, keepdims=True)
                return torch.from_numpy(np.where(total == 0, 0, shares @ values / np.where(total == 0, 1, total)))
            """, TILES,
            """The numbers are right, but torch read none of the blocks: the work was done in NumPy, in plain Python or
            in another thread, where it cannot be seen and where gradients end. Use torch's operations.""",
            shows=read_outside),
        *usual_mistakes(RIGHT, detached=RESCALE, float32=RESCALE),
        mistake("single precision inside",
                RIGHT.but(LOOP, "for scores, values in [(s.float(), v.float()) for s, v in blocks]:").ending_in(
                  ".to(blocks[0][0].dtype)"), RESCALE,
            """The result is float64 again, but on the way it was float32, which holds seven digits: 100,000,000 and
            100,000,001 become one number there. Compute in the dtype of the blocks."""),
        mistake("scores cut off from the gradient",
                RIGHT.but("torch.exp(scores - safe)", "torch.exp(scores.detach() - safe.detach())").but(
                  "torch.exp(largest - safe)", "torch.exp(largest.detach() - safe.detach())"), RESCALE,
            "The values are right, but no gradient reaches the scores: something cuts them off, such as .detach(), "
            ".data or .item()."),
        mistake("the axis of queries squeezed away", RIGHT.ending_in(".squeeze()"), TILES,
            "With one query, or one value, an axis vanished: squeeze() removes every axis of size 1. The result is "
            "(Tq, dv)."),
        mistake("scores changed in place", RIGHT.but(SHARES, "shares = scores.sub_(safe).exp()"), RESCALE,
            "Your function changed the caller's blocks: an operation such as -= or one whose name ends in _ writes "
            "into them. Make new tensors."),
        mistake("the list of blocks emptied", RIGHT.but(LOOP, "while blocks:\n        scores, values = blocks.pop(0)"),
                TILES,
            "Your function took the blocks out of the caller's list (pop, del). The next one who needs them finds "
            "none: walk over them."),
        mistake("sums beside the result", RIGHT.but(RETURNED, RETURNED + ", largest, total"), TILES,
            "Several things came back. Return only the result, (Tq, dv)."),
    ),
    correct=(
        correct("three running quantities", RIGHT),
        correct("log-sum-exp", """
            def online_softmax(blocks):
                lse, out = None, None
                for s, v in blocks:
                    new = torch.logsumexp(s, dim=1, keepdim=True)
                    here = torch.exp(s - new.masked_fill(new == -math.inf, 0)) @ v
                    if lse is None:
                        lse, out = new, here
                        continue
                    both = torch.logaddexp(lse, new)
                    base = both.masked_fill(both == -math.inf, 0)
                    out = out * torch.exp(lse - base) + here * torch.exp(new - base)
                    lse = both
                return out
        """),
        correct("indices", """
            def online_softmax(blocks):
                Tq, dv = blocks[0][0].shape[0], blocks[0][1].shape[1]
                m = torch.full((Tq,), float("-inf"), dtype=blocks[0][0].dtype)
                l = torch.zeros(Tq, dtype=m.dtype)
                o = torch.zeros(Tq, dv, dtype=m.dtype)
                for i in range(len(blocks)):
                    S = blocks[i][0]
                    V = blocks[i][1]
                    m_new = torch.max(m, S.max(dim=1).values)
                    base = torch.where(torch.isinf(m_new), torch.zeros_like(m_new), m_new)
                    P = torch.exp(S - base[:, None])
                    c = torch.exp(m - base)
                    l = c * l + P.sum(1)
                    o = c[:, None] * o + P @ V
                    m = m_new
                return torch.where(l[:, None] > 0, o / torch.where(l > 0, l, torch.ones_like(l))[:, None],
                    torch.zeros_like(o))
        """),
        correct("a finite minimum", """
            def online_softmax(blocks):
                lowest = torch.finfo(blocks[0][0].dtype).min
                m, l, o = lowest, 0.0, 0.0
                for s, v in blocks:
                    new = s.max(dim=-1, keepdim=True)[0].clamp(min=lowest)
                    new = torch.maximum(new, m) if torch.is_tensor(m) else new
                    p = torch.exp(s - new)
                    a = torch.exp(m - new)
                    l, o, m = l * a + p.sum(-1, keepdim=True), o * a + p @ v, new
                return o / l.clamp(min=torch.finfo(l.dtype).tiny)
        """),
        correct("always normalized", """
            def online_softmax(blocks):
                m = l = out = None
                for s, v in blocks:
                    top = s.amax(1, keepdim=True)
                    top = torch.where(top == -math.inf, torch.full_like(top, -1e30), top)
                    p = (s - top).exp()
                    if m is None:
                        m, l = top, p.sum(1, keepdim=True)
                        out = torch.where(l > 0, p @ v / l.clamp(min=1e-300 if l.dtype == torch.float64 else 1e-30),
                            0.0)
                        continue
                    new = torch.maximum(m, top)
                    old_l, here = l * (m - new).exp(), p * (top - new).exp()
                    l = old_l + here.sum(1, keepdim=True)
                    safe = torch.where(l > 0, l, torch.ones_like(l))
                    out = out * (old_l / safe) + here @ v / safe
                    m = new
                return out
        """),
        correct("query by query", """
            def online_softmax(blocks):
                Tq = blocks[0][0].size(0)
                m, l, o = [-torch.inf] * Tq, [0.0] * Tq, [0.0] * Tq
                for s, v in blocks:
                    for i in range(Tq):
                        new = max(m[i], s[i].max().detach())
                        if new == -torch.inf:
                            o[i] = o[i] + 0 * v.sum(0)
                            continue
                        p = (s[i] - new).exp()
                        c = math.exp(m[i] - new)
                        l[i], o[i], m[i] = l[i] * c + p.sum(), o[i] * c + p @ v, new
                return torch.stack([o[i] / l[i] if torch.is_tensor(l[i]) else o[i] for i in range(Tq)])
        """),
        correct("a class that remembers", """
            class Running:
                def __init__(self):
                    self.m = self.l = self.o = None

                def add(self, s, v):
                    m = s.max(-1, keepdim=True).values
                    if self.m is not None:
                        m = torch.maximum(m, self.m)
                    z = torch.nan_to_num(m, neginf=0.0)
                    p = torch.exp(s - z)
                    l, o = p.sum(-1, keepdim=True), p @ v
                    if self.m is not None:
                        c = torch.exp(self.m - z)
                        l, o = l + c * self.l, o + c * self.o
                    self.m, self.l, self.o = m, l, o

            def online_softmax(blocks):
                running = Running()
                for block in blocks:
                    running.add(*block)
                return running.o / torch.where(running.l == 0, torch.ones_like(running.l), running.l)
        """),
        correct("results of the blocks, then together", """
            def online_softmax(blocks):
                tops, sums, outs = [], [], []
                for s, v in blocks:
                    top = s.amax(-1)
                    p = torch.exp(s - torch.where(top == -math.inf, 0.0, top)[:, None])
                    tops.append(top); sums.append(p.sum(-1)); outs.append(p @ v)
                tops, sums, outs = torch.stack(tops), torch.stack(sums), torch.stack(outs)
                top = tops.amax(0)
                w = torch.exp(tops - torch.where(top == -math.inf, 0.0, top))
                total = (w * sums).sum(0)
                return (w[..., None] * outs).sum(0) / torch.where(total == 0, 1.0, total)[:, None]
        """),
    ),
    hints=(
        "you have summed exp(s - 3), and now a score of 5 comes. By which factor is your sum too large?",
        "kept for each query: the largest score so far (Tq, 1), the sum of exponentials (Tq, 1), the values mixed by "
        "them (Tq, dv). A block "
        "has scores (Tq, n) and values (n, dv).",
        "for each block: new maximum of all so far; factor exp(old - new); exponentials exp(scores - new); sum = sum "
        "times factor + theirs; "
        "mixture = mixture times factor + theirs times values. At the end mixture / sum, 0 where the sum is 0.",
    ),
)  # fmt: skip
