"""02.3: sentences of different lengths become one rectangle."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch02_text_to_vectors.shared import SMALL_PRINT, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import UNTOUCHED, hidden, second_call, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.data.batching import pad_sequences

EMBED, PAD = sections("embed pad")


def pad_batch(seqs: list, pad: int) -> Tensor:
    """The sequences as rows, padded at the end."""
    return pad_sequences(seqs, pad)


def inputs(g: torch.Generator, pad: int, *lengths: int, first: int = 3) -> Case:
    """Lists of these lengths with 87 different ids, the first of which is given."""
    return Case(([torch.randint(first, first + 87, (length,), generator=g).tolist() for length in lengths], pad))


def tensors(g: torch.Generator, pad: int, *lengths: int) -> Case:
    """Tensors of two dtypes, int32 first, and one list among them."""
    sequences, pad = inputs(g, pad, *lengths).arguments
    made = [torch.tensor(sequence) for sequence in sequences]
    return Case(([made[0].int(), sequences[1], *made[2:]], pad))


def int32_tensors(g: torch.Generator, pad: int, *lengths: int) -> Case:
    """Only tensors, all of dtype int32."""
    sequences, pad = inputs(g, pad, *lengths).arguments
    return Case(([torch.tensor(sequence, dtype=torch.int32) for sequence in sequences], pad))


def with_zeros(g: torch.Generator) -> Case:
    """Tokens that are 0, and some that are pad: one inside a sentence, one at the end of the longest."""
    sequences, pad = inputs(g, 95, 4, 6, 2).arguments
    sequences[0][1] = sequences[1][0] = sequences[2][1] = 0
    sequences[0][2] = sequences[1][5] = pad
    return Case(([*sequences, sequences[0]], pad))


def second_row(evidence: Evidence) -> str:
    return f"Your row 1 is {evidence.got[1].tolist()}; it should be {evidence.expected[1].tolist()}."


def first_row(evidence: Evidence) -> str:
    return f"With pad = {evidence.arguments[1]} your row 0 is {evidence.got[0].tolist()}."


RIGHT = answer("""
    def pad_batch(seqs, pad):
        longest = max(len(seq) for seq in seqs)
        batch = torch.full((len(seqs), longest), pad)
        for row, seq in enumerate(seqs):
            batch[row, :len(seq)] = torch.as_tensor(seq)
        return batch
""")

LISTS = answer("""
    def pad_batch(seqs, pad):
        longest = max(len(seq) for seq in seqs)
        rows = [list(seq) + [pad] * (longest - len(seq)) for seq in seqs]
        return torch.tensor(rows)
""")
LONGEST, ROW = "max(len(seq) for seq in seqs)", "list(seq) + [pad] * (longest - len(seq))"
ROWS, BATCH = f"rows = [{ROW} for seq in seqs]", "torch.tensor(rows)"

LIBRARY = answer("""
    def pad_batch(seqs, pad):
        tensors = [torch.as_tensor(seq) for seq in seqs]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=pad)
""")

# fmt: off
GREATEST = Family("the greatest taken for the longest", """max compares lists by their first numbers, not by their
    lengths, so the width is that of the wrong sentence. The longest decides.""")
# fmt: on

EXERCISE = Exercise(
    id="pad-batch", number="02.3", difficulty=1, minutes=10, visible_points=1, hidden_points=3,
    reference=pad_batch, section=PAD,
    probes=(
        visible("three sentences", Case(([[4, 5, 6, 7, 2], [6, 7, 2], [4, 8, 5, 2]], 0))),
        visible("pad = 9", Case(([[4, 2], [5, 6, 8, 3, 2, 7], [2]], 9))),
        hidden("tensors instead of lists", tensors, 91, 3, 7, 5, 1, checks=UNTOUCHED, announced_by="a 1-D tensor"),
        hidden("the longest comes last", int32_tensors, 92, 2, 3, 5, 11,
               announced_by="a 1-D tensor of any integer dtype"),
        hidden("real tokens with id 0", with_zeros, announced_by="A real token may have the id 0"),
        hidden("pad = -100", inputs, -100, 5, 2, 4, announced_by="`pad` may be negative"),
        hidden("one sentence", inputs, 93, 6, announced_by="B sequences"),
        hidden("exactly one pad", inputs, 98, 3, 2, 3, announced_by="T the length of the longest"),
        hidden("one token each", inputs, 90, 1, 1, announced_by="B sequences"),
        hidden("no padding needed", inputs, 94, 4, 4, 4, announced_by="T the length of the longest"),
        hidden("one long sentence among short ones, large ids", inputs, 96, 1, 1, 100, first=2**24, rtol=0.0,
               announced_by="whole numbers"),
        second_call(inputs, 97, 4, 2, 6, 3),
    ),
    mistakes=(
        mistake("pads on the left", RIGHT.but(":len(seq)", "longest - len(seq):"), PAD,
            """Row 1 starts with pads, so the first word is no longer at position 0, and from chapter 07 on positions
            have a meaning. The tokens come first, the pads after them.""", quotes=second_row),
        mistake("cut to the shortest", LISTS.but("max", "min").but(ROW, "list(seq)[:longest]"), PAD,
            """The sentences were cut to the shortest one. Words are never thrown away here: short sentences grow, long
            ones stay.""", quotes=sizes),
        mistake("as wide as the first", LISTS.but(LONGEST, "len(seqs[0])").but("list(seq)", "list(seq[:longest])"), PAD,
            "Your rows are as long as the *first* sentence. When a later one is longer it loses words. The longest "
            "decides.",
            quotes=sizes),
        mistake("as wide as the last", LISTS.but(LONGEST, "len(seqs[-1])").but("list(seq)", "list(seq[:longest])"), PAD,
            "Your rows are as long as the *last* sentence. The longest decides, wherever it is.", quotes=sizes),
        mistake("0 written in", RIGHT.but("longest), pad)", "longest), 0)"), PAD,
            "You filled up with 0 whatever pad is. Here 0 may be a word of its own.", quotes=first_row),
        mistake("every 0 replaced", LISTS.but("[pad]", "[0]").but("return " + BATCH, """
                  batch = torch.tensor(rows)
                  batch[batch == 0] = pad
                  return batch"""), PAD,
            """A real token whose id is 0 became a pad. Filling with 0 first and replacing the zeros later cannot tell
            the two apart."""),
        mistake("float", RIGHT.but("torch.full((len(seqs), longest), pad)", "torch.zeros(len(seqs), longest) + pad"),
                EMBED,
            """Your ids are float32. They are numbers of rows, and there is no row 4.0: a lookup needs integers, in
            torch the dtype long (int64)."""),
        families.IDS_THROUGH_FLOATS(RIGHT.but("torch.full((len(seqs), longest), pad)",
                          "torch.zeros(len(seqs), longest) + pad").ending_in(".long()"),
            EMBED, name="float on the way"),
        mistake("int32", RIGHT.but("longest), pad", "longest), pad, dtype=torch.int32"), EMBED,
            "Your ids are int32. Long (int64) is what torch's own functions expect, for example as labels of a loss."),
        mistake("always the same width", LISTS.but(LONGEST, "10").but("list(seq)", "list(seq[:longest])"), PAD,
            """Your rows are 10 long, whatever the batch. Every pad is computed for nothing, and a sentence beyond the
            fixed width is cut. The longest sentence *of this batch* decides.""", quotes=sizes),
        mistake("one pad too many", LISTS.but(LONGEST, LONGEST + " + 1"), PAD,
            "Every row ends in one pad more than it needs: the longest sentence needs none.", quotes=sizes),
        mistake("as wide as there are sentences", RIGHT.but(LONGEST, "len(seqs)"), PAD,
            """The rectangle is as wide as there are sentences. That is its height, B; its width is the number of tokens
            of the longest one."""),
        mistake("pads before the last token", LISTS.but(ROW, "[*seq[:-1], *[pad] * (longest - len(seq)), seq[-1]]"),
                PAD,
            "The last token was moved to the end of its row, after the pads. They follow "
            "after *all* tokens."),
        mistake("pads on both sides", LISTS.but(
                  ROW, "F.pad(torch.tensor([*seq]), ((longest - len(seq)) // 2, (longest - len(seq) + 1) // 2), "
                       "value=pad).tolist()"), PAD,
            """The pads are on both sides of the sentence, so its first token is at a different position in every row.
            Sentences begin at position 0.""", quotes=second_row),
        mistake("tokens backward", LISTS.but("list(seq)", "list(seq)[::-1]"), PAD,
            "The tokens of each sentence came back in the opposite order. Only pads are added; what was there stays "
            "as it is."),
        mistake("time before batch", LIBRARY.but("batch_first=True, ", ""), PAD,
            """The sentences are in the columns: time came first. That is the library's default; this course has the
            batch first, one sentence a row.""", quotes=sizes),
        mistake("sorted by length",
                LISTS.but("longest = ", "seqs = sorted(seqs, key=len, reverse=True)\n    longest = "), PAD,
            """The sentences changed places: the longest now comes first. Row i belongs to sentence i, or its
            translation would no longer match it."""),
        mistake("repeated instead of padded", LISTS.but(ROW, "(list(seq) * longest)[:longest]"), PAD,
            """The short sentences were filled up with their own words, begun again. A model would read them as text;
            only pad can be recognized and hidden.""", quotes=second_row),
        mistake("filled with the last word", LISTS.but("[pad]", "[seq[-1]]"), PAD,
            """The short sentences were filled up with their last token. A model would read it as text; only pad can be
            recognized and hidden.""", quotes=second_row),
        mistake("not padded at all", LISTS.but(ROW, "seq"), PAD,
            "torch.tensor needs rows of equal length, and sentences are not equally long. Make the lists equally long "
            "first."),
        mistake("always 6 wide", LISTS.but(LONGEST, "6"), PAD,
            """Every row is filled up to 6 ids, whatever the batch, and a longer sentence stays longer. The longest
            sentence *of this batch* decides.""", quotes=sizes),
        mistake("filled up to the length of the first", LISTS.but(LONGEST, "len(seqs[0])"), PAD,
            """Rows are filled up to a length that is not the largest, such as that of the *first* sentence or a fixed
            number. Where a sentence is longer, the rows still differ in length. The longest of this batch decides."""),
        mistake("only lists", LISTS.but("list(seq)", "seq"), PAD,
            "Lists work, tensors do not: + joins two lists, but on a tensor it adds numbers. The sequences may come "
            "as either."),
        mistake("only tensors", LIBRARY.but("[torch.as_tensor(seq) for seq in seqs]", "seqs"), PAD,
            "The library's function needs tensors, and the sequences may come as plain lists. Make tensors of them "
            "first."),
        mistake("a numpy array", LISTS.ending_in(".numpy()"), PAD,
            "A numpy array came back. The numbers are right, but a batch is a torch tensor of dtype long."),
        mistake("one pad only", LISTS.but("(longest - len(seq))", "(len(seq) < longest)"), PAD,
            """Each short sentence got one pad, so the rows still differ in length. Each row needs enough pads
            to become as long as the longest."""),
        mistake("one pad for every sentence", LISTS.but("(longest - len(seq))", "1"), PAD,
            """Every sentence got one pad, the longest too, so the rows still differ in length. Each row needs
            enough pads to become as long as the longest."""),
        mistake("a list of lists", LISTS.but("list(seq)", "[int(n) for n in seq]").but(BATCH, "rows"), PAD,
            "The rows are right, but they are still lists. A batch is one tensor of dtype long."),
        mistake("the caller's lists changed", LISTS.but(ROWS, """
                  rows = [seq.tolist() if isinstance(seq, torch.Tensor) else seq for seq in seqs]
                  for row in rows:
                      row += [pad] * (longest - len(row))"""), PAD,
            """Your function changed the caller's own lists for good: append, extend, += and writing to an index or a
            slice change a list. + makes a new one."""),
        mistake("the caller's lists changed, and no tensors", LISTS.but(ROWS, """
                  for seq in seqs:
                      while len(seq) < longest:
                          seq.append(pad)""").but(BATCH, "torch.tensor(seqs)"), PAD,
            """The pads were written into the caller's own lists, where they stay; and a sequence may come as a tensor,
            which has no append."""),
        mistake("no room beyond the first", RIGHT.but(LONGEST, "len(seqs[0])"), PAD,
            "Your rectangle is as wide as the *first* sentence, and a longer one does not fit in. The longest "
            "decides."),
        GREATEST(RIGHT.but(LONGEST, "len(max(seqs))"), PAD),
        GREATEST(LISTS.but(LONGEST, "len(max(seqs))"), PAD, name="the greatest taken for the longest, in lists"),
        mistake("stops after the first row", RIGHT.but("    return batch", "        return batch"), PAD,
            "Only the first row was filled: a `return` inside the loop ends all of it."),
        mistake("last token lost", RIGHT.but(":len(seq)", ":len(seq) - 1").but("tensor(seq)", "tensor(seq[:-1])"), PAD,
            "The last token of every sentence is missing; there is a pad in its place. A slice stops *before* its end.",
            quotes=second_row),
        mistake("all rows one and the same list", LISTS.but(ROWS, """
                  rows = [[pad] * longest] * len(seqs)
                  for row, seq in zip(rows, seqs):
                      row[:len(seq)] = list(seq)"""), PAD,
            "All your rows are equal: [row] * B holds one and the same list B times, so writing into one "
            "writes into all."),
        *usual_mistakes(RIGHT, squeezed=SMALL_PRINT, quotes_size=sizes),
        mistake("length as pad", LISTS.but("[pad]", "[len(seq)]"), PAD,
            "The short sentences were filled up with their own length. The value that fills them up is an "
            "argument: pad.",
            quotes=second_row),
        mistake("the number of pads as pad", LISTS.but("[pad]", "[longest - len(seq)]"), PAD,
            "The short sentences were filled up with the number of positions that are missing, not with pad.",
            quotes=second_row),
        mistake("the mask", LISTS.but(ROW, "[1] * len(seq) + [0] * (longest - len(seq))"), PAD,
            "1 and 0 came back: where a token is and where a pad is. Return the tokens themselves, then pads.",
            quotes=second_row),
    ),
    correct=(
        correct("lists, then a tensor", LISTS),
        correct("full and slice", RIGHT.but("longest), pad", "longest), pad, dtype=torch.long")),
        correct("full and slice, dtype by itself", RIGHT),
        correct("pad_sequence", """
            from torch.nn.utils.rnn import pad_sequence

            def pad_batch(sequences, value):
                tensors = [torch.as_tensor(s).long() for s in sequences]
                return pad_sequence(tensors, batch_first=True, padding_value=value)
        """),
        correct("F.pad and stack", """
            def pad_batch(seqs, pad):
                tensors = [torch.as_tensor(s, dtype=torch.long) for s in seqs]
                longest = max(t.numel() for t in tensors)
                return torch.stack([F.pad(t, (0, longest - t.numel()), value=pad) for t in tensors])
        """),
        correct("zip_longest", """
            from itertools import zip_longest

            def pad_batch(seqs, pad):
                columns = zip_longest(*[[int(n) for n in s] for s in seqs], fillvalue=pad)
                return torch.tensor(list(columns)).T
        """),
        correct("cell by cell", """
            def pad_batch(seqs, pad):
                longest = 0
                for s in seqs:
                    longest = max(longest, len(s))
                out = torch.empty(len(seqs), longest, dtype=torch.int64)
                for i in range(len(seqs)):
                    for j in range(longest):
                        out[i, j] = seqs[i][j] if j < len(seqs[i]) else pad
                return out
        """),
    ),
    hints=(
        "what decides how wide the rectangle is, and what goes into the cells that no sentence reaches?",
        "B lists of different lengths become (B, T), T the length of the longest, dtype long. Each row: its tokens, "
        "then pads.",
        "T = the largest length; for each sentence make a new row: the tokens, then T minus its length pads; "
        "turn the rows "
            "into one tensor.",
    ),
)
