"""10.2: how wrong the scores are, averaged over what is a word."""

import math

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch10_training.shared import sections, sentences, the_number
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import FAR, PROMISED, hidden, normal, usual_probes, visible
from transformer_ref.training.loss import masked_cross_entropy

LOSS, AVERAGE, FLOOR = sections("loss average floor")


def masked_ce(logits: Tensor, labels: Tensor, pad: int) -> Tensor:
    """The mean of -log softmax(logits)[label] over the labels that are not pad; 0 where there is none."""
    return masked_cross_entropy(logits, labels, pad)


def costing(labels: list[list[int]], costs: list[list[float]], V: int) -> Tensor:
    """Logits (B, T, V) under which each label has this loss in nats; all other tokens are equally probable."""
    logits = torch.zeros(len(labels), len(labels[0]), V)
    for b, row in enumerate(labels):
        for t, label in enumerate(row):
            logits[b, t, label] = -math.log((math.exp(costs[b][t]) - 1) / (V - 1))
    return logits


def by_hand(labels: list[list[int]], costs: list[list[float]], V: int = 14) -> Case:
    return Case((costing(labels, costs, V), torch.tensor(labels), 0))


def inputs(g: torch.Generator, B: int, T: int, V: int, pad: int = 0, size: float = 1.5,
           dtype: torch.dtype = torch.float32) -> Case:
    labels = sentences(g, B, T, V).remainder(V)
    labels = labels.where(labels != pad, (pad + 1) % V)  # no word is a pad
    lengths = (sentences(g, B, T, 99) == 99).long()  # where a sentence is over
    return Case((size * normal(g, B, T, V, dtype=dtype), labels.masked_fill(lengths.bool(), pad), pad))


def far_away(g: torch.Generator) -> Case:
    """Scores around 100,000,000 that differ by whole numbers."""
    logits, labels, pad = inputs(g, 2, 5, 7, dtype=torch.float64).arguments
    return Case((FAR + (3 * logits).round(), labels, pad))


def wild_at_pads(g: torch.Generator) -> Case:
    """The scores at the pads are a million."""
    logits, labels, pad = inputs(g, 3, 6, 9, 4).arguments
    return Case((torch.where((labels == pad)[..., None], 1e6 * logits.sign(), logits), labels, pad))


def all_but_one(g: torch.Generator, words: bool) -> Case:
    """A batch of words with exactly one pad, or of pads with exactly one word."""
    logits, labels, pad = inputs(g, 2, 4, 7, 3).arguments
    pads = torch.zeros(2, 4, dtype=torch.bool)
    pads[1, -1] = True
    if not words:
        pads = ~pads.flip(1)
    return Case((logits, labels.where(labels != pad, pad + 1).masked_fill(pads, pad), pad))


def nobody(g: torch.Generator) -> Case:
    return Case((normal(g, 2, 3, 5), torch.full((2, 3), 4), 4))


TEN_AND_TEN = by_hand([[3, 5, 7, 4, 2], [6, 9, 8, 4, 2], [0] * 5, [0] * 5], [[4.0] * 5] * 2 + [[0.01] * 5] * 2)
SHORT_AND_LONG = by_hand([[3, 5, 7, 4, 2], [6, 0, 0, 0, 0]], [[1.0, 2.0, 1.5, 2.5, 3.0], [0.2] * 5])


def of_the_first(evidence: Evidence) -> str:
    """The shape of a result that should be a number."""
    return (
        f"You returned shape {tuple(evidence.got.shape)}; return one number." if evidence.got.ndim
        else the_number(evidence)
    )


def floor(evidence: Evidence) -> str:
    V = evidence.arguments[0].shape[-1]
    return (f"{the_number(evidence)} Once the right label has all of the probability your loss is still ln(1 + (V - "
            f"1)/e) = "
            f"{number(math.log(1 + (V - 1) / math.e))} for V = {V}.")


RIGHT = answer("""
    def masked_ce(logits, labels, pad):
        real = labels != pad
        log_p = torch.log_softmax(logits, dim=-1)
        of_label = log_p.gather(-1, labels[..., None])[..., 0]
        total = -(of_label * real).sum()
        return total / real.sum().clamp(min=1)
""")
REAL, LOG_P, TOTAL = "labels != pad", "torch.log_softmax(logits, dim=-1)", "total = -(of_label * real).sum()"
MEAN, COUNT = "total / real.sum().clamp(min=1)", "real.sum().clamp(min=1)"
GATHERED = "log_p.gather(-1, labels[..., None])[..., 0]"
SHORT = answer("""
    def masked_ce(logits, labels, pad):
        real = labels != pad
        if not real.any():
            return logits.sum() * 0
        return F.cross_entropy(logits[real], labels[real])
""")

EXERCISE = Exercise(
    id="masked-ce", number="10.2", difficulty=2, minutes=20, visible_points=3, hidden_points=5,
    reference=masked_ce, section=LOSS,
    probes=(
        visible("ten words at 4 nats, ten pads at 0.01", TEN_AND_TEN),
        visible("a long sentence and a short one", SHORT_AND_LONG),
        visible("other numbers, pad = 3", inputs, 2, 4, 6, 3),
        *usual_probes(inputs, other=(3, 5, 8), smallest=(1, 1, 4), common=(2, 6, 5), precise=far_away, zero=False,
                      equal_rows=False),
        hidden("pad = 6", inputs, 3, 4, 9, 6, announced_by="pad: the pad's id, any id of the vocabulary"),
        hidden("scores a hundred times as large", inputs, 2, 5, 7, 3, 150.0, rtol=1e-3,
               announced_by="Scores may be large"),
        hidden("scores of a million at the pads", wild_at_pads, announced_by="whatever finite scores they have"),
        hidden("gradients, with scores of a million at the pads", wild_at_pads, checks="gradients",
               announced_by="whatever finite scores they have"),
        hidden("exactly one pad", all_but_one, True, announced_by="over the labels that are not pads"),
        hidden("exactly one word", all_but_one, False, announced_by="over the labels that are not pads"),
        hidden("no word at all", nobody, announced_by="A batch of only pads gives 0"),
        hidden("equal sentences", lambda g: Case(tuple(a.repeat(2, *[1] * (a.ndim - 1)) if isinstance(a, Tensor) else a
                                                        for a in inputs(g, 2, 5, 6, 2).arguments)),
                                                        announced_by=PROMISED),
    ),
    mistakes=(
        mistake("scores of pads made 0",
                RIGHT.but(LOG_P, "torch.log_softmax(logits * real[..., None], dim=-1)").but(" * real).sum()",
                    ").sum()"), AVERAGE,
            "The scores at the pads were made 0, and then cost ln V each. It is the *costs* that do not count there."),
        mistake("pads counted", RIGHT.but(REAL, "torch.ones_like(labels, dtype=torch.bool)"), AVERAGE,
            """It looks good because the pads count as words: a pad after a pad is trivial to guess, so the more
            padding, the better the loss. Only real tokens count, in the sum and in what it is divided by.""",
            quotes=the_number),
        mistake("only the pads", RIGHT.but(REAL, "labels == pad"), AVERAGE,
            "This is the mean over the *pads*: the mask is inverted. The words should count, and the pads should not.",
            quotes=the_number),
        mistake("divided by all places", RIGHT.but(COUNT, "labels.numel()"), AVERAGE,
            """The pads were left out of the sum and still counted when it was divided: B times T is the number of
            *positions*. Divide by the number of real tokens, or a batch with more padding seems to be better.""",
            quotes=the_number),
        mistake("the mean of the sentences' means",
                RIGHT.but(TOTAL, "total = -((of_label * real).sum(1) / real.sum(1).clamp(min=1)).sum()").but(
                  COUNT, "real.any(dim=1).sum().clamp(min=1)"), AVERAGE,
            """Each sentence was averaged by itself, and then the sentences. So a word of a short sentence weighs more
            than one of a long one. Average over *tokens*: all sums first, one division at the end.""",
            quotes=the_number),
        mistake("the mean of the sentences' means, NaN for an empty one",
                RIGHT.but(TOTAL, "total = -((of_label * real).sum(1) / real.sum(1)).sum()").but(
                  COUNT, "len(labels)"), AVERAGE,
            """Each sentence was averaged by itself, and a row of only pads gives 0 divided by 0, NaN. Average over the
            *tokens* of the batch: all sums first, one division at the end."""),
        mistake("the mean of all sentences' means, empty ones too",
                RIGHT.but(TOTAL, "total = -((of_label * real).sum(1) / real.sum(1).clamp(min=1)).sum()").but(
                  COUNT, "len(labels)"), AVERAGE,
            """Each sentence was averaged by itself, then all sentences, even those without a word. Average over
            *tokens*: all sums first, one division at the end.""", quotes=the_number),
        mistake("the mean over places of the means over sentences",
                RIGHT.but(TOTAL, "total = -((of_label * real).sum(0) / real.sum(0).clamp(min=1)).sum()").but(
                  COUNT, "real.any(dim=0).sum().clamp(min=1)"), AVERAGE,
            """Each *position* was averaged by itself, and then the positions, so a word late in the longest sentence
            weighs more. Average over tokens: all sums first, one division at the end.""", quotes=the_number),
        mistake("the sum", RIGHT.but(MEAN, "total"), AVERAGE,
            """This is the sum over the tokens, not their mean. Twice the batch would give twice the loss, and steps
            twice as large.""", quotes=the_number),
        mistake("divided by the batch", RIGHT.but(COUNT, "len(labels)"), AVERAGE,
            "The sum was divided by the number of *sentences*. Long ones then have a larger loss. Divide by the "
            "number of real tokens.",
            quotes=the_number),
        mistake("divided by the places of a sentence", RIGHT.but(COUNT, "labels.shape[1]"), AVERAGE,
            "The sum was divided by T, the number of positions in a row. Divide by the number of real tokens of the "
            "whole batch.", quotes=the_number),
        mistake("softmax before the loss", SHORT.but("logits[real]", "torch.softmax(logits, dim=-1)[real]"), FLOOR,
            """Softmax was applied twice: cross_entropy expects logits and applies the softmax itself. The loss cannot
            fall any further, and hardly any gradient is left.""", quotes=floor),
        mistake("<eos> left out", RIGHT.but(REAL, "(labels != pad) & (labels != 2)"), LOSS,
            """The loss leaves out <eos> (id 2). Then nothing teaches the model to stop, and no translation ends. <eos>
            is a real token; only pads are not.""", quotes=the_number),
        mistake("classes and places exchanged", answer("""
                  def masked_ce(logits, labels, pad):
                      B, T, V = logits.shape
                      scores = logits.reshape(B, V, T)
                      lost = F.cross_entropy(scores, labels, reduction="none") * (labels != pad)
                      return lost.sum() / (labels != pad).sum().clamp(min=1)
            """), LOSS, """Classes and positions were exchanged by a reshape: (B, T, V) became (B, V, T), and each score
            belongs to a different word now. Use transpose, not reshape.""", quotes=the_number),
        mistake("logits given as they are", answer("""
                  def masked_ce(logits, labels, pad):
                      return F.cross_entropy(logits, labels, ignore_index=pad)
            """), LOSS, """cross_entropy expects the classes on axis 1, and here they are on the last one: your code
            stops, or takes positions for classes. Make one list of positions of both, (B * T, V) and (B * T,), or bring
            the classes to axis 1."""),
        mistake("cut into rows of the wrong length", answer("""
                  def masked_ce(logits, labels, pad):
                      return F.cross_entropy(logits.view(-1, logits.shape[1]), labels.view(-1), ignore_index=pad)
            """), LOSS, """The scores were cut into rows as long as a *sentence*. A row of scores belongs to one
            position and is as long as the vocabulary, the last size of logits."""),
        families.PAD_0_WRITTEN_IN(RIGHT.but("!= pad", "!= 0"),
            AVERAGE, quotes=the_number, function="loss leaves out", which="third"),
        mistake("ids below the pad left out", RIGHT.but(REAL, "labels > pad"), AVERAGE,
            """The loss leaves out every label whose id is smaller than pad, although those are words. pad can be any id
            of the vocabulary: only the labels that equal it are pads.""", quotes=the_number),
        mistake("log of the softmax",
                RIGHT.but("torch.log_softmax(logits, dim=-1)", "torch.log(torch.softmax(logits, dim=-1))"), LOSS,
            """With large scores the softmax of the label underflows to 0, and the logarithm of 0 is minus infinity.
            Compute the logarithm of the softmax directly, without the softmax in between (chapter 04)."""),
        mistake("a little something inside the logarithm",
                RIGHT.but("torch.log_softmax(logits, dim=-1)", "torch.log(torch.softmax(logits, dim=-1) + 1e-9)"), LOSS,
            """A small number inside the logarithm hides the underflow: no word can have a loss above 20.7 nats, and the
            worst ones have no gradient. Compute the logarithm of the softmax directly (chapter 04)."""),
        mistake("exponentials without care",
                RIGHT.but("torch.log_softmax(logits, dim=-1)",
                          "logits - torch.log(torch.exp(logits).sum(dim=-1, keepdim=True))"), LOSS,
            """With large scores exp overflows, and infinity or NaN comes back. Subtract the largest score of each
            position first, or use what does (chapter 04)."""),
        mistake("softmax over the places", RIGHT.but("dim=-1)\n", "dim=1)\n"), LOSS,
            """The softmax runs over the *positions* of a sentence. At each position it should run over the vocabulary,
            the last axis.""", quotes=the_number),
        mistake("softmax over the batch", RIGHT.but("dim=-1)\n", "dim=0)\n"), LOSS,
            "Your probabilities sum to 1 over the *sentences*: axis 0 is the batch. At each position they should sum "
            "to 1 over the vocabulary, on the last axis.",
            quotes=the_number),
        mistake("no logarithm", RIGHT.but("log_softmax", "softmax"), LOSS,
            "This is minus the mean *probability* of the label. Return its logarithm: being sure and wrong must "
            "cost much more than being unsure.",
            quotes=the_number),
        mistake("no softmax", RIGHT.but(LOG_P, "logits"), LOSS,
            "The scores themselves were averaged. A score has a meaning only compared with the others: take "
            "log_softmax first.", quotes=the_number),
        mistake("sign missing", RIGHT.but("-(of_label", "(of_label"), LOSS,
            "A negative number: the sign is missing. A probability is at most 1, its logarithm at most 0, and the "
            "loss is *minus* that.",
            quotes=the_number),
        mistake("base 2", RIGHT.but(MEAN, f"{MEAN} / math.log(2)"), LOSS,
            "This is in bits: the logarithm has base 2. Use nats, the natural logarithm.", quotes=the_number),
        mistake("perplexity", RIGHT.but(MEAN, f"torch.exp({MEAN})"), AVERAGE,
            "This is e to the power of the loss, the perplexity. Return the mean itself, in nats.",
            quotes=the_number),
        mistake("the pad's column taken out",
                RIGHT.but("log_softmax(logits",
                          "log_softmax(logits.index_fill(-1, torch.tensor([pad]), float('-inf'))").but(
                  "(of_label * real)", "of_label.masked_fill(~real, 0.0)"), AVERAGE,
            """The score of the pad was hidden before the softmax, so the other words get the probability that the model
            gives to the pad. The *positions* whose label is a pad do not count; at the others all scores do.""",
            quotes=the_number),
        mistake("labels one place late", RIGHT.but("labels[..., None]", "labels.roll(-1, dims=1)[..., None]"), LOSS,
            """Each position was compared with the label of the *next* one. The labels come ready, position by position:
            the shift has been made in the input (10.1).""", quotes=the_number),
        mistake("the last place cut off", answer("""
                  def masked_ce(logits, labels, pad):
                      logits, labels = logits[:, :-1], labels[:, 1:]
                      real = labels != pad
                      of_label = torch.log_softmax(logits, dim=-1).gather(-1, labels[..., None])[..., 0]
                      return -(of_label * real).sum() / real.sum().clamp(min=1)
            """), LOSS, """The labels were shifted once more: each position is compared with the next one's label, and
            one position is lost. They come ready; the shift has been made in the input (10.1).""", quotes=the_number),
        mistake("the first sentence alone",
                RIGHT.but("real = labels", "logits, labels = logits[:1], labels[:1]\n    real = labels"), AVERAGE,
            "Only the first sentence counts. All tokens of the batch do.", quotes=the_number),
        mistake("one number for each sentence",
                RIGHT.but("real).sum()", "real).sum(1)").but(COUNT, "real.sum(1).clamp(min=1)"), AVERAGE,
            "One number for each sentence came back. Return one for the whole batch.", quotes=of_the_first),
        mistake("one number for each place", RIGHT.but("real).sum()", "real)").but(MEAN, "total"), AVERAGE,
            "One number for each position came back. Return their mean over the real tokens.", quotes=of_the_first),
        mistake("NaN without a word", SHORT.but("if not real.any():\n        return logits.sum() * 0\n    ", ""),
                AVERAGE,
            "A batch of only pads gives NaN, 0 divided by 0. It should give 0."),
        mistake("one added to the count", RIGHT.but(COUNT, "(real.sum() + 1)"), AVERAGE,
            "There is a 1 too many in what the sum is divided by, so every loss is a little too small.",
            quotes=the_number),
        mistake("a small number added to the count", RIGHT.but(COUNT, "(real.sum() + 1e-2)"), AVERAGE,
            "There is something added to the count of tokens, so every loss is a little too small. At least 1 is "
            "not the same as 1 more.",
            quotes=the_number),
        mistake("a plain number", RIGHT.but(MEAN, f"({MEAN}).item()"), LOSS,
            "A plain number came back, and no graph with it: there is nothing left to differentiate. "
            "Return the tensor."),
        mistake("through plain numbers", RIGHT.but(MEAN, f"torch.tensor(({MEAN}).item())"), LOSS,
            """Your loss went through plain numbers, such as float(...) and .item() return. The number is right, but no
            graph came back with it: no gradient flows, so nothing can be trained. Keep tensors to the end (and float64
            stays float64)."""),
        mistake("the pads' scores set to zero",
                RIGHT.but("log_softmax(logits", "log_softmax(logits * real[..., None]").but(
                  "(of_label * real)", "of_label").but(COUNT, "labels.numel()"), AVERAGE,
            """The scores at the pads were set to 0. A position of equal scores is not left out: it costs ln V. Leave
            pads out of the sum and of the count.""", quotes=the_number),
        mistake("label smoothing", SHORT.but("labels[real])", "labels[real], label_smoothing=0.1)"), FLOOR,
            "This is the loss against smoothed targets. Here only the label counts; smoothing is the next exercise.",
            quotes=the_number),
        mistake("squared error", RIGHT.but(LOG_P, "-(torch.softmax(logits, dim=-1) - 1) ** 2"), LOSS,
            "This is the squared distance of the label's probability from 1. Return its logarithm: minus log p.",
            quotes=the_number),
        mistake("the largest score's cost", RIGHT.but(GATHERED, "log_p.amax(-1)"), LOSS,
            "This is what the *likeliest* word costs, at each position. Return the label's cost, whether or not it is "
            "the likeliest.", quotes=the_number),
        *usual_mistakes(RIGHT, arguments="logits", detached=LOSS, float32=LOSS, single=LOSS, viewed=LOSS),
    ),
    correct=(
        correct("gather and mask", RIGHT),
        correct("the real places only", SHORT),
        correct("ignore_index", """
            def masked_ce(logits, labels, pad):
                summed = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad, reduction="sum")
                return summed / max(int((labels != pad).sum()), 1)
        """),
        correct("classes on axis 1", """
            def masked_ce(logits, y, p):
                loss = nn.CrossEntropyLoss(ignore_index=p, reduction="none")(logits.transpose(1, 2), y)
                return loss.sum() / (y != p).sum().clamp(min=1)
        """),
        correct("nll_loss", """
            def masked_ce(logits, labels, pad):
                if (labels == pad).all():
                    return logits.new_zeros(())
                return F.nll_loss(logits.log_softmax(-1).permute(0, 2, 1), labels, ignore_index=pad)
        """),
        correct("loops", """
            def masked_ce(logits, labels, pad):
                total, n = 0 * logits[0, 0, 0], 0
                for b in range(labels.shape[0]):
                    for t in range(labels.shape[1]):
                        if labels[b, t] != pad:
                            total = total + torch.logsumexp(logits[b, t], 0) - logits[b, t, labels[b, t]]
                            n += 1
                return total / n if n else total
        """),
        correct("one-hot", """
            def masked_ce(logits, labels, pad):
                wanted = F.one_hot(labels, logits.shape[-1]) * (labels != pad)[..., None]
                summed = -(wanted * F.log_softmax(logits, -1)).sum()
                return summed / torch.clamp(wanted.sum(), min=1)
        """),
        correct("NaN made 0", """
            def masked_ce(logits, labels, pad):
                B, T, V = logits.shape
                loss = F.cross_entropy(logits.reshape(B * T, V), labels.reshape(-1), ignore_index=pad)
                return torch.nan_to_num(loss)
        """),
        correct("a weight for each class", """
            def masked_ce(logits, labels, pad):
                weight = torch.ones(logits.shape[-1], dtype=logits.dtype)
                weight[pad] = 0
                summed = F.cross_entropy(logits.movedim(-1, 1), labels, weight=weight, reduction="sum")
                return summed / weight[labels].sum().clamp(min=1)
        """),
    ),
    hints=(
        "over what is the average? Count the tokens that are words.",
        "(B, T, V) scores and (B, T) labels give (B, T) losses; those of the words are summed and divided by their "
        "number.",
        "log-softmax along the vocabulary; minus the entry of the label; sum where the label is not a pad; "
        "divide by how "
        "many those are, "
        "by 1 if there are none.",
    ),
)  # fmt: skip
