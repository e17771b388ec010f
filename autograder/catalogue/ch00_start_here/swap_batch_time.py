"""00.3 swap_batch_time."""

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import _plain, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, sizes, turned

CONTRACT, SHAPE, TURN = sections("contract shape turn")


def swap_batch_time(x: Tensor) -> Tensor:
    """The first two axes exchanged: place [t, b] holds what was at [b, t]."""
    return x.transpose(0, 1)


def _labeled(B: int, T: int, D: int) -> Tensor:
    """Numbers that say where they were: 123 is sentence 1, word 2, feature 3."""
    return (
        100.0 * torch.arange(B)[:, None, None] + 10.0 * torch.arange(T)[:, None] + torch.arange(D, dtype=torch.float32)
    )


def _stands(evidence: Evidence) -> str:
    """The first row that is not where it belongs, told by its numbers, which say where they were."""
    got, expected = evidence.got, evidence.expected
    if tuple(got.shape) != tuple(expected.shape):
        return sizes(evidence)
    off = (got != expected).any(-1).nonzero()
    t, b = off[0].tolist()
    return f"At [{t}, {b}] word {t} of sentence {b} belongs: {_plain(expected[t, b])}. Yours holds {_plain(got[t, b])}."


EXERCISE = Exercise(
    id="swap-batch-time",
    number="00.3",
    visible_points=1,
    hidden_points=1,
    section=TURN,
    reference=swap_batch_time,
    probes=(
        Probe("2 sentences of 3 words", lambda g: Case((_labeled(2, 3, 4),)), hidden=False),
        Probe("other sizes", lambda g: Case((normal(g, 5, 3, 2),))),
        Probe("as many sentences as words", lambda g: Case((normal(g, 4, 4, 3),))),
        Probe("one sentence", lambda g: Case((normal(g, 1, 5, 3),))),
        Probe("one word", lambda g: Case((normal(g, 4, 1, 3),))),
        Probe("whole numbers", lambda g: Case((torch.randint(-90, 90, (3, 4, 2), generator=g),))),
        Probe("float64, transposed in memory", lambda g: Case((turned(normal(g, 3, 5, 4, dtype=torch.float64)),))),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 3, 3),)), also=UNTOUCHED),
        Probe("gradients", lambda g: Case((normal(g, 3, 2, 4, dtype=torch.float64),)), also=GRADIENTS),
    ),
    wrong=(
        known(
            "view or reshape",
            "def swap_batch_time(x):\n    return x.reshape(x.shape[1], x.shape[0], x.shape[2])\n",
            """The shape is right and the contents are scrambled: view and reshape never move a number, they cut the same strip
            anew. Nothing was turned.""",
            TURN,
            _stands,
        ),
        known(
            ".T",
            "def swap_batch_time(x):\n    return x.T\n",
            "The features came first and the sentences last: that is what .T does with three axes, or an exchange of axes 0 and 2. Only the first two axes, 0 and 1, change places.",
            TURN,
            sizes,
        ),
        known(
            "nothing done",
            "def swap_batch_time(x):\n    return x\n",
            "x came back as it was (or was taken apart and put together the same way). The first axis should count words now, the second sentences.",
            TURN,
            sizes,
        ),
        known(
            "nothing done when B equals T",
            "def swap_batch_time(x):\n    if x.shape[0] == x.shape[1]:\n        return x\n    return x.transpose(0, 1)\n",
            "When there are as many sentences as words, x came back as it was. The *shape* is the same then, but every word still has to change places.",
            TURN,
        ),
        known(
            "words and features exchanged",
            "def swap_batch_time(x):\n    return x.transpose(1, 2)\n",
            "You swapped words and features, the last two axes. Axes count from 0: the batch is 0, the words are 1, the features 2.",
            TURN,
            sizes,
        ),
        known(
            "axes moved round, features first",
            "def swap_batch_time(x):\n    return x.permute(2, 0, 1)\n",
            "All three axes moved, and the features came first. Read the list of permute as: which *old* axis comes here? The last one stays where it is.",
            TURN,
            sizes,
        ),
        known(
            "axes moved round, sentences last",
            "def swap_batch_time(x):\n    return x.permute(1, 2, 0)\n",
            "All three axes moved, and the sentences came last. Read the list of permute as: which *old* axis comes here? The last one stays where it is.",
            TURN,
            sizes,
        ),
        known(
            "only two axes named",
            "def swap_batch_time(x):\n    return x.permute(1, 0)\n",
            "permute wants to hear about *every* axis, also about those that stay: three axes, three numbers.",
            TURN,
        ),
        known(
            "torch.t",
            "def swap_batch_time(x):\n    return x.t()\n",
            "t() is for tables with two axes; yours has three. There is another word for exchanging two axes of many.",
            TURN,
        ),
        known(
            "mirrored instead of turned",
            "def swap_batch_time(x):\n    return x.flip(0, 1)\n",
            "flip reverses the order along an axis; the axes themselves stay where they are. They have to change places.",
            TURN,
            sizes,
        ),
        known(
            "transpose with every axis",
            "def swap_batch_time(x):\n    return x.transpose(1, 0, 2)\n",
            "In torch, transpose takes the two axes that change places and nothing more. (NumPy's takes all of them; torch calls that permute.)",
            TURN,
        ),
        known(
            "room of the old shape",
            """
            def swap_batch_time(x):
                out = torch.zeros_like(x)
                for b in range(x.shape[0]):
                    for t in range(x.shape[1]):
                        out[t, b] = x[b, t]
                return out
            """,
            "The new tensor was made with the shape of x, (B, T, D), so there is no place [t, b] for every word. It needs the shape (T, B, D).",
            TURN,
        ),
        known(
            "time backward",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).flip(0)\n",
            "Time runs backward: the last word stands first. Exchanging two axes changes no order along either.",
            TURN,
            _stands,
        ),
        known(
            "batch backward",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).flip(1)\n",
            "The sentences stand in the opposite order. Exchanging two axes changes no order along either.",
            TURN,
            _stands,
        ),
        known(
            "exchanged, then cut again",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).reshape(x.shape)\n",
            "The axes were exchanged and then the strip was cut back into the *old* shape, which scrambles the words. The shape changes: that is the point.",
            TURN,
            sizes,
        ),
        known(
            "laid flat",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).reshape(-1, x.shape[2])\n",
            "Words and sentences lie along one axis now, end to end. The result still has three: (T, B, D). Stacking pieces makes a new axis, joining them does not.",
            SHAPE,
            sizes,
        ),
        known(
            "first sentence only",
            "def swap_batch_time(x):\n    return x[0]\n",
            "Only the first sentence came back, and an axis is missing. The result is (T, B, D), all sentences side by side.",
            SHAPE,
            sizes,
        ),
        known(
            "a list",
            "def swap_batch_time(x):\n    return [x[:, t] for t in range(x.shape[1])]\n",
            "A Python list came back. One tensor of shape (T, B, D) is wanted; torch can stack a list of tensors.",
            TURN,
            shows=lambda evidence: isinstance(evidence.got, list),
        ),
        known(
            "always float32",
            """
            def swap_batch_time(x):
                B, T, D = x.shape
                out = torch.zeros(T, B, D)
                for b in range(B):
                    for t in range(T):
                        out[t, b] = x[b, t]
                return out
            """,
            "The dtype changed to float32. A new tensor is float32 unless told otherwise; the result keeps the dtype of its input.",
            CONTRACT,
        ),
        known(
            "cut off from the gradient",
            "def swap_batch_time(x):\n    return x.detach().transpose(0, 1)\n",
            "The values are right, but no gradient flows back: .detach(), .data or numpy cut the way, and nothing behind it could ever learn.",
            CONTRACT,
        ),
        known(
            "caller's tensor turned",
            "def swap_batch_time(x):\n    if x.requires_grad:\n        return x.transpose(0, 1)\n    return x.transpose_(0, 1)\n",
            "Your function turned the caller's own tensor: a method that ends in _ works in place. Whoever called it now holds another shape.",
            CONTRACT,
        ),
        known(
            "through numpy",
            "def swap_batch_time(x):\n    return torch.from_numpy(x.numpy().transpose(1, 0, 2))\n",
            "The values are right, and your code stops where a gradient is asked for: NumPy knows nothing of gradients. Stay in torch from beginning to end.",
            CONTRACT,
        ),
        known(
            "one sentence squeezed",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).squeeze()\n",
            "With one sentence, or one word, an axis of size 1 vanished. squeeze() removes every such axis; these must stay.",
            SHAPE,
        ),
        known(
            "one word squeezed",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).squeeze(0)\n",
            "With one word, the axis of size 1 that counts words vanished. squeeze() takes it away; it must stay.",
            SHAPE,
        ),
        known(
            "view after turning",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).view(x.shape[1], x.shape[0], -1).view(-1).view(x.shape[1], x.shape[0], -1)\n",
            """view refuses here, and for a good reason: after an exchange of axes the numbers no longer lie one after the other
            on the strip. The exchange alone is the whole answer; no view has to follow.""",
            TURN,
        ),
    ),
    right=(
        right("transpose", "def swap_batch_time(x):\n    return x.transpose(0, 1)\n"),
        right("transpose, other names", "def swap_batch_time(batch):\n    return torch.transpose(batch, 1, 0)\n"),
        right("permute", "def swap_batch_time(x):\n    return x.permute(1, 0, 2)\n"),
        right("movedim", "def swap_batch_time(x):\n    return x.movedim(0, 1)\n"),
        right("swapaxes, contiguous", "def swap_batch_time(x):\n    return x.swapaxes(-3, -2).contiguous()\n"),
        right("einsum", 'def swap_batch_time(x):\n    return torch.einsum("btd->tbd", x)\n'),
        right("stack", "def swap_batch_time(x):\n    return torch.stack([x[:, t] for t in range(x.size(1))])\n"),
        right("stack of sentences", "def swap_batch_time(x):\n    return torch.stack(list(x), dim=1)\n"),
        right("unbind", "def swap_batch_time(x):\n    return torch.stack(x.unbind(1), 0)\n"),
        right(
            "loops",
            """
            def swap_batch_time(x):
                B, T, D = x.shape
                out = torch.empty(T, B, D, dtype=x.dtype)
                for b in range(B):
                    for t in range(T):
                        for d in range(D):
                            out[t, b, d] = x[b, t, d]
                return out
            """,
        ),
        right(
            "by index",
            """
            def swap_batch_time(x):
                t = torch.arange(x.shape[1])[:, None]
                b = torch.arange(x.shape[0])[None, :]
                return x[b, t]
            """,
        ),
        right(
            "strip cut by hand",
            """
            def swap_batch_time(x):
                B, T, D = x.shape
                order = torch.arange(B * T).view(B, T).T.reshape(-1)
                return x.reshape(B * T, D)[order].view(T, B, D)
            """,
        ),
    ),
    hints=(
        "123 is sentence 1, word 2, feature 3. At which place should it stand afterward?",
        "(B, T, D) becomes (T, B, D); the number at [b, t, d] moves to [t, b, d]. Cutting the strip anew moves nothing.",
        "exchange axis 0 with axis 1, leave the last axis alone, and return that.",
    ),
)
