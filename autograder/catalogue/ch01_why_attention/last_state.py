"""01.4 last_state."""

import torch
from torch import Tensor

from autograder.catalogue.ch01_why_attention.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row, sizes, turned

(PADDING,) = sections("padding")


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


EXERCISE = Exercise(
    id="last-state",
    number="01.4",
    visible_points=1,
    hidden_points=2,
    section=PADDING,
    reference=last_state,
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
    wrong=(
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
    right=(
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
