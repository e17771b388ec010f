"""02.3 pad_batch."""

import torch
from torch import Tensor

from autograder.catalogue.ch02_text_to_vectors.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import UNTOUCHED, known, right, sizes
from transformer_ref.data.batching import pad_sequences

EMBED, PAD = sections("embed pad")


def pad_batch(seqs: list, pad: int) -> Tensor:
    """The sequences as rows, filled up with pad at the end."""
    return pad_sequences(seqs, pad)


def _sequences(g: torch.Generator, *lengths: int) -> list[list[int]]:
    return [torch.randint(3, 90, (length,), generator=g).tolist() for length in lengths]


def _with_zeros(g: torch.Generator) -> Case:
    sequences = _sequences(g, 4, 6, 2)
    sequences[0][1] = sequences[1][0] = sequences[2][1] = 0
    return Case((sequences, 95))


_FULL = """
def pad_batch(seqs, pad):
    out = torch.full((len(seqs), max(len(s) for s in seqs)), pad{dtype})
    for row, seq in enumerate(seqs):
        out[row, {where}] = torch.as_tensor({what})
    return out{end}
"""


def _full(where: str = ":len(seq)", what: str = "seq", dtype: str = "", end: str = "") -> str:
    return _FULL.format(where=where, what=what, dtype=dtype, end=end)


def _second_row(evidence: Evidence) -> str:
    return f"Your row 1 is {evidence.got[1].tolist()}; it should be {evidence.expected[1].tolist()}."


EXERCISE = Exercise(
    id="pad-batch",
    number="02.3",
    visible_points=1,
    hidden_points=3,
    section=PAD,
    reference=pad_batch,
    probes=(
        Probe(
            "three sentences",
            lambda g: Case(([[4, 5, 6, 7, 2], [6, 7, 2], [4, 8, 5, 2]], 0)),
            hidden=False,
        ),
        Probe("pad = 9", lambda g: Case(([[4, 2], [5, 6, 8, 3, 2, 7], [2]], 9)), hidden=False),
        Probe(
            "tensors instead of lists",
            lambda g: Case(([torch.tensor(row) for row in _sequences(g, 3, 7, 5, 1)], 91)),
        ),
        Probe("the longest comes last", lambda g: Case((_sequences(g, 2, 3, 5, 11), 92))),
        Probe("real tokens with id 0", _with_zeros),
        Probe("pad = -100", lambda g: Case((_sequences(g, 5, 2, 4), -100))),
        Probe("one sentence", lambda g: Case((_sequences(g, 6), 93))),
        Probe("no padding needed", lambda g: Case((_sequences(g, 4, 4, 4), 94))),
        Probe("one long sentence among short ones", lambda g: Case((_sequences(g, 1, 1, 40), 96))),
        Probe("nothing else is touched", lambda g: Case((_sequences(g, 4, 2, 6, 3), 97)), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "pads on the left",
            _full(where="out.shape[1] - len(seq):"),
            """Row 1 starts with pads, so the first word no longer stands at position 0, and from chapter 07 on positions
            have a meaning. The tokens come first, the pads after them.""",
            PAD,
            _second_row,
        ),
        known(
            "cut to the shortest",
            """
            def pad_batch(seqs, pad):
                shortest = min(len(s) for s in seqs)
                return torch.stack([torch.as_tensor(s[:shortest]) for s in seqs])
            """,
            "The sentences were cut to the shortest one. Words are never thrown away here: short sentences grow, long ones stay.",
            PAD,
            sizes,
        ),
        known(
            "as wide as the first",
            """
            def pad_batch(seqs, pad):
                width = len(seqs[0])
                rows = [list(s[:width]) + [pad] * (width - len(s)) for s in seqs]
                return torch.tensor(rows)
            """,
            "Your rows are as long as the *first* sentence. When a later one is longer it loses words. The longest decides.",
            PAD,
            sizes,
        ),
        known(
            "as wide as the last",
            """
            def pad_batch(seqs, pad):
                width = len(seqs[-1])
                rows = [list(s[:width]) + [pad] * (width - len(s)) for s in seqs]
                return torch.tensor(rows)
            """,
            "Your rows are as long as the *last* sentence. The longest decides, wherever it stands.",
            PAD,
            sizes,
        ),
        known(
            "0 written in",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [0] * (width - len(s)) for s in seqs])
            """,
            "You filled up with 0 whatever pad is. Here 0 may be a word of its own.",
            PAD,
            lambda e: f"With pad = {e.arguments[1]} your row 0 is {e.got[0].tolist()}.",
        ),
        known(
            "every 0 replaced",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                out = torch.tensor([list(s) + [0] * (width - len(s)) for s in seqs])
                out[out == 0] = pad
                return out
            """,
            "A real token whose id is 0 was turned into a pad. Filling with 0 first and replacing the zeros later cannot tell the two apart.",
            PAD,
        ),
        known(
            "float",
            """
            def pad_batch(seqs, pad):
                out = torch.zeros(len(seqs), max(len(s) for s in seqs)) + pad
                for row, seq in enumerate(seqs):
                    out[row, :len(seq)] = torch.as_tensor(seq)
                return out
            """,
            "Your ids are float32. They are numbers of rows, and there is no row 4.0: a lookup needs integers, in torch the dtype long (int64).",
            EMBED,
        ),
        known(
            "int32",
            _full(dtype=", dtype=torch.int32"),
            "Your ids are int32. Long (int64) is what torch's own functions expect, for example as labels of a loss.",
            EMBED,
        ),
        known(
            "always the same width",
            """
            def pad_batch(seqs, pad):
                width = 10
                return torch.tensor([(list(s) + [pad] * width)[:width] for s in seqs])
            """,
            """Your rows are 10 long, whatever the batch. Every pad is computed for nothing, and a sentence beyond the fixed
            width is cut. The longest sentence *of this batch* decides.""",
            PAD,
            sizes,
        ),
        known(
            "one pad too many",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs) + 1
                return torch.tensor([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
            "Every row ends in one pad more than it needs: the longest sentence needs none.",
            PAD,
            sizes,
        ),
        known(
            "time before batch",
            """
            def pad_batch(seqs, pad):
                tensors = [torch.as_tensor(s) for s in seqs]
                return torch.nn.utils.rnn.pad_sequence(tensors, padding_value=pad)
            """,
            "The sentences stand in the columns: time came first. That is the library's default; this course has the batch first, one sentence a row.",
            PAD,
            sizes,
        ),
        known(
            "sorted by length",
            """
            def pad_batch(seqs, pad):
                seqs = sorted(seqs, key=len, reverse=True)
                width = len(seqs[0])
                return torch.tensor([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
            "The sentences changed places: the longest now comes first. Row i belongs to sentence i, or its translation would no longer be beside it.",
            PAD,
        ),
        known(
            "repeated instead of padded",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([(list(s) * width)[:width] for s in seqs])
            """,
            "The short sentences were filled up with their own words, begun again. A model would read them as text; only pad can be recognized and hidden.",
            PAD,
            _second_row,
        ),
        known(
            "filled with the last word",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [s[-1]] * (width - len(s)) for s in seqs])
            """,
            "The short sentences were filled up with their last token. A model would read it as text; only pad can be recognized and hidden.",
            PAD,
            _second_row,
        ),
        known(
            "not padded at all",
            """
            def pad_batch(seqs, pad):
                return torch.tensor(seqs)
            """,
            "torch.tensor wants a rectangle, and sentences are not equally long. Make the lists equally long first.",
            PAD,
        ),
        known(
            "only lists",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([s + [pad] * (width - len(s)) for s in seqs])
            """,
            "Lists work, tensors do not: + joins two lists, but on a tensor it adds numbers. The sequences may come as either.",
            PAD,
        ),
        known(
            "only tensors",
            """
            def pad_batch(seqs, pad):
                return torch.nn.utils.rnn.pad_sequence(seqs, batch_first=True, padding_value=pad)
            """,
            "The library's function wants tensors, and the sequences may come as plain lists. Make tensors of them first.",
            PAD,
        ),
        known(
            "a numpy array",
            """
            import numpy as np

            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return np.array([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
            "A numpy array came back. The numbers are right, but a batch is a torch tensor of dtype long.",
            PAD,
        ),
        known(
            "one pad only",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [pad] if len(s) < width else list(s) for s in seqs])
            """,
            "Each short sentence got one pad, so the rows still differ in length. As many are needed as are missing.",
            PAD,
        ),
        known(
            "a list of lists",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return [[int(n) for n in s] + [pad] * (width - len(s)) for s in seqs]
            """,
            "The rows are right, but they are still lists. A batch is one tensor of dtype long.",
            PAD,
        ),
        known(
            "the caller's lists changed",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                rows = []
                for seq in seqs:
                    seq = seq.tolist() if isinstance(seq, torch.Tensor) else seq
                    while len(seq) < width:
                        seq.append(pad)
                    rows.append(seq)
                return torch.tensor(rows)
            """,
            "The pads were written into the caller's own lists, where they stay. append, extend and += change a list; + makes a new one.",
            PAD,
        ),
        known(
            "the caller's lists changed, and no tensors",
            """
            def pad_batch(seqs, pad):
                width = max(len(seq) for seq in seqs)
                for seq in seqs:
                    while len(seq) < width:
                        seq.append(pad)
                return torch.tensor(seqs)
            """,
            "The pads were written into the caller's own lists, where they stay; and a sequence may come as a tensor, which has no append.",
            PAD,
        ),
        known(
            "no room beyond the first",
            _full().replace("max(len(s) for s in seqs)", "len(seqs[0])"),
            "Your rectangle is as wide as the *first* sentence, and a longer one does not fit in. The longest decides.",
            PAD,
        ),
        known(
            "the greatest taken for the longest",
            _full().replace("max(len(s) for s in seqs)", "len(max(seqs))"),
            "max compares lists by their first numbers, not by their lengths, so the width is that of another sentence. The longest decides.",
            PAD,
        ),
        known(
            "stops after the first row",
            _full().replace("    return out", "        return out"),
            "Only the first row was filled: a `return` inside the loop ends all of it.",
            PAD,
        ),
        known(
            "last token lost",
            _full(where=": len(seq) - 1", what="seq[:-1]"),
            "The last token of every sentence is missing; a pad stands in its place. A slice stops *before* its end.",
            PAD,
            _second_row,
        ),
        known(
            "a single sentence loses its row",
            _full(end=".squeeze()"),
            "With one sentence the result has one axis. squeeze throws away every axis of size 1; a batch of one is still (1, T).",
            PAD,
        ),
    ),
    right=(
        right(
            "lists, then a tensor",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
        ),
        right("full and slice", _full(dtype=", dtype=torch.long")),
        right("full and slice, dtype by itself", _full()),
        right(
            "pad_sequence",
            """
            from torch.nn.utils.rnn import pad_sequence

            def pad_batch(sequences, value):
                return pad_sequence([torch.as_tensor(s) for s in sequences], batch_first=True, padding_value=value)
            """,
        ),
        right(
            "F.pad and stack",
            """
            def pad_batch(seqs, pad):
                tensors = [torch.as_tensor(s, dtype=torch.long) for s in seqs]
                longest = max(t.numel() for t in tensors)
                return torch.stack([F.pad(t, (0, longest - t.numel()), value=pad) for t in tensors])
            """,
        ),
        right(
            "zip_longest",
            """
            from itertools import zip_longest

            def pad_batch(seqs, pad):
                columns = zip_longest(*[[int(n) for n in s] for s in seqs], fillvalue=pad)
                return torch.tensor(list(columns)).T
            """,
        ),
        right(
            "cell by cell",
            """
            def pad_batch(seqs, pad):
                longest = 0
                for s in seqs:
                    longest = max(longest, len(s))
                out = torch.empty(len(seqs), longest, dtype=torch.int64)
                for i in range(len(seqs)):
                    for j in range(longest):
                        out[i, j] = seqs[i][j] if j < len(seqs[i]) else pad
                return out
            """,
        ),
    ),
    hints=(
        "who decides how wide the rectangle is, and what stands in the cells that no sentence reaches?",
        "B lists of different lengths become (B, T), T the length of the longest, dtype long. Each row: its tokens, then pads.",
        "T = the largest length; for each sentence make a new row: the tokens, then T minus its length pads; turn the rows into one tensor.",
    ),
)
