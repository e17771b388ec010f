"""00.3: words first, then sentences."""

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import NO_NUMPY, is_list, plain, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, UNTOUCHED, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import sizes

CONTRACT, SHAPE, TURN = sections("contract shape turn")


def swap_batch_time(x: Tensor) -> Tensor:
    """The first two axes exchanged: [t, b] of the result is [b, t] of the input."""
    return x.transpose(0, 1)


def labeled(B: int, T: int, D: int) -> Tensor:
    """Numbers that encode their position: 123 is sentence 1, word 2, feature 3."""
    return 100.0 * torch.arange(B)[:, None, None] + 10.0 * torch.arange(T)[:, None] + torch.arange(D,
        dtype=torch.float32)


def batch(g: torch.Generator, B: int, T: int, D: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, T, D, dtype=dtype),))


def whole_numbers(g: torch.Generator, B: int, T: int, D: int) -> Case:
    """Integers that float32 does not hold, and the largest one, which float64 does not hold either."""
    x = torch.randint(-(2**62), 2**62, (B, T, D), generator=g)
    x[0, 0, 0] = 2**63 - 1
    return Case((x,))


def truth_values(g: torch.Generator, B: int, T: int, D: int) -> Case:
    return Case((torch.rand(B, T, D, generator=g) < 0.5,))


def far_away(g: torch.Generator) -> Case:
    return Case((normal(g, 3, 2, 4, dtype=torch.float64) + FAR,))


def stands(evidence: Evidence) -> str:
    """The first misplaced row, by its numbers, which encode their position."""
    got, expected = evidence.got, evidence.expected
    if tuple(got.shape) != tuple(expected.shape):
        return sizes(evidence)
    t, b = (got != expected).any(-1).nonzero()[0].tolist()
    wanted, yours = plain(expected[t, b]), plain(got[t, b])
    return f"Position [{t}, {b}] should hold word {t} of sentence {b}: {wanted}. Yours holds {yours}."


RIGHT = answer("""
    def swap_batch_time(x):
        swapped = x.transpose(0, 1)
        return swapped
""")
SWAP = "x.transpose(0, 1)"
LOOPS = answer("""
    def swap_batch_time(x):
        B, T, D = x.shape
        swapped = torch.empty(T, B, D, dtype=x.dtype)
        for b in range(B):
            for t in range(T):
                for d in range(D):
                    swapped[t, b, d] = x[b, t, d]
        return swapped
""")

EXERCISE = Exercise(
    id="swap-batch-time", number="00.3", difficulty=1, minutes=4, visible_points=1, hidden_points=1,
    reference=swap_batch_time, section=TURN,
    probes=(
        visible("2 sentences of 3 words", Case((labeled(2, 3, 4),))),
        *usual_probes(batch, other=(5, 3, 2), smallest=(1, 5, 3), common=(3, 2, 4), precise=far_away),
        hidden("as many sentences as words", batch, 4, 4, 3, checks=UNTOUCHED, announced_by="(B, T, D)"),
        hidden("one word", batch, 4, 1, 3, announced_by="(B, T, D)"),
        hidden("one feature", batch, 3, 4, 1, announced_by="all sizes at least 1"),
        hidden("one sentence of one word, truth values", truth_values, 1, 1, 3, announced_by="all sizes at least 1"),
        hidden("whole numbers", whole_numbers, 3, 4, 2, rtol=0.0, announced_by="of any dtype"),
        hidden("truth values, many words", truth_values, 3, 40, 12, announced_by="of any dtype"),
    ),
    mistakes=(
        mistake("view or reshape", RIGHT.but(SWAP, "x.reshape(x.shape[1], x.shape[0], x.shape[2])"), TURN,
            """The shape is right and the contents are scrambled: view and reshape never move a number, they only change
            the shape. Nothing was transposed.""", quotes=stands),
        mistake(".T", RIGHT.but(SWAP, "x.T"), TURN,
            """The features came first and the sentences last: that is what .T does with three axes, or an exchange of
            axes 0 and 2. Only the first two axes, 0 and 1, change places.""", quotes=sizes),
        mistake("nothing done", RIGHT.but(SWAP, "x"), TURN,
            """x came back as it was (or was taken apart and put together the same way). The first axis should count
            words now, the second sentences. A method such as permute leaves x unchanged and returns a new tensor: alone
            on a line, its result is lost.""", quotes=sizes),
        mistake("nothing done when B equals T", RIGHT.but(SWAP, "x if x.shape[0] == x.shape[1] else x.transpose(0, 1)"),
                TURN,
            """When there are as many sentences as words, x came back as it was. The *shape* is the same then, but every
            word still has to change places."""),
        mistake("words and features exchanged", RIGHT.but("(0, 1)", "(1, 2)"), TURN,
            """You swapped words and features, the last two axes. Axes count from 0: the batch is 0, the words are 1,
            the features 2.""", quotes=sizes),
        mistake("axes moved round, features first", RIGHT.but(SWAP, "x.permute(2, 0, 1)"), TURN,
            """All three axes moved, and the features came first. Read the list of permute as: which *old* axis comes
            here? The last one stays where it is.""", quotes=sizes),
        mistake("axes moved round, sentences last", RIGHT.but(SWAP, "x.permute(1, 2, 0)"), TURN,
            """All three axes moved, and the sentences came last. Read the list of permute as: which *old* axis comes
            here? The last one stays where it is.""", quotes=sizes),
        mistake("only two axes named", RIGHT.but(SWAP, "x.permute(1, 0)"), TURN,
            "permute needs *every* axis, including those that stay: three axes, three numbers."),
        mistake("torch.t", RIGHT.but(SWAP, "x.t()"), TURN,
            "t() is for tables with two axes; yours has three. A different method exchanges two axes of many."),
        mistake("mirrored instead of turned", RIGHT.but("transpose", "flip"), TURN,
            "flip reverses the order along an axis; the axes themselves stay where they are. They have to "
            "change places.",
            quotes=sizes),
        mistake("transpose with every axis", RIGHT.but("(0, 1)", "(1, 0, 2)"), TURN,
            """In torch, transpose takes the two axes that change places and nothing more. (NumPy's takes all of them;
            torch calls that permute.)"""),
        mistake("room of the old shape", LOOPS.but("torch.empty(T, B, D, dtype=x.dtype)", "torch.zeros_like(x)"), TURN,
            """The new tensor was made with the shape of x, (B, T, D), so there is no place [t, b] for every word. It
            needs the shape (T, B, D)."""),
        mistake("time backward", RIGHT.ending_in(".flip(0)"), TURN,
            "Time runs backward: the last word comes first. Exchanging two axes does not reverse either of them.",
            quotes=stands),
        mistake("batch backward", RIGHT.ending_in(".flip(1)"), TURN,
            "The sentences are in the opposite order. Exchanging two axes does not reverse either of them.",
            quotes=stands),
        mistake("exchanged, then cut again", RIGHT.ending_in(".reshape(x.shape)"), TURN,
            """The axes were exchanged and then the strip was cut back into the *old* shape, which scrambles the words.
            The shape changes: that is the point.""", quotes=sizes),
        mistake("laid flat", RIGHT.ending_in(".reshape(-1, x.shape[2])"), SHAPE,
            """Words and sentences are along one axis now, end to end. The result still has three: (T, B, D). Stacking
            pieces makes a new axis, joining them does not.""", quotes=sizes),
        mistake("sentences side by side", RIGHT.but(SWAP, "torch.cat(list(x), dim=1)"), SHAPE,
            """The sentences were laid side by side along the features, so an axis is gone. The result still has three:
            stacking makes a new axis, joining does not.""", quotes=sizes),
        mistake("first sentence only", RIGHT.but(SWAP, "x[0]"), SHAPE,
            """Only the first sentence came back, and an axis is missing. The result is (T, B, D), all sentences side by
            side.""", quotes=sizes),
        mistake("first feature only", RIGHT.but(SWAP, "x[:, :, 0].T"), SHAPE,
            """Only feature 0 of each word came back, and an axis is missing: you exchanged the axes of a 2-D table. The
            result is (T, B, D), with all features of a word.""", quotes=sizes),
        mistake("the sizes alone", RIGHT.but(SWAP, "(x.shape[1], x.shape[0], x.shape[2])"), TURN,
            "The three sizes came back. They are the shape of the result; return the tensor itself, with its numbers "
            "moved."),
        mistake("a list", RIGHT.but(SWAP, "[x[:, t] for t in range(x.shape[1])]"), TURN,
            "A Python list came back. Return one tensor of shape (T, B, D); torch can stack a list of tensors.",
            shows=is_list),
        mistake("always float32", LOOPS.but(", dtype=x.dtype", ""), CONTRACT,
            """The dtype changed to float32. A new tensor is float32 unless you give it a dtype; the result keeps
            the dtype of its input."""),
        *usual_mistakes(RIGHT, arguments="x", detached=CONTRACT, single=CONTRACT, squeezed=CONTRACT, viewed=TURN),
        mistake("caller's tensor turned", RIGHT.but(SWAP, "x.transpose_(0, 1)"), CONTRACT,
            """Your function transposed the caller's own tensor: a method that ends in _ works in place. The axes
            of the caller's tensor are exchanged, too."""),
        mistake("through numpy", RIGHT.but(SWAP, "torch.from_numpy(x.numpy().transpose(1, 0, 2))"), CONTRACT, NO_NUMPY),
        mistake("view after turning", RIGHT.ending_in(".view(-1).view(x.shape[1], x.shape[0], -1)"), TURN,
            """view raises an error here, and for a good reason: after a transpose the numbers are no longer contiguous
            in memory. Exchanging the axes is the whole answer; you need no view after it."""),
        mistake("last sentence left out", LOOPS.but("torch.empty", "torch.zeros").but("range(B)", "range(B - 1)"), TURN,
            "The last sentence is all zeros: a range that ends at B - 1 stops before it.", quotes=stands),
        mistake("last word left out", RIGHT.ending_in("[:-1]"), TURN,
            "The last word of every sentence is missing: a range that ends at T - 1 stops before it."),
    ),
    correct=(
        correct("transpose", RIGHT),
        correct("transpose, other names", formula("swap_batch_time(batch)", "torch.transpose(batch, 1, 0)")),
        correct("permute", RIGHT.but(SWAP, "x.permute(1, 0, 2)")),
        correct("movedim", RIGHT.but("transpose", "movedim")),
        correct("swapaxes, contiguous", RIGHT.but(SWAP, "x.swapaxes(-3, -2).contiguous()")),
        correct("einsum", RIGHT.but(SWAP, 'torch.einsum("btd->tbd", x)')),
        correct("stack", RIGHT.but(SWAP, "torch.stack([x[:, t] for t in range(x.size(1))])")),
        correct("stack of sentences", RIGHT.but(SWAP, "torch.stack(list(x), dim=1)")),
        correct("unbind", RIGHT.but(SWAP, "torch.stack(x.unbind(1), 0)")),
        correct("loops", LOOPS),
        correct("by index", """
            def swap_batch_time(x):
                t = torch.arange(x.shape[1])[:, None]
                b = torch.arange(x.shape[0])[None, :]
                return x[b, t]
        """),
        correct("strip cut by hand", """
            def swap_batch_time(x):
                B, T, D = x.shape
                order = torch.arange(B * T).view(B, T).T.reshape(-1)
                return x.reshape(B * T, D)[order].view(T, B, D)
        """),
    ),
    hints=(
        "123 is sentence 1, word 2, feature 3. At which position should it be afterward?",
        "(B, T, D) becomes (T, B, D); the number at [b, t, d] moves to [t, b, d]. A reshape moves nothing.",
        "exchange axis 0 with axis 1, keep the last axis, and return that.",
    ),
)
