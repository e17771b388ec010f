"""05.6: whether the order of the words matters, measured."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import FAR, hidden, normal, second_call, visible
from transformer_ref.model import attention

ORDER, SHAPES = sections("order shapes")

CYCLE = torch.tensor([2, 0, 3, 1])  # not its own inverse


def equivariance_gap(f, x: Tensor, perm: Tensor) -> float:
    """The largest absolute difference between f(permuted x) and permuted f(x); 0 for one that is only rounding."""
    permuted, plain = f(x[..., perm, :]), f(x)
    permuted, plain = (y[0] if isinstance(y, tuple) else y for y in (permuted, plain))
    gap = (permuted - plain[..., perm, :]).abs().max().item()
    return gap if gap > 1e-6 else 0.0


def attention_without_order(g: torch.Generator, d_model: int) -> Case:
    query, key, value = (normal(g, d_model, d_model) for _ in range(3))

    def f(x: Tensor) -> Tensor:
        return attention.explicit_attention(x @ query, x @ key, x @ value).output

    return Case((f, normal(g, 2, 4, d_model), CYCLE))


def position_aware(table: Tensor) -> Callable[[Tensor], Tensor]:
    def f(x: Tensor) -> Tensor:
        return x + table[: x.shape[-2], None]

    return f


def running_total(x: Tensor) -> Tensor:
    return x.cumsum(dim=-2)


def running_total_and_more(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.cumsum(dim=-2), x, x


def total_beside(x: Tensor) -> Tensor:
    """Append a running total to x: only the appended features depend on the order."""
    return torch.cat([x, x.cumsum(dim=-2)], dim=-1)


def moved(g: torch.Generator, length: int) -> Tensor:
    """A permutation that is not its own inverse."""
    while True:
        perm = torch.randperm(length, generator=g)
        if not torch.equal(perm[perm], torch.arange(length)):
            return perm


def one_sided(g: torch.Generator, times: float) -> Case:
    """Positions with one outlier, permuted so that the largest difference is 9 times `times`, with its sign."""
    table = 0.3 + torch.rand(5, generator=g)
    table[1], table[2] = 9.0, 0.0
    perm = torch.tensor([3, 2, 4, 0, 1])  # position 1: 9 - 0; the last position: a positive number - 9, smaller in size
    return Case((position_aware(times * table), normal(g, 2, 5, 6), perm))


def inputs(
    g: torch.Generator, f: Callable, batch: int, length: int, d_model: int, dtype: torch.dtype = torch.float32,
    far: float = 0.0
) -> Case:
    x = normal(g, batch, length, d_model, dtype=dtype)
    x[0] *= 0.1 if batch > 1 else 1.0  # so that the largest gap is never only in the first sentence
    return Case((f, x + far, moved(g, length)))


def nothing_moved(g: torch.Generator) -> Case:
    x = normal(g, 1, 4, 3)
    x[0, 3] = x[0, 0]
    return Case((running_total, x, torch.arange(4)))


def your_gap(evidence: Evidence) -> str:
    return f"Your gap is {number(evidence.got)}."


def of_the_largest(evidence: Evidence) -> bool:
    """Whether the gap is the difference of the two results' largest numbers, absolute or not."""
    f, x, perm = evidence.arguments
    permuted, plain = (y[0] if isinstance(y, tuple) else y for y in (f(x[..., perm, :]), f(x)))
    gaps = (permuted.abs().max() - plain.abs().max(), permuted.max() - plain.max())
    return any(abs(abs(evidence.got) - abs(gap.item())) < 1e-3 * abs(gap.item()) + 1e-6 for gap in gaps)


RIGHT = answer("""
    def equivariance_gap(f, x, perm):
        def first(result):
            return result[0] if isinstance(result, tuple) else result

        shuffled_before = first(f(x[..., perm, :]))
        shuffled_after = first(f(x))[..., perm, :]
        difference = shuffled_before - shuffled_after
        return difference.abs().max().item()
""")
BEFORE, AFTER = "shuffled_before = first(f(x[..., perm, :]))", "shuffled_after = first(f(x))[..., perm, :]"
UNSHUFFLED, UNPACKED = "shuffled_after = first(f(x))", "result[0] if isinstance(result, tuple) else result"

# fmt: off
SIGN_KEPT = Family("sign kept", """The largest *signed* difference came back, so a large negative one went unseen. Take
    absolute values first.""")
FIRST_ITEM = Family("first item taken always", """When f returns a plain tensor, [0] picks its first sentence. Take the
    first item only when f returns a tuple.""")
# fmt: on

EXERCISE = Exercise(
    id="equivariance-gap", number="05.6", difficulty=2, minutes=15, visible_points=1, hidden_points=3,
    reference=equivariance_gap, section=ORDER,
    probes=(
        visible("attention does not know the order", attention_without_order, 6),
        visible("a function that adds a number to each position",
                Case((position_aware(torch.tensor([0.0, 1.0, 2.0, 9.0])), 3 * EMBEDDINGS[None], CYCLE))),
        hidden("other sizes", inputs, total_beside, 3, 5, 7, announced_by="(B, T, D)"),
        hidden("more sentences than words", inputs, running_total, 5, 4, 6, announced_by="(B, T, D)"),
        hidden("f returns a tuple", inputs, running_total_and_more, 2, 6, 5, announced_by="a tuple"),
        hidden("one sentence, two words alike, nothing moved", nothing_moved, announced_by="(B, T, D)"),
        hidden("the largest gap is negative", one_sided, -1e-4, announced_by="the largest absolute difference"),
        hidden("float64", inputs, running_total, 2, 5, 6, dtype=torch.float64, far=FAR, rtol=0.0,
               announced_by="(B, T, D)"),
        second_call(inputs, running_total, 5, 5, 4),
    ),
    omits={"a length of one": "one word has no order"},
    mistakes=(
        mistake("compared without permuting the outputs", RIGHT.but(AFTER, UNSHUFFLED), ORDER,
            """That is a gap for a *correct* attention: the two results hold the same rows in another order. Permute the
            outputs as well before comparing; that is what equivariance means.""", quotes=your_gap),
        mistake("only the outputs permuted", RIGHT.but("f(x[..., perm, :])", "f(x)"), ORDER,
            """f was called only with the words in their own order. Ask it about the permuted words too, and compare
            with the permuted answer.""", quotes=your_gap),
        mistake("permuted the wrong way back", RIGHT.but(AFTER, UNSHUFFLED).but(BEFORE, f"{BEFORE}[..., perm, :]"),
                ORDER,
            """The rows were brought back the wrong way round. Permuting again does not undo a permutation, unless it
            only swaps pairs; its inverse does, or permuting the *other* result the same way.""", quotes=your_gap),
        mistake("features permuted", RIGHT.but("f(x[..., perm, :])", "f(x[..., perm])").but(
                  "(f(x))[..., perm, :]", "(f(x))[..., perm]"), SHAPES,
            "The *features* were permuted: the words are along the second-to-last axis."),
        mistake("features of the answer permuted", RIGHT.but("(f(x))[..., perm, :]", "(f(x))[..., perm]"), SHAPES,
            "The *features* of the answer were permuted: its words are along the second-to-last axis, as those of x "
            "are."),
        mistake("sentences permuted", RIGHT.but("f(x[..., perm, :])", "f(x[perm])").but(
                  "(f(x))[..., perm, :]", "(f(x))[perm]"), SHAPES,
            "The *sentences* of the batch were permuted: axis 0 is the batch, the words are along the second-to-last "
            "axis."),
        mistake("mean instead of largest", RIGHT.but("max()", "mean()"), ORDER,
            """You returned the mean difference. Return the largest one: one wrong row among many must not be
            averaged away.""", quotes=your_gap),
        mistake("smallest instead of largest", RIGHT.but("max()", "min()"), ORDER,
            "The smallest difference came back. Return the largest one: it says how far f is from passing.",
            quotes=your_gap),
        mistake("sum instead of largest", RIGHT.but("max()", "sum()"), ORDER,
            "You returned the sum of all differences, which grows with the sentence. Return the largest one.",
            quotes=your_gap),
        mistake("norm instead of largest", RIGHT.but("difference.abs().max()", "torch.linalg.vector_norm(difference)"),
                ORDER,
            """You returned the length of the difference, which grows with the sentence. Return the largest absolute
            difference.""", quotes=your_gap),
        mistake("mean over the features, then the largest", RIGHT.but(".max()", ".mean(dim=-1).max()"), ORDER,
            "Differences were averaged over the features before the largest was taken. Return the largest of all.",
            quotes=your_gap),
        mistake("length of a word's difference, the largest",
                RIGHT.but("difference.abs().max()", "difference.norm(dim=-1).max()"), ORDER,
            "The length of each word's difference was taken. Return the largest absolute difference of single numbers.",
            quotes=your_gap),
        mistake("root of the mean square", RIGHT.but("difference.abs().max()", "difference.pow(2).mean().sqrt()"),
                ORDER,
            "You returned the root of the mean square, which one wrong row among many hardly moves. Return the "
            "largest.",
            quotes=your_gap),
        mistake("relative to the size",
                RIGHT.but("difference.abs().max()", "(difference.abs().max() / shuffled_after.abs().max())"), ORDER,
            "The gap was divided by the size of f's answer. Return the plain difference.", quotes=your_gap),
        mistake("both sides sorted", RIGHT.but(AFTER, UNSHUFFLED).but(
                  "shuffled_before - shuffled_after",
                  "shuffled_before.sort(dim=-2).values - shuffled_after.sort(dim=-2).values"), ORDER,
            """Both answers were sorted before they were compared, so it is lost which word got which vector. Compare
            position by position, one of the two answers permuted.""", quotes=your_gap),
        mistake("a word's differences added up", RIGHT.but(".max()", ".sum(dim=-1).max()"), ORDER,
            "The differences of each word were added up before the largest was taken. Return the largest of the "
            "single ones.",
            quotes=your_gap),
        mistake("inverse permutation before f", RIGHT.but("f(x[..., perm, :])", "f(x[..., torch.argsort(perm), :])"),
                ORDER,
            """x was shuffled by the inverse of perm, and the answer by perm itself. Both move the same way: position i
            gets the word from position perm[i].""", quotes=your_gap),
        SIGN_KEPT(RIGHT.but(".abs()", ""), ORDER, quotes=your_gap),
        SIGN_KEPT(RIGHT.but("before - shuffled_after", "after - shuffled_before").but(".abs()", ""),
            ORDER, quotes=your_gap, name="sign kept, the other way round"),
        mistake("the last item of a tuple", RIGHT.but("result[0]", "result[-1]"), ORDER,
            "Of a tuple the *first* item counts; you took a later one, which may be anything."),
        mistake("always zero", RIGHT.but(AFTER, UNSHUFFLED).but("f(x[..., perm, :])", "f(x)"), ORDER,
            """Your gap comes out as 0 where it is not: f was not called, or called twice with the same words, or
            differences of both signs were added up and cancel. A test that cannot fail tests nothing."""),
        mistake("x left out of the permutation", RIGHT.but("first(f(x))[", "x["), ORDER,
            """You compared f's answer with its own input. Compare two answers of f: for the permuted words, and for the
            words in their own order.""", quotes=your_gap),
        families.A_TENSOR_FOR_A_NUMBER(RIGHT.but(".item()", ""), ORDER),
        mistake("yes or no", RIGHT.but(
                  "difference.abs().max().item()", "torch.allclose(shuffled_before, shuffled_after, atol=1e-5)"), ORDER,
            "You returned True or False. Return a size: how large the largest difference is."),
        mistake("tuple not unpacked", RIGHT.but(UNPACKED, "result"), ORDER,
            "Your code stops when f returns a tuple, as SelfAttention does. Then its first item counts."),
        mistake("tuple not unpacked, by a method", RIGHT.but(UNPACKED, "result").but(
                  "first(f(x))[..., perm, :]", "first(f(x)).index_select(-2, perm)"), ORDER,
            "Your code stops when f returns a tuple, as SelfAttention does: a tuple has no methods of a tensor. Its "
            "first item counts."),
        FIRST_ITEM(RIGHT.but(UNPACKED, "result[0]"), ORDER),
        FIRST_ITEM(RIGHT.but(UNPACKED, "result[0]").but("f(x[..., perm, :])", "f(x[:, perm])").but(
                  "(f(x))[..., perm, :]", "(f(x))[:, perm]"), ORDER, name="first item taken always, then axis 1"),
        mistake("difference of the largest", RIGHT.but("difference.abs().max()",
                  "(shuffled_after.abs().max() - shuffled_before.abs().max())"), ORDER,
            """The largest number of each result was taken first, and then the difference of these two. Subtract the two
            results entry by entry, then take the largest absolute difference.""", quotes=your_gap,
            shows=of_the_largest),
        mistake("only the last word compared", RIGHT.but("difference.abs", "difference[..., -1, :].abs"), ORDER,
            """Only the last word was compared. If you use a loop: does each iteration overwrite the gap of the one
            before? Keep the largest so far.""", quotes=your_gap),
        mistake("axes permuted", RIGHT.but("f(x[..., perm, :])", "f(x.permute(perm))"), ORDER,
            """permute exchanges *axes* of a tensor, such as sentences and words. Here the axes stay where they are, and
            the words change their order: perm lists the positions to pick along one axis."""),
        mistake("squared difference", RIGHT.but("abs()", "pow(2)"), ORDER,
            "The differences were squared, so your gap is the square of the correct one. Absolute values keep the "
            "scale.",
            quotes=your_gap),
        mistake("only the first sentence", RIGHT.but("difference.abs", "difference[0].abs"), SHAPES,
            "Only the first sentence of the batch was compared; the largest gap may be in a different one."),
        mistake("inverse permutation on both sides", RIGHT.before(BEFORE, "perm = torch.argsort(perm)"), ORDER,
            """Both sides were moved by the inverse of perm. For some functions that gives the same gap, for others not:
            use perm itself."""),
    ),
    correct=(
        correct("permute the answer", """
            def equivariance_gap(f, x, perm):
                def run(z):
                    y = f(z)
                    return y[0] if isinstance(y, (tuple, list)) else y
                return float((run(x)[:, perm] - run(x[:, perm])).abs().max())
        """),
        correct("undo the permutation", """
            def equivariance_gap(f, x, perm):
                take = lambda y: y[0] if isinstance(y, tuple) else y
                a, b = take(f(x)), take(f(x.index_select(-2, perm)))
                return torch.amax(torch.abs(a - b.index_select(-2, torch.argsort(perm)))).item()
        """),
        correct("gather", """
            def equivariance_gap(f, x, perm):
                def run(z):
                    y = f(z)
                    return y if torch.is_tensor(y) else y[0]
                def move(z):
                    return torch.gather(z, -2, perm[:, None].expand_as(z))
                return (move(run(x)) - run(move(x))).abs().max().item()
        """),
        correct("loops", """
            def equivariance_gap(f, x, perm):
                plain, moved = f(x), f(torch.stack([x[..., p, :] for p in perm.tolist()], dim=-2))
                if isinstance(plain, tuple):
                    plain, moved = plain[0], moved[0]
                worst = 0.0
                for i, p in enumerate(perm.tolist()):
                    worst = max(worst, (plain[..., p, :] - moved[..., i, :]).abs().max().item())
                return worst
        """),
        correct("permutation matrix", """
            def equivariance_gap(f, x, perm):
                P = torch.eye(len(perm), dtype=x.dtype)[perm]
                a, b = f(x), f(P @ x)
                if isinstance(a, tuple):
                    a, b = a[0], b[0]
                return (P @ a - b).abs().max().item()
        """),
    ),
    hints=(
        "for a correct attention the gap is 0, up to rounding. What must move besides the words?",
        "x is (B, T, D); f(x) and f(permuted x) are (B, T, E); perm moves the axis of T, the second-to-last.",
        "a = f(x); b = f(x with its words permuted); first item if a tuple; permute a the same way; largest absolute "
        "difference, "
        "as a number.",
    ),
)
