"""10.3: targets that are a little less than certain."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch10_training.shared import in_single_precision, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from autograder.catalogue.quotes import row, sizes
from transformer_ref.training import loss

SMOOTH, FLOOR = sections("smooth floor")


def smooth_targets(labels: Tensor, V: int, eps: float, pad: int) -> Tensor:
    """1 - eps at the label, eps divided among all others but pad, (B, T, V); rows of pads are zero."""
    return loss.smooth_targets(labels, V, eps, pad)


def inputs(g: torch.Generator, B: int, T: int, V: int, eps: float, pad: int) -> Case:
    """Labels with pads only at the ends of rows, and in the middle of one."""
    labels = torch.randint(V - 1, (B, T), generator=g)
    labels = labels + (labels >= pad)  # every id but pad
    for b in range(B):
        labels[b, T - b % T :] = pad
    if T > 3:
        labels[0, 1] = pad
    if T > 1:
        labels[-1, 0] = (V - 1) if pad != V - 1 else V - 2
        labels[0, 0] = 0 if pad else 1
    return Case((labels, V, eps, pad))


def some(g: torch.Generator, B: int, T: int, V: int, pad: int) -> Case:
    """Labels, with a random eps."""
    return inputs(g, B, T, V, 0.02 + 0.93 * torch.rand((), generator=g).item(), pad)


def equal_rows(g: torch.Generator) -> Case:
    labels, *others = inputs(g, 3, 5, 7, 0.2, 2).arguments
    labels[1] = labels[2]
    return Case((labels, *others))


def one_pad(g: torch.Generator) -> Case:
    labels, V, eps, pad = some(g, 2, 4, 9, 5).arguments
    labels = labels.where(labels != pad, 0)
    labels[1, -1] = pad
    return Case((labels, V, eps, pad))


WORKED = Case((torch.tensor([[3]]), 6, 0.1, 0))
PADDED = Case((torch.tensor([[3, 1, 5], [4, 0, 0]]), 6, 0.1, 0))
ELSEWHERE = Case((torch.tensor([[0, 2, 7, 4], [6, 3, 4, 4]]), 8, 0.3, 4))


def first_row(evidence: Evidence) -> str:
    """The first row of probabilities, and the correct one."""
    if not isinstance(evidence.got, Tensor) or evidence.got.ndim != 3:
        return ""
    got, wanted = (row(table[0, 0]) for table in (evidence.got, evidence.expected))
    return f"Your first row is {got}; by hand it is {wanted}."


def first_sum(evidence: Evidence) -> str:
    """The first row of probabilities, and its sum."""
    if not isinstance(evidence.got, Tensor) or evidence.got.ndim != 3:
        return ""
    return f"Your first row is {row(evidence.got[0, 0])}, in all {row(evidence.got[0, 0].sum()[None])}."


def labels_of_others(evidence: Evidence) -> bool:
    """Whether each row has 1 - eps at all labels of its sentence, or at all of the batch."""
    labels, V, eps, pad = evidence.arguments
    if evidence.got.shape != evidence.expected.shape:
        return False
    own = torch.nn.functional.one_hot(labels, V).bool()
    for here in (own.any(dim=1, keepdim=True), own.flatten(0, 1).any(dim=0)):
        targets = torch.full_like(evidence.expected, eps / (V - 2)).masked_fill(here, 1 - eps)
        targets[..., pad] = 0
        targets[labels == pad] = 0
        if torch.allclose(evidence.got, targets, atol=1e-5):
            return True
    return False


SUMS = Law("the shares of a word sum to 1",
           lambda got: torch.allclose(got[0].sum(-1), torch.ones((), dtype=got.dtype), atol=1e-4))

RIGHT = answer("""
    def smooth_targets(labels, V, eps, pad):
        B, T = labels.shape
        targets = torch.full((B, T, V), eps / (V - 2))
        targets.scatter_(2, labels[..., None], 1 - eps)
        targets[..., pad] = 0
        targets[labels == pad] = 0
        return targets
""")
SHARE, LABEL, NO_PAD, NO_ROW = "eps / (V - 2)", "1 - eps)", "targets[..., pad] = 0", "targets[labels == pad] = 0"
SCATTER = "targets.scatter_(2, labels[..., None], 1 - eps)"

EXERCISE = Exercise(
    id="smooth-targets", number="10.3", difficulty=2, minutes=20, visible_points=2, hidden_points=4,
    reference=smooth_targets, normalize=in_single_precision, section=SMOOTH,
    probes=(
        visible("V = 6, label 3, eps = .1", WORKED, laws=(SUMS,)),
        visible("two sentences, one of them padded", PADDED),
        visible("pad = 4, eps = .3", ELSEWHERE),
        hidden("other sizes", some, 3, 5, 9, 0, announced_by=PROMISED),
        hidden("another pad", some, 2, 4, 11, 6, announced_by="pad: the pad's id, any id of the vocabulary"),
        hidden("the last id is the pad", some, 3, 4, 7, 6, announced_by="pad: the pad's id, any id of the vocabulary"),
        hidden("one word", some, 1, 1, 5, 0, announced_by=PROMISED),
        hidden("three ids", some, 2, 4, 3, 1, announced_by="V: size of the vocabulary, 3 or more"),
        hidden("exactly one pad", one_pad, announced_by="label is a pad are all 0"),
        hidden("no smoothing: eps = 0", inputs, 2, 5, 6, 0.0, 3, announced_by="0 <= eps"),
        hidden("a sentence that comes twice", equal_rows, announced_by=PROMISED),
        second_call(some, 2, 6, 8, 5),
    ),
    mistakes=(
        mistake("a share for the pad", RIGHT.but(SHARE, "eps / (V - 1)").without(NO_PAD), SMOOTH,
            """Part of the probability goes to <pad>, a token that no sentence contains. eps is shared among the V - 2
            others: all but the label and the pad.""", quotes=first_row),
        mistake("a share for the pad, all too large", RIGHT.without(NO_PAD), SMOOTH,
            """The probabilities of the words are correct, but the pad has one too, so the row sums to more than 1.
            <pad> is a token that no sentence contains.""", quotes=first_sum),
        mistake("the pad's share lost", RIGHT.but(SHARE, "eps / (V - 1)"), SMOOTH,
            """The pad's column is zero, but eps was spread over V - 1 tokens, so the pad's part is lost and the row
            sums to less than 1. Spread it over V - 2.""", quotes=first_sum),
        mistake("the pad's share lost, of all V", RIGHT.but(SHARE, "eps / V"), SMOOTH,
            """eps was spread over all V tokens, and the parts of the label and of the pad were removed again: the row
            sums to less than 1. Spread it over the V - 2 others.""", quotes=first_sum),
        mistake("rows of pads left", RIGHT.without(NO_ROW), SMOOTH,
            "Where the label is a pad, the row must be all 0: there is no target there. Yours holds probabilities."),
        mistake("the label set last, in rows of pads too",
                RIGHT.without(NO_PAD).without(NO_ROW).before(SCATTER, NO_PAD), SMOOTH,
            "Where the label is a pad, the pad got 1 - eps and the others their parts of eps. There is no target "
            "there: the row is all 0."),
        mistake("rows of pads and their column left", RIGHT.without(NO_ROW).without(NO_PAD), SMOOTH,
            """The pad has no special treatment: it has a probability in every row, so rows sum to more than 1, and
            where it is the label the row must be all 0.""", quotes=first_sum),
        mistake("rows of pads left, a share for the pad",
                RIGHT.but(SHARE, "eps / (V - 1)").without(NO_PAD).without(NO_ROW), SMOOTH,
            """eps was spread over all tokens except the label, including <pad>, which no sentence contains; and where
            the label is a pad the row must be all 0.""", quotes=first_row),
        mistake("rows of uniform shares at pads", RIGHT.but(NO_ROW, "targets[labels == pad] = 1 / V"), SMOOTH,
            "Where the label is a pad, every word got the same probability. There is no target there: the row is all "
            "0."),
        mistake("eps over all V", answer("""
                  def smooth_targets(labels, V, eps, pad):
                      wanted = F.one_hot(labels, V).float()
                      targets = (1 - eps) * wanted + eps / V
                      return targets * (labels != pad)[..., None]
            """), SMOOTH, """eps was spread over *all* classes, the label and the pad among them: this is what PyTorch's
            label_smoothing does. It is right elsewhere; here the label has exactly 1 - eps, and the pad nothing.""",
            quotes=first_row),
        mistake("eps over all V, everywhere", answer("""
                  def smooth_targets(labels, V, eps, pad):
                      return (1 - eps) * F.one_hot(labels, V).float() + eps / V
            """), SMOOTH, """eps was spread over *all* classes, as PyTorch's label_smoothing does, and pads were not
            looked at. Here the label has exactly 1 - eps, the pad nothing, and rows of pads are all 0.""",
            quotes=first_row),
        mistake("eps over all V but the pad", answer("""
                  def smooth_targets(labels, V, eps, pad):
                      targets = (1 - eps) * F.one_hot(labels, V).float() + eps / (V - 1)
                      targets[..., pad] = 0
                      return targets * (labels != pad)[..., None]
            """), SMOOTH, """eps was spread over all tokens except the pad, and the label got a part of it on top: it
            has more than 1 - eps. Only the V - 2 *others* get eps.""", quotes=first_row),
        mistake("eps over all V, the label with its share, the pad with none",
                RIGHT.but(SHARE, "eps / V").but(LABEL, "1 - eps + eps / V)"), SMOOTH,
            "eps was spread over all V tokens, including the label, as PyTorch's label_smoothing does. The label has "
            "exactly 1 - eps, and the V - 2 others share eps.",
            quotes=first_row),
        mistake("eps over all V, then divided by the sum", answer("""
                  def smooth_targets(labels, V, eps, pad):
                      targets = (1 - eps) * F.one_hot(labels, V).float() + eps / V
                      targets[..., pad] = 0
                      targets = targets / targets.sum(-1, keepdim=True)
                      return targets * (labels != pad)[..., None]
            """), SMOOTH, """eps was spread over all V tokens, as PyTorch's label_smoothing does, the pad's part was
            removed, and the row was divided by its sum. So the label has more than 1 - eps. It has exactly 1 - eps, and
            the V - 2 others share eps.""", quotes=first_row),
        mistake("the label has its share on top", RIGHT.but(LABEL, "1 - eps + eps / (V - 2))"), SMOOTH,
            "The label got a part of eps on top of its 1 - eps, so the row sums to more than 1.", quotes=first_sum),
        mistake("1 - eps at labels that are pads",
                RIGHT.without(NO_PAD).without(NO_ROW).before(SCATTER, NO_PAD).before(SCATTER, NO_ROW), SMOOTH,
            "Where the label is a pad, the pad got 1 - eps: the label was set after the pads were cleared. That row "
            "is all 0."),
        mistake("eps added, the label untouched", RIGHT.but(LABEL, "1.0)"), SMOOTH,
            "The label kept all of its 1 and the others got eps on top, so the row sums to more than 1. The label must "
            "lose what the others get.",
            quotes=first_sum),
        mistake("1 - eps at the labels of all positions", RIGHT.but(SCATTER, "targets[:, :, labels] = 1 - eps"), SMOOTH,
            """Rows have 1 - eps at labels of *other* positions too, those of their sentence or of the whole batch,
            because the labels picked columns for several positions at once. Each position has one label, and 1 - eps
            only there.""", quotes=first_sum, shows=labels_of_others),
        mistake("eps and 1 - eps exchanged", RIGHT.but(LABEL, "eps)").but(SHARE, "(1 - eps) / (V - 2)"), SMOOTH,
            "eps and 1 - eps are exchanged: the label has the small probability, all others together the large one.",
            quotes=first_row),
        mistake("eps for each of the others", RIGHT.but(SHARE, "eps"), SMOOTH,
            "Each of the others got all of eps. They *share* it, V - 2 of them.", quotes=first_sum),
        mistake("no smoothing", RIGHT.but(SHARE, "0.0").but(LABEL, "1.0)"), SMOOTH,
            "All of the probability is at the label, whatever eps is: nothing was smoothed.", quotes=first_row),
        mistake("the label alone lowered", RIGHT.but(SHARE, "0.0"), SMOOTH,
            "The label has 1 - eps, and the rest is lost: the row sums to less than 1.", quotes=first_sum),
        mistake("shared among V - 3", RIGHT.but(SHARE, "eps / max(V - 3, 1)"), SMOOTH,
            "eps was shared among one too few: it is V less the label and the pad, V - 2.", quotes=first_sum),
        families.PAD_0_WRITTEN_IN(RIGHT.but("targets[..., pad]", "targets[..., 0]").but("labels == pad", "labels == 0"),
            SMOOTH, function="function leaves out", which="fourth"),
        mistake("the pad's column left out after the label was set, labels of pads too",
                RIGHT.but("labels == pad] = 0", "labels == 0] = 0"), SMOOTH,
            "Rows whose label is 0 were made all 0, whatever pad is. The pad's id is the fourth argument."),
        mistake("the pad's column alone zero", RIGHT.but("targets[..., pad]", "targets[..., 0]"), SMOOTH,
            "The column of id 0 was made 0, whatever pad is. The pad's id is the fourth argument."),
        mistake("eps .1 written in", RIGHT.but("eps / (V - 2)", "0.1 / (V - 2)").but(LABEL, "0.9)"), SMOOTH,
            "Your probabilities are those of eps = .1 whatever eps is. It is the third argument."),
        mistake("the logarithm", RIGHT.but("return targets", "return torch.log(targets)"), SMOOTH,
            """These are logarithms; where a probability is 0 they are minus infinity, which makes any loss NaN (0 times
            minus infinity). Return the probabilities themselves.""", quotes=first_row),
        mistake("the logarithm of what is not 0",
                RIGHT.but("return targets", "return torch.log(targets.clamp(min=1e-9))"), SMOOTH,
            "These are logarithms of the probabilities. Return the probabilities themselves.", quotes=first_row),
        mistake("softmax of a one-hot row", answer("""
                  def smooth_targets(labels, V, eps, pad):
                      targets = torch.softmax(F.one_hot(labels, V).float(), dim=-1)
                      targets[..., pad] = 0
                      return targets * (labels != pad)[..., None]
            """), SMOOTH, """A softmax of the one-hot rows also makes them softer, but by an amount that does not depend
            on eps. Write the two values themselves.""", quotes=first_row),
        mistake("the places smoothed", answer("""
                  def smooth_targets(labels, V, eps, pad):
                      wanted = F.one_hot(labels, V).float() * (labels != pad)[..., None]
                      T = labels.shape[1]
                      targets = (1 - eps) * wanted + eps * (wanted.sum(1, keepdim=True) - wanted) / max(T - 1, 1)
                      return targets
            """), SMOOTH, """The probability taken from the label went to the *other positions* of its sentence. It is
            shared among the vocabulary, on the last axis, separately at each position.""", quotes=first_row),
        mistake("whole numbers", RIGHT.but("return targets", "return targets.long()"), SMOOTH,
            "The probabilities were cut to whole numbers, and only 0 is left. Probabilities are floats.",
            quotes=first_row),
        mistake("vocabulary on axis 1", RIGHT.but("return targets", "return targets.transpose(1, 2)"), SMOOTH,
            "The vocabulary is on axis 1. It belongs last, as in the logits: (B, T, V).", quotes=sizes),
        mistake("one long list of places", RIGHT.but("return targets", "return targets.reshape(-1, V)"), SMOOTH,
            "Sentences and positions were merged. Return three axes: (B, T, V).", quotes=sizes),
        mistake("divided by what is left",
                RIGHT.but("return targets", "return targets / targets.sum(-1, keepdim=True)"), SMOOTH,
            "Rows of pads are NaN: all 0 was divided by its sum, 0. They sum to 0, and stay so."),
        in_place("labels", RIGHT.but("B, T = labels.shape",
                                     "B, T = labels.shape\n    labels[labels == pad] = pad + 1 if pad + 1 < V else 0"),
                                     SMOOTH),
        *usual_mistakes(RIGHT, squeezed=SMOOTH, quotes_size=sizes),
    ),
    correct=(
        correct("full and scatter", RIGHT),
        correct("one-hot mixed", """
            def smooth_targets(labels, V, eps, pad):
                wanted = F.one_hot(labels, V).float()
                others = 1 - wanted
                others[..., pad] = 0
                targets = (1 - eps) * wanted + eps / (V - 2) * others
                return targets * (labels != pad).unsqueeze(-1)
        """),
        correct("loops", """
            def smooth_targets(labels, V, eps, pad):
                B, T = labels.shape
                out = torch.zeros(B, T, V)
                for b in range(B):
                    for t in range(T):
                        y = int(labels[b, t])
                        if y == pad:
                            continue
                        for v in range(V):
                            if v == y:
                                out[b, t, v] = 1 - eps
                            elif v != pad:
                                out[b, t, v] = eps / (V - 2)
                return out
        """),
        correct("where", """
            def smooth_targets(y, n, e, p):
                v = torch.arange(n)
                table = torch.where(v == y[..., None], 1.0 - e, e / (n - 2))
                return table.masked_fill((v == p) | (y == p)[..., None], 0.0)
        """),
        correct("float64", """
            def smooth_targets(labels, V, eps, pad):
                table = torch.full((V, V), eps / (V - 2), dtype=torch.float64)
                table.fill_diagonal_(1 - eps)
                table[:, pad] = 0
                table[pad] = 0
                return table[labels]
        """),
        correct("lists", """
            def smooth_targets(labels, V, eps, pad):
                def row(y):
                    return [0.0 if pad in (v, y) else 1.0 - eps if v == y else eps / (V - 2) for v in range(V)]
                return torch.tensor([[row(y) for y in sentence] for sentence in labels.tolist()])
        """),
        correct("index_put", """
            def smooth_targets(labels, V, eps, pad):
                B, T = labels.shape
                out = torch.ones(B, T, V) * eps / (V - 2)
                b, t = torch.meshgrid(torch.arange(B), torch.arange(T), indexing="ij")
                out[b, t, labels] = 1 - eps
                out[:, :, pad] = 0.0
                return out.where((labels != pad)[:, :, None], torch.zeros(()))
        """),
    ),
    omits={"precision": "the labels are small whole numbers, and a share has three digits"},
    hints=(
        "which entries are 0? Over how many others is eps spread?",
        "(B, T) labels become (B, T, V): one row of probabilities for each position.",
        "every cell eps over V - 2; the label's cell 1 - eps; the pad's column 0; rows whose label is pad 0.",
    ),
)  # fmt: skip
