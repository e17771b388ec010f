"""01.5: looking back at the words that matter now."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch01_why_attention.shared import SMALL_PRINT, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.laws import sums_to_one
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import FAR, GRADIENTS, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row

LOOK_BACK, SHARES = sections("look-back shares")
SHARED_OUT = sums_to_one("the weights of a sentence sum to 1", part=1)
BY_HAND = (
    torch.tensor([[0.5]]),
    torch.tensor([[[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]]]),
    torch.tensor([[1.0]]),
    torch.tensor([[1.0], [-0.25]]),
    torch.tensor([2.0]),
    torch.tensor([[True, True, False]]),
)


def additive_context(s: Tensor, H: Tensor, Wa: Tensor, Ua: Tensor, va: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Bahdanau's attention: the weighted average of the source states for decoder state s, and its weights."""
    scores = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va  # (B, T)
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)  # (B, T)
    weights = weights.masked_fill(~mask, 0.0)  # a sentence of pads only: zeros instead of 0 / 0
    return (weights.unsqueeze(1) @ H).squeeze(1), weights  # (B, Dh), (B, T)


def asked(
    g: torch.Generator, lengths: list[int], T: int, Ds: int, Dh: int, A: int,
    dtype: torch.dtype = torch.float32, front: bool = False,
) -> Case:
    """A batch of sentences of these lengths, padded at the end or at the front; values at pads are large."""
    B, mask = len(lengths), torch.arange(T) < torch.tensor(lengths)[:, None]  # (B, T)
    mask = mask.flip(1) if front else mask
    H = torch.where(mask[:, :, None], normal(g, B, T, Dh, dtype=dtype), 5 + normal(g, B, T, Dh, dtype=dtype))
    s, Wa = normal(g, B, Ds, dtype=dtype), normal(g, Ds, A, dtype=dtype) / Ds**0.5
    Ua, va = normal(g, Dh, A, dtype=dtype) / Dh**0.5, 2 * normal(g, A, dtype=dtype)
    return Case((s, H, Wa, Ua, va, mask))


def saturated(g: torch.Generator) -> Case:
    """Whole numbers so large that every tanh is -1, 0 or 1: scores are exact, and up to hundreds."""
    B, T, Ds, Dh, A = 2, 5, 3, 4, 6
    s, H = (torch.randint(-3, 4, shape, generator=g).float() for shape in ((B, Ds), (B, T, Dh)))
    Wa, Ua = (20.0 * torch.randint(-3, 4, shape, generator=g) for shape in ((Ds, A), (Dh, A)))
    va = torch.tensor([250.0, 130.0, 61.0, 1.0, -90.0, 2.0])
    H[:, 1] = H[:, 0]  # two words share the first place, or are far below it together
    return Case((s, H, Wa, Ua, va, torch.ones(B, T, dtype=torch.bool)))


def below_the_pads(g: torch.Generator) -> Case:
    """A word of the first sentence scores about 160; every word of the second about -160, its pads about -80; words and
    pads of the third score -2^32, which is below -1e9. All scores are exact in float32."""
    B, T, A = 3, 6, 5
    mask = torch.tensor([[1, 1, 0, 1, 0, 0], [0, 1, 1, 1, 0, 0], [1, 0, 1, 0, 1, 0]], dtype=torch.bool)
    H = torch.randint(-1, 2, (B, T, A), generator=g).float()
    H[:2, :, 4] = 0.0
    H[0, 0, :2] = 1.0
    H[1, :, 0], H[1, :, 1] = torch.where(mask[1], -1.0, 1.0), -1.0
    H[2] = torch.tensor([0.0, 0.0, 0.0, 0.0, -1.0])
    va = torch.tensor([40.0, 120.0, 0.5, 1.75, 2.0**32])
    return Case((torch.zeros(B, 2), H, normal(g, 2, A), 20 * torch.eye(A), va, mask))


def holes(g: torch.Generator) -> Case:
    """Pads with large states between the words; the state of one word of each sentence is zero."""
    s, H, Wa, Ua, va, _ = asked(g, [6, 6], 6, 3, 5, 4).arguments
    mask = torch.tensor([[1, 0, 1, 0, 1, 1], [0, 1, 0, 1, 1, 0]], dtype=torch.bool)
    H[~mask] = 50.0
    H[0, 2], H[1, 1] = 0.0, 0.0
    return Case((s, H, Wa, Ua, va, mask))


def far_away(g: torch.Generator) -> Case:
    """Scores of about 100,000,000: the first of the A features is the same for every word of a sentence."""
    s, H, Wa, Ua, va, mask = asked(g, [4, 2, 3], 4, 2, 6, 5, dtype=torch.float64).arguments
    Ua[:, 0], va[0] = 0, FAR
    return Case((s, H, Wa, Ua, va, mask))


def on_pads(evidence: Evidence) -> str:
    weights, mask = evidence.got[1], evidence.arguments[5]
    if not isinstance(weights, Tensor) or weights.shape != mask.shape:
        return ""
    return f"A padded word got the weight {number(weights[~mask].max())}."


def weight_sums(evidence: Evidence) -> str:
    return f"The weights of your sentences sum to {row(evidence.got[1].sum(-1))}."


def down(evidence: Evidence) -> str:
    weights = evidence.got[1]
    return (
        f"Down the batch your weights sum to {row(weights.sum(0)[:4])}; along each sentence to "
        f"{row(weights.sum(1)[:4])}."
    )


def lost_after_a_pad(evidence: Evidence) -> bool:
    """Whether a word that comes after a pad of its sentence, and whose state is not 0, got no weight."""
    weights, expected, mask = evidence.got[1], evidence.expected[1], evidence.arguments[5]
    after = mask & ((~mask).cumsum(1) > 0) & (evidence.arguments[1] != 0).any(-1)
    return bool((after & (weights == 0) & (expected > 0.01)).any())


def all_of_them_zero(evidence: Evidence) -> bool:
    """Whether the weights of a sentence that has words sum to 0, only where the scores are large, and none is NaN."""
    s, H, Wa, Ua, va, mask = evidence.arguments
    scores = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va
    zero = (evidence.got[1].abs().sum(1) < 1e-3) & mask.any(1)
    large = bool((scores.abs().amax(1) > 50)[zero].all())
    return bool(zero.any()) and large and not bool(evidence.got[1].isnan().any())


def nan_without_words(evidence: Evidence) -> bool:
    """Whether both results are NaN for sentences without a word, and correct for all others."""
    words = evidence.arguments[5].any(1)
    pairs = list(zip(evidence.got, evidence.expected, strict=True))
    lost = not words.all() and all(got[~words].isnan().all() for got, _ in pairs)
    return bool(lost) and all(torch.allclose(got[words], wanted[words], rtol=1e-3) for got, wanted in pairs)


def context_size(evidence: Evidence) -> str:
    return (
        f"Your context vector has shape {tuple(evidence.got[0].shape)}, where {tuple(evidence.expected[0].shape)} was "
        f"expected."
    )


RIGHT = answer("""
    def additive_context(s, H, Wa, Ua, va, mask):
        asks = (s @ Wa).unsqueeze(1)
        answers = H @ Ua
        scores = torch.tanh(asks + answers) @ va
        words = scores.masked_fill(~mask, -math.inf)
        weights = torch.softmax(words, dim=1)
        weights = weights.masked_fill(~mask, 0.0)
        shares = weights.unsqueeze(2) * H
        context = shares.sum(dim=1)
        return context, weights
""")
SCORES, SUM = "torch.tanh(asks + answers) @ va", "shares.sum(dim=1)"
WORDS, WEIGHTS = "scores.masked_fill(~mask, -math.inf)", "torch.softmax(words, dim=1)"
ZEROS = "weights = weights.masked_fill(~mask, 0.0)"
UNMASKED = RIGHT.but(WORDS, "scores").without(ZEROS)

EXERCISE = Exercise(
    id="additive-context", number="01.5", difficulty=3, minutes=20, visible_points=1, hidden_points=3,
    reference=additive_context, section=SHARES,
    probes=(
        visible("by hand: two words and a pad", Case(BY_HAND), laws=(SHARED_OUT,)),
        visible("two sentences, of 5 and 3 words", asked, [5, 3], 5, 3, 4, 6, laws=(SHARED_OUT,)),
        *usual_probes(asked, other=([2, 7, 4], 7, 6, 5, 8), smallest=([1], 1, 3, 5, 2), common=([4, 2, 3], 4, 2, 6, 5),
                      precise=far_away),
        hidden("pads in front", asked, [4, 6], 6, 3, 4, 5, front=True, announced_by="anywhere in a sentence"),
        hidden("pads between the words", holes, announced_by="pads may be anywhere in a sentence"),
        hidden("large scores", saturated, announced_by="however large a score is"),
        hidden("words that score far below the pads", below_the_pads, announced_by="Pads get a weight of exactly 0"),
        hidden("one pad, and nothing else", asked, [0], 1, 2, 3, 4, announced_by="a sentence of only pads gets zeros"),
        hidden("a sentence of pads only", asked, [3, 0], 4, 5, 3, 2, dtype=torch.float64, checks=GRADIENTS,
               announced_by="A sentence of only pads"),
    ),
    mistakes=(
        mistake("softmax over the batch", RIGHT.but("words, dim=1", "words, dim=0"), LOOK_BACK,
            """Your weights sum to 1 over the sentences, position by position: axis 0 is the batch. They should sum to 1
            over the words of each sentence.""", quotes=down),
        mistake("no tanh", RIGHT.but(SCORES, "(asks + answers) @ va"), LOOK_BACK,
            """The tanh is missing, so the score is linear, and then s adds the same number to every word: softmax does
            not see it. Your weights would be the same whatever the decoder's state is."""),
        mistake("tanh too late", RIGHT.but(SCORES, "torch.tanh((asks + answers) @ va)"), LOOK_BACK,
            """The tanh came after the sum with va, so no score leaves -1 to 1 and no word can get most of the weight.
            It belongs on the sum of the two projections."""),
        mistake("s makes no difference", RIGHT.but(SCORES, "(torch.tanh(asks) + torch.tanh(answers)) @ va"), LOOK_BACK,
            """Your weights do not depend on s: every decoder state would look at the same words. Either s is left out,
            or it is added after the tanh, and softmax does not see a number that is added to every word alike. The two
            projections must meet *before* the tanh."""),
        mistake("s not spread over the words", RIGHT.but("(s @ Wa).unsqueeze(1)", "s @ Wa"), LOOK_BACK,
            """s Wa is (B, A) and H Ua is (B, T, A): they do not meet, or meet wrongly. One projected s belongs to all T
            words of its own sentence, so it needs an axis where the words are."""),
        mistake("multiplied instead of added", RIGHT.but("asks + answers", "asks * answers"), LOOK_BACK,
            "The two projections were multiplied, number by number. Additive attention *adds* them before the tanh."),
        mistake("subtracted instead of added", RIGHT.but("asks + answers", "asks - answers"), LOOK_BACK,
            "One projection was subtracted from the other. Additive attention *adds* them before the tanh."),
        mistake("relu instead of tanh", RIGHT.but("tanh", "relu"), LOOK_BACK,
            "There is a relu where the tanh belongs: nothing is below 0 and nothing is bounded by 1."),
        mistake("sigmoid instead of tanh", RIGHT.but("tanh", "sigmoid"), LOOK_BACK,
            "There is a sigmoid where the tanh belongs: it runs from 0 to 1, tanh from -1 to 1."),
        mistake("va left out", RIGHT.but(SCORES, "torch.tanh(asks + answers).sum(dim=-1)"), LOOK_BACK,
            """The A numbers of each word were added as they are. va says how much each of them counts: it is learned
            like the rest."""),
        mistake("dot product instead", RIGHT.but(SCORES, "(answers @ asks.mT).squeeze(2)"), LOOK_BACK,
            """You multiplied the two projections, as chapter 05 will. Here they are *added*, passed through tanh and
            weighed by va."""),
        mistake("pads get weight", UNMASKED, SHARES,
            """The mask had no effect. Pads are not words: they must get a weight of exactly 0, and those of the words
            must sum to 1. (masked_fill leaves its tensor unchanged and returns a new one: alone on a line, its result
            is lost.)""", quotes=on_pads),
        mistake("pads blanked instead of masked",
                UNMASKED.before("asks = (s @ Wa).unsqueeze(1)", "H = H * mask[:, :, None]"), SHARES,
            """You set the pads' states to 0, but a vector of zeros still gets a score, and its weight is missing for
            the words. The weight must be 0, not the state.""", quotes=on_pads),
        mistake("mask turned around",
                RIGHT.but("(~mask, -math", "(mask, -math").but(ZEROS, "weights = weights.nan_to_num()"), SHARES,
            "The mask was read the wrong way round: True means *may attend*, and your weights go to the pads.",
            quotes=on_pads),
        mistake("mask turned around, and NaN", RIGHT.but("(~mask, -math", "(mask, -math").without(ZEROS), SHARES,
            """The mask was read the wrong way round: True means *may attend*, and your weights go to the pads. Where
            there are none, every score is minus infinity, and NaN comes back.""", quotes=on_pads),
        mistake("words added up without weights", RIGHT.but("weights.unsqueeze(2) * H", "mask.unsqueeze(2) * H"),
                SHARES,
            "Your context vector is the plain sum of the words: the weights were made and not used. Each state goes in "
            "with its weight."),
        mistake("the best word alone",
                RIGHT.but(WEIGHTS, "F.one_hot(words.argmax(dim=1), words.shape[1]).to(words.dtype)"), SHARES,
            "The word with the highest score took everything. The scores become *weights*, and every word gets one."),
        mistake("masked after the softmax", RIGHT.but(WORDS, "scores"), SHARES,
            """The pads were set to 0 after the softmax, so less than 1 is left for the words. Take them out of the
            *scores*.""", quotes=weight_sums),
        mistake("score 0 for pads", RIGHT.but(WORDS, "scores * mask").without(ZEROS), SHARES,
            """The *score* of a pad became 0, and e to the 0 is 1: it still gets a weight. Which score gives a weight of
            exactly 0?""", quotes=on_pads),
        mistake("NaN where nothing may be attended", RIGHT.without(ZEROS), SHARES,
            """Right wherever there is a word. A sentence of only pads gives 0 divided by 0, NaN; it should get weights
            of 0 and a context vector of 0. (A check of the whole mask misses single sentences.)""",
            shows=nan_without_words),
        mistake("shares for pads where there is no word", RIGHT.but("-math.inf", "-1e30").without(ZEROS), SHARES,
            """Right wherever there is a word. In a sentence of only pads, all scores are equally low, so the weights of
            the pads sum to 1 after all; there they should be 0."""),
        mistake("minus a billion for pads", RIGHT.but("-math.inf", "-1e9").without(ZEROS), SHARES,
            """Two things are missing. In a sentence of only pads, all scores are equally low, so the weights of the
            pads sum to 1; there they should be 0. And the number that you gave the pads is not lower than every score:
            where the words score lower still, the pads get their weight."""),
        mistake("weights of 0 where scores are large", RIGHT.but("-math.inf", "-1e4"), SHARES,
            """In a sentence with large scores all your weights are 0, or nearly: its exponentials became too large or
            too small, or the number you gave its pads is not lower than the scores of its words. Which score is lower
            than any other? And the maximum of which scores can be subtracted before the exponential?""",
            shows=all_of_them_zero),
        mistake("pads assumed at the end",
                RIGHT.before("asks = (s @ Wa).unsqueeze(1)",
                             "mask = torch.arange(mask.shape[1]) < mask.sum(dim=1, keepdim=True)"), SHARES,
            """A word that comes after a pad gets no weight. Pads may be anywhere in a sentence, so how many words there
            are does not say where they are: the mask says it, position by position.""", shows=lost_after_a_pad),
        mistake("score 0 for pads, then weight 0", RIGHT.but(WORDS, "scores * mask"), SHARES,
            """The scores of the pads became 0 before the softmax and their weights 0 after it. e to the 0 is 1, so the
            pads took a part of the sum, and less than 1 is left for the words. Which score has an exponential of 0?""",
            quotes=weight_sums),
        mistake("minus infinity added",
                RIGHT.but(WORDS, "scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf)"), SHARES,
            """The values are correct, but where a sentence has no word the *gradients* are NaN: they pass through 0
            divided by 0, even if the result no longer holds the NaN. Replace the scores of the pads before the softmax;
            adding a number to a score, or dividing after the softmax, lets the NaN through."""),
        mistake("exponentials without their sum", RIGHT.but(WEIGHTS, "torch.exp(words)"), LOOK_BACK,
            """Your weights are the exponentials of the scores. Softmax also divides those of a sentence by their sum,
            so that they sum to 1.""", quotes=weight_sums),
        mistake("no softmax", RIGHT.but(WEIGHTS, "scores"), LOOK_BACK,
            "These are the scores themselves, any numbers. Return weights: positive, with a sum of 1 for each "
            "sentence.",
            quotes=weight_sums),
        mistake("sigmoid instead of softmax", RIGHT.but(WEIGHTS, "torch.sigmoid(scores)"), LOOK_BACK,
            "A sigmoid was applied to each score separately, so words do not compete. The weights of a sentence sum to "
            "exactly 1.",
            quotes=weight_sums),
        mistake("scores divided by the root of A", RIGHT.but("@ va", "@ va / Ua.shape[1] ** 0.5"), LOOK_BACK,
            "The scores were divided by the root of A. That is chapter 05's dot product; the additive score is taken "
            "as it is."),
        mistake("exponential without care", RIGHT.but(
                  WEIGHTS, "torch.exp(words) / torch.exp(words).sum(1, True).clamp(min=1e-30)"), LOOK_BACK,
            """Large scores break it: exp of several hundred is infinite, and infinite over infinite is not a number.
            Let torch's softmax do it."""),
        mistake("one sum for the whole batch",
                RIGHT.but(WEIGHTS, "torch.softmax(words.flatten(), dim=0).view_as(scores)"), LOOK_BACK,
            "Your weights sum to 1 over all sentences of the batch together. They should sum to 1 over the words of "
            "each sentence.",
            quotes=weight_sums),
        mistake("only the best word", RIGHT.but(SUM, "H[torch.arange(len(H)), weights.argmax(1)] * mask.any(1, True)"),
                LOOK_BACK,
            """The weights are right, but the context vector is the state of the best word only. It is the sum of *all*
            states, each times its weight."""),
        mistake("plain mean", RIGHT.but(SUM, "(H * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)"),
                LOOK_BACK,
            "The weights are right and then not used: the context vector is the plain mean of the words' states."),
        mistake("divided by the number of words", RIGHT.but("shares.sum", "shares.mean"), LOOK_BACK,
            "The weights sum to 1 already; taking a mean divides by T once more. Add the weighted states up."),
        mistake("weights times all states of the batch", RIGHT.but(SUM, "weights @ H"),
                LOOK_BACK,
            """Each sentence's weights met the states of *every* sentence: the weights (B, T) were taken for one matrix
            and multiplied by each H[b]. Give them one more axis, so that they meet only their own sentence.""",
            quotes=context_size),
        mistake("summed over the features", RIGHT.but(SUM, "shares.sum(dim=2)"), LOOK_BACK,
            """The weighted states were added up across their *features*. Add across the words, so that a vector of Dh
            numbers is left.""", quotes=context_size),
        mistake("s as the value", RIGHT.but("unsqueeze(2) * H", "unsqueeze(2) * s.unsqueeze(1)"), LOOK_BACK,
            "You mix s, the decoder's state, and a weighted sum of copies of s is s. Mix the states of the source.",
            quotes=context_size),
        mistake("the first sentence's state for all", RIGHT.but("(s @ Wa)", "(s[:1] @ Wa)"), LOOK_BACK,
            "The state of the first sentence was used for every sentence. Row i of s belongs to sentence i."),
        mistake("projected states mixed", RIGHT.but("unsqueeze(2) * H", "unsqueeze(2) * answers"), LOOK_BACK,
            """You mixed H times Ua. The projection serves to *find* the words; pass the states H themselves.""",
            quotes=context_size),
        mistake("squashed states mixed", RIGHT.but("unsqueeze(2) * H", "unsqueeze(2) * torch.tanh(H)"), LOOK_BACK,
            """Your weights are correct; the context vectors are not. You mixed tanh of H: the tanh belongs in the
            scores, and the context vectors are weighted sums of H itself."""),
        mistake("context and weights exchanged", RIGHT.but("context, weights", "weights, context"), LOOK_BACK,
            "The two results are in the wrong order: first the context vectors (B, Dh), then the weights (B, T)."),
        mistake("context alone", RIGHT.but("context, weights", "context"), LOOK_BACK,
            "Only the context vectors came back. Return the weights as well: they are the alignment that one can look "
            "at."),
        mistake("an axis kept", RIGHT.but(SUM, "shares.sum(dim=1, keepdim=True)"), LOOK_BACK,
            "An axis of length 1 is left in the context vectors: one vector for each sentence, so (B, Dh).",
            quotes=context_size),
        *usual_mistakes(RIGHT, arguments="H s Wa Ua va", detached=SMALL_PRINT, float32=SMALL_PRINT,
                        single=SMALL_PRINT, squeezed=SMALL_PRINT, viewed=LOOK_BACK),
        in_place("H", RIGHT.but("weights.unsqueeze(2) * H", "H.mul_(weights.unsqueeze(2))"), SMALL_PRINT),
        mistake("scores instead of weights", RIGHT.but("context, weights", "context, scores"), LOOK_BACK,
            "The context vectors are right, but you returned the scores with them. Return the weights: what the "
            "softmax made of the scores."),
        mistake("masked scores instead of weights", RIGHT.but("context, weights", "context, words"), LOOK_BACK,
            "You returned the scores, with minus infinity at the pads, where the weights belong. Return what the "
            "softmax made of them."),
        mistake("not low enough", RIGHT.but("-math.inf", "-10").without(ZEROS), LOOK_BACK,
            """Pads got a score of -10, and e to the -10 is small but not 0: they still get a weight. Only minus
            infinity gives exactly 0."""),
        mistake("NaN kept in the weights", RIGHT.without(ZEROS).but("weights.un", "weights.nan_to_num(0.0).un"),
                LOOK_BACK,
            "In a sentence of only pads, NaN was taken out of the context vector and stayed in the weights. They "
            "should be 0 as well."),
        mistake("scores returned as weights",
                RIGHT.but("return context, weights", "return context, scores.masked_fill(~mask, 0.0)"), LOOK_BACK,
            "Your scores came back instead of the weights. Softmax turns them into weights, which sum to 1."),
        mistake("va inside the tanh", RIGHT.but(SCORES, "torch.tanh((asks + answers) * va).sum(-1)"), LOOK_BACK,
            """va was multiplied in before the tanh. It weighs what comes *out* of the tanh, A numbers between -1 and 1,
            and makes one score of them."""),
        mistake("scores divided by their sum", RIGHT.but(WORDS, "scores.masked_fill(~mask, 0.0)").but(
                  WEIGHTS, "words / words.sum(1, keepdim=True).where(mask.any(1, keepdim=True), "
                           "torch.ones_like(words[:, :1]))"), LOOK_BACK,
            """The scores were divided by their sum, without a power before. Scores may be negative, and weights may
            not: softmax takes e to the power of each first."""),
    ),
    correct=(
        correct("broadcast and sum", RIGHT),
        correct("bmm", RIGHT.but(SUM, "torch.bmm(weights.unsqueeze(1), H).squeeze(1)")),
        correct("einsum", """
            def additive_context(s, H, Wa, Ua, va, mask):
                energy = torch.tanh(torch.einsum("bd,da->ba", s, Wa).unsqueeze(1) + torch.einsum("btd,da->bta", H, Ua))
                e = torch.einsum("bta,a->bt", energy, va)
                w = e.masked_fill(mask.logical_not(), float("-inf")).softmax(-1).nan_to_num(0.0)
                return torch.einsum("bt,btd->bd", w, H), w
        """),
        correct("linear layers", """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = F.linear(torch.tanh(F.linear(s, Wa.T)[:, None] + F.linear(H, Ua.T)), va[None]).squeeze(-1)
                w = torch.where(mask, e, torch.full_like(e, -1e30)).softmax(dim=1)
                w = torch.where(mask, w, torch.zeros_like(w))
                return (w.unsqueeze(-1) * H).sum(1), w
        """),
        correct("loops", """
            def additive_context(s, H, Wa, Ua, va, mask):
                B, T, D = H.shape
                contexts, weights = [], []
                for b in range(B):
                    places = [t for t in range(T) if mask[b, t]]
                    w = torch.zeros(T, dtype=H.dtype)
                    context = torch.zeros(D, dtype=H.dtype)
                    if places:
                        scores = torch.stack([va @ torch.tanh(Wa.T @ s[b] + Ua.T @ H[b, t]) for t in places])
                        shares = torch.softmax(scores, dim=0)
                        w = w.index_put((torch.tensor(places),), shares)
                        context = sum(share * H[b, t] for share, t in zip(shares, places))
                    contexts.append(context)
                    weights.append(w)
                return torch.stack(contexts), torch.stack(weights)
        """),
        correct("stable by hand", """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = (torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) * va).sum(-1)
                e = e.masked_fill(~mask, -1e30)
                p = torch.exp(e - e.amax(dim=1, keepdim=True)) * mask
                w = p / p.sum(dim=1, keepdim=True).clamp(min=1e-30)
                return (w[:, None] @ H)[:, 0], w
        """),
        correct("renormalized", """
            def additive_context(state, states, W, U, v, keep):
                a = torch.softmax(torch.tanh(states @ U + (state @ W)[:, None, :]) @ v, dim=-1) * keep
                total = a.sum(-1, keepdim=True)
                a = a / torch.where(total > 0, total, torch.ones_like(total))
                return [torch.sum(a[..., None] * states, dim=-2), a]
        """),
    ),
    hints=(
        "the score of a word is one number: how do you combine s (one vector) and H (a vector for each word), and what "
        "turns A features into one number?",
        "s Wa is (B, A), one for a whole sentence; H Ua is (B, T, A). Added: (B, T, A). Times va: (B, T). "
        "The weights mix "
        "H: (B, Dh).",
        "add the two projections, tanh, times va: scores. Pads to minus infinity, softmax along the words, "
        "pads to 0. Sum "
        "of weights times states.",
    ),
)
