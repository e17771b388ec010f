"""10.1: what the decoder reads while it learns."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch10_training.shared import BOS, LARGE_ID, TI_AMO, TWO, ids_of_the_first, sections, sentences
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.data import batching

SHIFT, FORCING = sections("shift forcing")


def shift_right(labels: Tensor, bos: int) -> Tensor:
    """bos in front, the last label dropped, (B, T)."""
    return batching.shift_right(labels, bos)


def inputs(g: torch.Generator, B: int, T: int, bos: int, pad: int = 0, first: int = 3) -> Case:
    return Case((sentences(g, B, T, pad, first, first + 40), bos))


def twice_the_same(g: torch.Generator) -> Case:
    labels = sentences(g, 4, 6, 0)
    labels[2] = labels[0]
    return Case((labels, 31))


def transposed(g: torch.Generator) -> Case:
    return Case((sentences(g, 3, 7, 0).T.contiguous().T, 41))


RIGHT = answer("""
    def shift_right(labels, bos):
        first = torch.full_like(labels[:, :1], bos)
        rest = labels[:, :-1]
        return torch.cat([first, rest], dim=1)
""")
FIRST, REST, JOINED = "torch.full_like(labels[:, :1], bos)", "labels[:, :-1]", "torch.cat([first, rest], dim=1)"

EXERCISE = Exercise(
    id="shift-right", number="10.1", difficulty=1, minutes=10, visible_points=1, hidden_points=3,
    reference=shift_right, section=SHIFT,
    probes=(
        visible("Ti amo molto", Case((TI_AMO, BOS))),
        visible("two sentences, one of them padded", Case((TWO, BOS))),
        visible("bos = 17, no <eos>", Case((torch.tensor([[12, 5, 3, 8], [6, 9, 0, 0]]), 17))),
        hidden("other sizes, a sentence that comes twice", twice_the_same, announced_by=PROMISED),
        hidden("one sentence of one label", inputs, 1, 1, 11, announced_by=PROMISED),
        hidden("bos = 0", inputs, 3, 5, 0, 29, announced_by="bos: the id to begin with, any id"),
        hidden("labels of -100", inputs, 3, 6, 17, -100, announced_by="the ids may be negative"),
        hidden("transposed in memory", transposed, announced_by=PROMISED),
        hidden("large ids", inputs, 2, 5, LARGE_ID + 3, 0, LARGE_ID + 5, rtol=0.0, announced_by="or very large"),
        second_call(inputs, 4, 6, 13),
    ),
    mistakes=(
        mistake("not shifted", formula("shift_right(labels, bos)", "labels.clone()"), FORCING,
            """The input *is* the answer: position t reads the very word that it has to predict. In training the loss
            reaches 0.00, and the translations are nonsense.""", quotes=ids_of_the_first),
        mistake("shifted to the left",
                formula("shift_right(labels, bos)",
                        "torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], bos)], dim=1)"),
            FORCING, """This is a shift to the *left*: position t reads the word after the one that it has to predict,
            which is the future. Everything moves one position to the right.""", quotes=ids_of_the_first),
        mistake("shifted to the left, the end repeated",
                formula("shift_right(labels, bos)", "torch.cat([labels[:, 1:], labels[:, -1:]], dim=1)"),
            FORCING, "Everything moved to the *left*, and bos is nowhere. Position t should read the word *before* the "
                     "one that it has to predict.",
            quotes=ids_of_the_first),
        mistake("rolled", formula("shift_right(labels, bos)", "labels.roll(1, dims=1)"), SHIFT,
            """The last label wrapped round to the front, where bos belongs. roll moves in a circle; the last label is
            dropped.""", quotes=ids_of_the_first),
        mistake("rolled as one long row", formula("shift_right(labels, bos)", "labels.roll(1)"), SHIFT,
            """Without an axis, roll moves all sentences as one long row: each begins with the last label of the
            sentence before it. Each begins with bos.""", quotes=ids_of_the_first),
        mistake("rolled to the left", formula("shift_right(labels, bos)", "labels.roll(-1, dims=1)"), FORCING,
            "A roll to the *left*: position t reads the future, and the first label wrapped round to the end.",
            quotes=ids_of_the_first),
        mistake("nothing dropped", RIGHT.but(REST, "labels"), SHIFT,
            """The length is T + 1: bos was put in front and nothing dropped. Input and labels have the same positions,
            so both have T; the last label is never read.""", quotes=sizes),
        mistake("the first label overwritten", RIGHT.but(REST, "labels[:, 1:]"), SHIFT,
            """bos replaced the first label, and nothing moved. The first label (*Ti*) has disappeared; the last is what
            no position has to read.""", quotes=ids_of_the_first),
        mistake("bos missing", formula("shift_right(labels, bos)", "labels[:, :-1].clone()"), SHIFT,
            "The last label was dropped, but nothing was put in front. A sentence begins with bos, so that the first "
            "word has something to follow.",
            quotes=sizes),
        mistake("bos at the end", RIGHT.but("[first, rest]", "[rest, first]"), SHIFT,
            "bos is at the end. The first word follows it, so it goes in front, and the labels after it.",
            quotes=ids_of_the_first),
        mistake("shifted twice", RIGHT.but(JOINED, "torch.cat([first, first, rest], dim=1)[:, : labels.shape[1]]"),
                FORCING,
            """Everything moved by two positions: position t reads the word two before the one that it has to predict,
            and never the last one. One position is enough.""", quotes=ids_of_the_first),
        mistake("along the batch",
                RIGHT.but("labels[:, :1]", "labels[:1]").but(REST, "labels[:-1]").but("dim=1", "dim=0"), SHIFT,
            """The *sentences* moved down by one, under a row of bos: axis 0 is the batch. It is the words of each
            sentence that move, along axis 1.""", quotes=ids_of_the_first),
        mistake("rolled over the batch, bos in front", formula("shift_right(labels, bos)",
                  "torch.cat([torch.full_like(labels[:, :1], bos), labels.roll(1, dims=0)[:, :-1]], dim=1)"), SHIFT,
            "Each sentence got the words of another: the batch was rolled. Nothing moves from one "
            "sentence to the next.", quotes=ids_of_the_first),
        mistake("rolled over the batch, bos written in", RIGHT.but(REST, "labels.roll(1, dims=0)[:, 1:]"), SHIFT,
            """Axis 0 is the batch: each sentence got the words of another one, and in its own row nothing moved. The
            words move along axis 1.""", quotes=ids_of_the_first),
        mistake("bos 1 written in", RIGHT.but(FIRST, "torch.ones_like(labels[:, :1])"), SHIFT,
            "There is a 1 in front whatever bos is. The id to begin with is the second argument.",
            quotes=ids_of_the_first),
        mistake("a zero in front", RIGHT.but(FIRST, "torch.zeros_like(labels[:, :1])"), SHIFT,
            "There is a 0 in front: in this course the id of a pad. The id to begin with is the second argument.",
            quotes=ids_of_the_first),
        mistake("only the first sentence", answer("""
                  def shift_right(labels, bos):
                      shifted = labels.clone()
                      shifted[0, 1:] = labels[0, :-1]
                      shifted[0, 0] = bos
                      return shifted
            """), SHIFT,
            "The first sentence was shifted, the others were not. A colon instead of the 0 means all sentences."),
        mistake("bos for the first sentence alone", answer("""
                  def shift_right(labels, bos):
                      shifted = labels.roll(1, dims=1)
                      shifted[0, 0] = bos
                      return shifted
            """), SHIFT,
            "The first sentence begins with bos, and the others with their last label, which roll brought round. "
            "Every sentence begins with bos."),
        mistake("<eos> taken out", answer("""
                  def shift_right(labels, bos):
                      first = torch.full_like(labels[:, :1], bos)
                      moved = torch.cat([first, labels[:, :-1]], dim=1)
                      return moved.masked_fill(moved == 2, 0)
            """), SHIFT, """An <eos> in the middle of the row was removed, or became a pad. Only the last position of
            each row falls off; everything else moves unchanged, an <eos> too. (The position that reads it has a pad as
            its label, so its loss is not counted.)"""),
        mistake("the last word dropped, not the last place", answer("""
                  def shift_right(labels, bos):
                      rows = []
                      for row in labels.tolist():
                          words = [n for n in row if n != 0]
                          rows.append([bos] + words[:-1] + [0] * (len(row) - len(words)))
                      return torch.tensor(rows)
            """), SHIFT,
            """In a padded sentence the last *word* was dropped, and the pads kept. Only the last position of the row is
            dropped, whatever is there."""),
        mistake("reversed", formula("shift_right(labels, bos)",
                                    "torch.cat([torch.full_like(labels[:, :1], bos), labels.flip(1)[:, 1:]], dim=1)"),
                                    SHIFT,
            "The words come in the opposite order. They keep their order and move one position to the right.",
            quotes=ids_of_the_first),
        mistake("copied place by place", answer("""
                  def shift_right(labels, bos):
                      shifted = labels.clone()
                      for t in range(1, labels.shape[1]):
                          shifted[:, t] = shifted[:, t - 1]
                      shifted[:, 0] = bos
                      return shifted
            """), SHIFT, """The first label runs through the whole row: each position was copied from one that had just
            been overwritten. Read from the labels, write into the copy.""", quotes=ids_of_the_first),
        mistake("bos in all of the first row", answer("""
                  def shift_right(labels, bos):
                      shifted = labels.roll(1, dims=1)
                      shifted[0] = bos
                      return shifted
            """), SHIFT,
            "All of the first *row* became bos: the first index is the sentence. bos goes to the first position of "
            "every sentence, the first column.",
            quotes=ids_of_the_first),
        mistake("the first sentence came back alone", RIGHT.but(JOINED, "torch.cat([first, rest], dim=1)[:1]"), SHIFT,
            "Only the first sentence came back. All of them are shifted, one a row.", quotes=sizes),
        mistake("written over itself", answer("""
                  def shift_right(labels, bos):
                      labels[:, 1:] = labels[:, :-1]
                      labels[:, 0] = bos
                      return labels
            """), SHIFT, """A tensor cannot be copied onto itself one position further: what is read has been
            overwritten by then. And these are the caller's labels, which stay as they are. Write into a new
            tensor."""),
        in_place("labels", answer("""
                  def shift_right(labels, bos):
                      labels[:, 1:] = labels[:, :-1].clone()
                      labels[:, 0] = bos
                      return labels
            """), SHIFT,
            "They now begin with bos too, so the model is taught to repeat what it reads. Write into a new tensor."),
        mistake("floats", RIGHT.but(JOINED, JOINED + ".float()"), SHIFT,
            "Your ids are float32. They are numbers of rows in a table, so they stay whole: long (int64)."),
        families.IDS_THROUGH_FLOATS(RIGHT.but(JOINED, "torch.cat([first.float(), rest.float()], dim=1).long()"), SHIFT),
        mistake("int32", RIGHT.but(JOINED, JOINED + ".int()"), SHIFT,
            "Your ids are int32. The result keeps the dtype of the labels, long (int64)."),
        mistake("a list", RIGHT.but(JOINED, JOINED + ".tolist()"), SHIFT,
                "The rows are right, but they are lists. Return a tensor."),
        mistake("sentences and places exchanged", RIGHT.but(JOINED, JOINED + ".T"), SHIFT,
            "The sentences are in the columns. One sentence a row: (B, T).", quotes=sizes),
        *usual_mistakes(RIGHT, squeezed=SHIFT, quotes_size=sizes),
    ),
    correct=(
        correct("full and cat", RIGHT),
        correct("F.pad", formula("shift_right(y, start)", "F.pad(y, (1, 0), value=start)[:, :-1]")),
        correct("a new tensor, filled", """
            def shift_right(labels, bos):
                shifted = torch.empty_like(labels)
                shifted[:, 0] = bos
                shifted[:, 1:] = labels[:, :-1]
                return shifted
        """),
        correct("roll, then bos", """
            def shift_right(labels, bos):
                shifted = torch.roll(labels, shifts=1, dims=1)
                shifted[:, 0] = bos
                return shifted
        """),
        correct("roll without an axis, then bos", """
            def shift_right(labels, bos):
                shifted = labels.roll(1)
                shifted[:, 0] = bos
                return shifted
        """),
        correct("lists", """
            def shift_right(labels, bos):
                return torch.tensor([[bos] + row[:-1] for row in labels.tolist()])
        """),
        correct("loops", """
            def shift_right(labels, bos):
                B, T = labels.shape
                out = labels.new_zeros(B, T)
                for b in range(B):
                    for t in range(T):
                        out[b, t] = bos if t == 0 else labels[b, t - 1]
                return out
        """),
        correct("hstack", """
            def shift_right(labels, bos):
                column = labels.new_full((labels.size(0), 1), bos)
                return torch.hstack((column, labels))[:, : labels.size(1)]
        """),
        correct("where", """
            def shift_right(labels, bos):
                place = torch.arange(labels.shape[1])
                return torch.where(place == 0, bos, labels[:, (place - 1).clamp(min=0)])
        """),
        correct("from the back", """
            def shift_right(labels, bos):
                shifted = labels.clone()
                for t in range(labels.shape[1] - 1, 0, -1):
                    shifted[:, t] = shifted[:, t - 1]
                shifted[:, 0] = bos
                return shifted
        """),
    ),
    hints=(
        "which words are known when word t is predicted? What is known before the first?",
        "(B, 1) of bos and (B, T - 1) of the labels make (B, T).",
        "a column of bos; all labels but the last of each row; one behind the other, along the positions.",
    ),
)  # fmt: skip
