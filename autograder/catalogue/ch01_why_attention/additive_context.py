"""01.5 additive_context."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch01_why_attention.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law, Probe
from autograder.catalogue.numbers import number
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row

LOOK_BACK, PADDING = sections("look-back padding")


def additive_context(s: Tensor, H: Tensor, Wa: Tensor, Ua: Tensor, va: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Bahdanau's attention: the mixture of the source states that decoder state s asks for, and its weights."""
    scores = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va  # (B, T)
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)  # (B, T)
    weights = weights.masked_fill(~mask, 0.0)  # a sentence of pads only: zeros instead of 0 / 0
    return (weights.unsqueeze(1) @ H).squeeze(1), weights  # (B, Dh), (B, T)


def _context(
    scores: str = "torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va",
    weights: str = "torch.softmax(scores.masked_fill(~mask, -math.inf), dim=1).masked_fill(~mask, 0.0)",
    context: str = "(w[:, :, None] * H).sum(dim=1)",
    result: str = "context, w",
) -> str:
    """An answer with one of its lines replaced."""
    return (
        f"def additive_context(s, H, Wa, Ua, va, mask):\n    scores = {scores}\n    w = {weights}\n"
        f"    context = {context}\n    return {result}\n"
    )


_BY_HAND = (
    torch.tensor([[0.5]]),
    torch.tensor([[[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]]]),
    torch.tensor([[1.0]]),
    torch.tensor([[1.0], [-0.25]]),
    torch.tensor([2.0]),
    torch.tensor([[True, True, False]]),
)

SHARED_OUT = Law(
    "the weights of a sentence sum to 1", lambda got: torch.allclose(got[1].sum(-1), torch.ones(()), atol=1e-4)
)


def _padded(lengths: list[int], T: int) -> Tensor:
    return torch.arange(T) < torch.tensor(lengths)[:, None]  # (B, T)


def _asked(g: torch.Generator, lengths: list[int], T: int, Ds: int, Dh: int, A: int, dtype=torch.float32) -> Case:
    """A batch of sentences of these lengths; what stands at the pads is large, so that it shows when it is mixed in."""
    B, mask = len(lengths), _padded(lengths, T)
    H = torch.where(mask[:, :, None], normal(g, B, T, Dh, dtype=dtype), 5 + normal(g, B, T, Dh, dtype=dtype))
    return Case(
        (
            normal(g, B, Ds, dtype=dtype),
            H,
            normal(g, Ds, A, dtype=dtype) / Ds**0.5,
            normal(g, Dh, A, dtype=dtype) / Dh**0.5,
            2 * normal(g, A, dtype=dtype),
            mask,
        )
    )


def _saturated(g: torch.Generator) -> Case:
    """Whole numbers so large that every tanh is -1, 0 or 1: scores are exact, and up to hundreds."""
    B, T, Ds, Dh, A = 2, 5, 3, 4, 6
    s, H = (torch.randint(-3, 4, shape, generator=g).float() for shape in ((B, Ds), (B, T, Dh)))
    Wa, Ua = (20.0 * torch.randint(-3, 4, shape, generator=g) for shape in ((Ds, A), (Dh, A)))
    va = torch.tensor([250.0, 130.0, 61.0, 1.0, -90.0, 2.0])
    H[:, 1] = H[:, 0]  # two words share the first place, or stand far below it together
    return Case((s, H, Wa, Ua, va, torch.ones(B, T, dtype=torch.bool)))


def _on_pads(evidence: Evidence) -> str:
    weights, mask = evidence.got[1], evidence.arguments[5]
    if not isinstance(weights, Tensor) or weights.shape != mask.shape:
        return ""
    return f"A padded word got the weight {number(weights[~mask].max())}."


def _weight_sums(evidence: Evidence) -> str:
    weights = evidence.got[1]
    return f"The weights of your sentences sum to {row(weights.sum(-1))}."


def _down(evidence: Evidence) -> str:
    return f"Down the batch your weights sum to {row(evidence.got[1].sum(0)[:4])}; along each sentence to {row(evidence.got[1].sum(1)[:4])}."


def _context_size(evidence: Evidence) -> str:
    return f"Your context has shape {tuple(evidence.got[0].shape)}, where {tuple(evidence.expected[0].shape)} was expected."


EXERCISE = Exercise(
    id="additive-context",
    number="01.5",
    visible_points=1,
    hidden_points=3,
    section=LOOK_BACK,
    reference=additive_context,
    probes=(
        Probe("by hand: two words and a pad", lambda g: Case(_BY_HAND), hidden=False, laws=(SHARED_OUT,)),
        Probe(
            "two sentences, of 5 and 3 words", lambda g: _asked(g, [5, 3], 5, 3, 4, 6), hidden=False, laws=(SHARED_OUT,)
        ),
        Probe("other sizes", lambda g: _asked(g, [2, 7, 4], 7, 6, 5, 8)),
        Probe("one sentence of one word", lambda g: _asked(g, [1], 1, 3, 5, 2)),
        Probe(
            "pads in front", lambda g: Case((*_asked(g, [4, 6], 6, 3, 4, 5).arguments[:5], _padded([4, 6], 6).flip(1)))
        ),
        Probe("large scores", _saturated),
        Probe("a sentence of pads only", lambda g: _asked(g, [3, 0], 4, 5, 3, 2, torch.float64), also=GRADIENTS),
        Probe("float64", lambda g: _asked(g, [4, 2, 3], 4, 2, 6, 5, torch.float64)),
        Probe("gradients", lambda g: _asked(g, [4, 3], 4, 3, 5, 6, torch.float64), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: _asked(g, [3, 2], 3, 4, 5, 6), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "softmax over the batch",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -math.inf), dim=0).masked_fill(~mask, 0.0)"),
            "The sentences share 1 among themselves, place by place: axis 0 is the batch. Each sentence shares out 1 among its own words.",
            LOOK_BACK,
            _down,
        ),
        known(
            "no tanh",
            _context("((s @ Wa)[:, None] + H @ Ua) @ va"),
            """The tanh is missing, so the score is linear, and then s adds the same number to every word: softmax does not see it.
            Your weights would be the same whatever the decoder asks.""",
            LOOK_BACK,
        ),
        known(
            "tanh too late",
            _context("torch.tanh(((s @ Wa)[:, None] + H @ Ua) @ va)"),
            "The tanh came after the sum with va, so no score leaves -1 to 1 and no word can stand out. It belongs on the sum of the two projections.",
            LOOK_BACK,
        ),
        known(
            "s makes no difference",
            _context("(torch.tanh(s @ Wa)[:, None] + torch.tanh(H @ Ua)) @ va"),
            """Your weights do not depend on s: every decoder state would look at the same words. Either s is left out, or it
            is added after the tanh, and softmax does not see a number that is added to every word alike. The two
            projections must meet *before* the tanh.""",
            LOOK_BACK,
        ),
        known(
            "s not spread over the words",
            _context("torch.tanh(s @ Wa + H @ Ua) @ va"),
            """s Wa is (B, A) and H Ua is (B, T, A): they do not meet, or meet wrongly. One projected s belongs to all T words of its own sentence,
            so it needs an axis where the words are.""",
            LOOK_BACK,
        ),
        known(
            "multiplied instead of added",
            _context("torch.tanh((s @ Wa)[:, None] * (H @ Ua)) @ va"),
            "The two projections were multiplied, number by number. Additive attention *adds* them before the tanh.",
            LOOK_BACK,
        ),
        known(
            "relu instead of tanh",
            _context("torch.relu((s @ Wa)[:, None] + H @ Ua) @ va"),
            "A relu stands where the tanh belongs: nothing is below 0 and nothing is bounded by 1.",
            LOOK_BACK,
        ),
        known(
            "sigmoid instead of tanh",
            _context("torch.sigmoid((s @ Wa)[:, None] + H @ Ua) @ va"),
            "A sigmoid stands where the tanh belongs: it runs from 0 to 1, tanh from -1 to 1.",
            LOOK_BACK,
        ),
        known(
            "va left out",
            _context("torch.tanh((s @ Wa)[:, None] + H @ Ua).sum(dim=-1)"),
            "The A numbers of each word were added as they are. va says how much each of them counts: it is learned like the rest.",
            LOOK_BACK,
        ),
        known(
            "dot product instead",
            _context("(H @ Ua @ (s @ Wa)[:, :, None])[:, :, 0]"),
            "You multiplied the two projections, as chapter 05 will. Here they are *added*, passed through tanh and weighed by va.",
            LOOK_BACK,
        ),
        known(
            "pads get weight",
            _context(weights="torch.softmax(scores, dim=1)"),
            "The mask was not used. Pads are no words: they must get a weight of exactly 0, and the words must share all of the 1.",
            PADDING,
            _on_pads,
        ),
        known(
            "pads blanked instead of masked",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                H = H * mask[:, :, None]
                w = torch.softmax(torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va, dim=1)
                return (w[:, :, None] * H).sum(dim=1), w
            """,
            """You set the pads' states to 0, but a vector of zeros still gets a score, and its share is missing for the words. The weight must be 0, not the
            state.""",
            PADDING,
            _on_pads,
        ),
        known(
            "mask turned around",
            _context(weights="torch.softmax(scores.masked_fill(mask, -math.inf), dim=1).nan_to_num()"),
            "The mask was read the wrong way round: True means *may attend*, and your weight lies on the pads.",
            PADDING,
            _on_pads,
        ),
        known(
            "masked after the softmax",
            _context(weights="torch.softmax(scores, dim=1) * mask"),
            "The pads were set to 0 after they had taken their share, so less than 1 is left for the words. Take them out of the *scores*.",
            PADDING,
            _weight_sums,
        ),
        known(
            "score 0 for pads",
            _context(weights="torch.softmax(scores * mask, dim=1)"),
            "The *score* of a pad became 0, and e to the 0 is 1: it still takes a share. What score leaves exactly nothing?",
            PADDING,
            _on_pads,
        ),
        known(
            "NaN where nothing may be attended",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -math.inf), dim=1)"),
            "Right wherever there is a word. A sentence of pads only gives 0 divided by 0, NaN; it should get weights of 0 and a context of 0.",
            PADDING,
        ),
        known(
            "shares for pads where there is no word",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -1e9), dim=1)"),
            """Right wherever there is a word. In a sentence of pads only, all scores are equally low, so the pads share the 1 after all; there the weights
            should be 0.""",
            PADDING,
        ),
        known(
            "minus infinity added",
            _context(
                weights="torch.softmax(scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf), dim=1).nan_to_num()"
            ),
            """The values are right, but in a sentence of pads only the *gradients* are NaN: minus infinity was added to the scores, and the way back
            runs through 0 divided by 0. Replace the scores instead of adding to them.""",
            PADDING,
        ),
        known(
            "no softmax",
            _context(weights="scores.masked_fill(~mask, 0.0)"),
            "These are the scores themselves, any numbers. Shares are wanted: positive, and 1 in all for each sentence.",
            LOOK_BACK,
            _weight_sums,
        ),
        known(
            "sigmoid instead of softmax",
            _context(weights="torch.sigmoid(scores) * mask"),
            "Each word was squeezed between 0 and 1 by itself, so words do not compete. A sentence shares out exactly 1.",
            LOOK_BACK,
            _weight_sums,
        ),
        known(
            "scores divided by the root of A",
            _context("torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va / Ua.shape[1] ** 0.5"),
            "The scores were divided by the root of A. That is chapter 05's dot product; the additive score is taken as it is.",
            LOOK_BACK,
        ),
        known(
            "exponential without care",
            _context(
                weights="(torch.exp(scores) * mask) / (torch.exp(scores) * mask).sum(1, keepdim=True).clamp(min=1e-30)"
            ),
            "Large scores break it: exp of several hundred is infinite, and infinite over infinite is no number. Let torch's softmax do it.",
            LOOK_BACK,
        ),
        known(
            "one sum for the whole batch",
            _context(weights="torch.softmax(scores.masked_fill(~mask, -math.inf).flatten(), dim=0).view_as(scores)"),
            "All sentences of the batch together share 1. Each sentence shares out 1 among its own words.",
            LOOK_BACK,
            _weight_sums,
        ),
        known(
            "only the best word",
            _context(context="H[torch.arange(len(H)), w.argmax(dim=1)] * mask.any(1, keepdim=True)"),
            "The weights are right, but the context is the state of the best word alone. It is the sum of *all* states, each times its weight.",
            LOOK_BACK,
        ),
        known(
            "plain mean",
            _context(context="(H * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)"),
            "The weights are right and then not used: the context is the plain mean of the words' states.",
            LOOK_BACK,
        ),
        known(
            "divided by the number of words",
            _context(context="(w[:, :, None] * H).mean(dim=1)"),
            "The weights are shares already; taking a mean divides by T once more. Add the weighted states up.",
            LOOK_BACK,
        ),
        known(
            "summed over the features",
            _context(context="(w[:, :, None] * H).sum(dim=2)"),
            "The weighted states were added up across their *features*. Add across the words, so that a vector of Dh numbers is left.",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "s as the value",
            _context(context="(w[:, :, None] * s[:, None]).sum(dim=1)"),
            "What you mix is s, the one who asks, and a mixture of copies of s is s. Mix the states of the source.",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "projected states mixed",
            _context(context="(w[:, :, None] * (H @ Ua)).sum(dim=1)"),
            "You mixed H times Ua. The projection serves to *find* the words; what is handed over are the states H themselves.",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "context and weights exchanged",
            _context(result="w, context"),
            "The two results stand in the other order: first the context (B, Dh), then the weights (B, T).",
            LOOK_BACK,
        ),
        known(
            "context alone",
            _context(result="context"),
            "Only the context came back. The weights are wanted as well: they are the alignment that one can look at.",
            LOOK_BACK,
        ),
        known(
            "an axis kept",
            _context(context="w[:, None] @ H"),
            "An axis of length 1 is left in the context: one mixture for each sentence, so (B, Dh).",
            LOOK_BACK,
            _context_size,
        ),
        known(
            "cut off from the gradient",
            _context(result="context.detach(), w.detach()"),
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph, and nothing here could be learned.",
            LOOK_BACK,
        ),
        known(
            "always float32",
            _context(result="context.float(), w.float()"),
            "float64 went in and float32 came out. The results keep the dtype of the input.",
            LOOK_BACK,
        ),
        known(
            "H changed in place",
            _context(context="H.mul_(w[:, :, None]).sum(dim=1)"),
            "Your function changed the caller's H. An operation that ends in _ or such as *= writes into the tensor that was passed in.",
            LOOK_BACK,
        ),
        known(
            "scores instead of weights",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va
                w = torch.softmax(e.masked_fill(~mask, -math.inf), -1).nan_to_num(0.0)
                return (w.unsqueeze(1) @ H).squeeze(1), e
            """,
            "The context is right, and beside it the scores came back. The weights are wanted: what the softmax made of them.",
            LOOK_BACK,
        ),
        known(
            "not low enough",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va
                w = torch.softmax(e.masked_fill(~mask, -10), -1)
                return (w.unsqueeze(1) @ H).squeeze(1), w
            """,
            "Pads got a score of -10, and e to the -10 is small but not 0: they still take a share. Only minus infinity leaves exactly nothing.",
            LOOK_BACK,
        ),
        known(
            "NaN kept in the weights",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) @ va
                w = torch.softmax(e.masked_fill(~mask, -math.inf), -1)
                return (w.nan_to_num(0.0).unsqueeze(1) @ H).squeeze(1), w
            """,
            "In a sentence of pads only, NaN was taken out of the context and stayed in the weights. They should be 0 as well.",
            LOOK_BACK,
        ),
    ),
    right=(
        right("broadcast and sum", _context()),
        right("bmm", _context(context="torch.bmm(w.unsqueeze(1), H).squeeze(1)")),
        right(
            "einsum",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                energy = torch.tanh(torch.einsum("bd,da->ba", s, Wa).unsqueeze(1) + torch.einsum("btd,da->bta", H, Ua))
                e = torch.einsum("bta,a->bt", energy, va)
                w = e.masked_fill(mask.logical_not(), float("-inf")).softmax(-1).nan_to_num(0.0)
                return torch.einsum("bt,btd->bd", w, H), w
            """,
        ),
        right(
            "linear layers",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = F.linear(torch.tanh(F.linear(s, Wa.T)[:, None] + F.linear(H, Ua.T)), va[None]).squeeze(-1)
                w = torch.where(mask, e, torch.full_like(e, -1e30)).softmax(dim=1)
                w = torch.where(mask, w, torch.zeros_like(w))
                return (w.unsqueeze(-1) * H).sum(1), w
            """,
        ),
        right(
            "loops",
            """
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
            """,
        ),
        right(
            "stable by hand",
            """
            def additive_context(s, H, Wa, Ua, va, mask):
                e = (torch.tanh((s @ Wa).unsqueeze(1) + H @ Ua) * va).sum(-1)
                e = e.masked_fill(~mask, -1e30)
                p = torch.exp(e - e.amax(dim=1, keepdim=True)) * mask
                w = p / p.sum(dim=1, keepdim=True).clamp(min=1e-30)
                return (w[:, None] @ H)[:, 0], w
            """,
        ),
        right(
            "renormalized",
            """
            def additive_context(state, states, W, U, v, keep):
                a = torch.softmax(torch.tanh(states @ U + (state @ W)[:, None, :]) @ v, dim=-1) * keep
                total = a.sum(-1, keepdim=True)
                a = a / torch.where(total > 0, total, torch.ones_like(total))
                return [torch.sum(a[..., None] * states, dim=-2), a]
            """,
        ),
    ),
    hints=(
        "the score of a word is one number: how do s (one vector) and H (a vector for each word) meet, and what makes one number of A?",
        "s Wa is (B, A), one for a whole sentence; H Ua is (B, T, A). Added: (B, T, A). Times va: (B, T). The weights mix H: (B, Dh).",
        "add the two projections, tanh, times va: scores. Pads to minus infinity, softmax along the words, pads to 0. Sum of weights times states.",
    ),
)
