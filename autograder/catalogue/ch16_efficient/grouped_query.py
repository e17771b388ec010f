"""16.4: heads that share keys and values."""

import torch
from torch import Tensor

from autograder.catalogue.ch16_efficient.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row
from transformer_ref.beyond import efficient

GROUPS, CACHE = sections("groups cache-bytes")


def grouped_query(q: Tensor, k: Tensor, v: Tensor, groups: int) -> Tensor:
    """Attention in which head i uses the keys and values of group i // (h / groups)."""
    return efficient.grouped_query(q, k, v, groups)


def inputs(
    g: torch.Generator, B: int, h: int, groups: int, Tq: int, Tk: int, d_k: int, d_v: int,
    dtype: torch.dtype = torch.float32
) -> Case:
    q, k, v = normal(g, B, h, Tq, d_k, dtype=dtype), normal(g, B, groups, Tk, d_k, dtype=dtype), normal(g, B, groups,
        Tk, d_v, dtype=dtype)
    return Case((q, k, v, groups))


def far_away(g: torch.Generator) -> Case:
    q, k, v, groups = inputs(g, 2, 6, 3, 5, 4, 7, 8, dtype=torch.float64).arguments
    return Case((q, k, v + FAR, groups))


def large(g: torch.Generator) -> Case:
    """Whole numbers and d_k = 4, so scores are exact, up to several hundred."""
    q, k = torch.randint(-9, 10, (2, 4, 3, 4), generator=g).float(), torch.randint(-9, 10, (2, 2, 5, 4),
        generator=g).float()
    q[0, 0], k[0, 0, 2], q[1, 3, 1] = 30.0, 30.0, -30.0
    return Case((q, k, normal(g, 2, 2, 5, 7), 2))


# 4 heads with one query each, 2 groups with two keys; the values of group 0 are tens, those of group 1 hundreds.
BY_HAND = Case((
    torch.zeros(1, 4, 1, 4), torch.zeros(1, 2, 2, 4), torch.tensor([[[[10.0], [30.0]], [[100.0], [300.0]]]]), 2,
))  # fmt: skip
ASKED = Case((
    torch.tensor([0.0, 2.197225, 0.0, -2.197225])[None, :, None, None].repeat(1, 1, 1, 4) * 0.5,
    torch.tensor([[[0.0], [1.0]], [[0.0], [1.0]]])[None].repeat(1, 1, 1, 4),
    torch.tensor([[[[10.0], [30.0]], [[100.0], [300.0]]]]), 2,
))  # fmt: skip


def heads(evidence: Evidence) -> str:
    """The first number of each head, as it is and as it should be."""
    got, wanted = evidence.got, evidence.expected
    if tuple(got.shape) != tuple(wanted.shape):
        return f"You returned shape {tuple(got.shape)} where {tuple(wanted.shape)} was expected."
    far = ~torch.isclose(got.to(wanted.dtype), wanted, rtol=1e-3, atol=1e-5).flatten(1).any(1)
    b = int(far.int().argmax())
    whose = "" if b == 0 else f" of sentence {b}"
    return (
        f"The first value of each head{whose} is {row(got[b, :, 0, 0])}; it should be {row(wanted[b, :, 0, 0])}."
    )


RIGHT = answer("""
    def grouped_query(q, k, v, groups):
        h = q.shape[1]
        if h % groups != 0:
            raise ValueError("groups: expected a divisor of the heads")
        k = k.repeat_interleave(h // groups, dim=1)
        v = v.repeat_interleave(h // groups, dim=1)
        scores = q @ k.transpose(-2, -1)
        scores = scores / q.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)
        return weights @ v
""")
IF, RAISE = "if h % groups != 0:", 'raise ValueError("groups: expected a divisor of the heads")'
KEYS, VALUES = "k = k.repeat_interleave(h // groups, dim=1)", "v = v.repeat_interleave(h // groups, dim=1)"
DIVISION, SOFTMAX = "scores = scores / q.shape[-1] ** 0.5", "weights = torch.softmax(scores, dim=-1)"
RETURNED = "return weights @ v"
PLACES = RIGHT.but(KEYS, "k = k[:, torch.arange(h) // (h // groups)]").but(VALUES,
    "v = v[:, torch.arange(h) // (h // groups)]")

DIFFERENT_ROOT = Family("divided by a different root", """The scores were divided by the root of {what}. A score adds up
    d_k products, the last axis of q: that root.""")

EXERCISE = Exercise(
    id="grouped-query", number="16.4", difficulty=2, minutes=20, visible_points=2, hidden_points=3,
    reference=grouped_query, section=GROUPS, quotes=heads,
    probes=(
        visible("4 heads, 2 groups: every key alike", BY_HAND),
        visible("4 heads, 2 groups: each head has its own query", ASKED),
        visible("6 heads, 3 groups", inputs, 2, 6, 3, 4, 5, 8, 7),
        visible("4 heads do not make 3 groups",
                Case((torch.zeros(1, 4, 2, 5), torch.zeros(1, 3, 6, 5), torch.zeros(1, 3, 6, 7), 3))),
        *usual_probes(inputs, other=(3, 8, 2, 5, 7, 6, 9), smallest=(1, 2, 1, 1, 1, 3, 1), common=(2, 6, 2, 4, 5, 3, 7),
                      precise=far_away),
        hidden("as many groups as heads", inputs, 2, 5, 5, 4, 6, 3, 7,
               announced_by="groups = h is multi-head attention"),
        hidden("one group for all heads", inputs, 2, 5, 1, 4, 6, 3, 7,
               announced_by="groups = 1 is multi-query attention"),
        hidden("12 heads, 4 groups", inputs, 1, 12, 4, 2, 7, 5, 6, announced_by="head i uses group i // (h / groups)"),
        hidden("large scores", large, announced_by="Scores may be large"),
        hidden("6 heads do not make 4 groups", inputs, 2, 6, 4, 3, 5, 8, 7, announced_by="groups does not divide h"),
        hidden("more groups than heads", inputs, 2, 3, 6, 4, 5, 8, 7, announced_by="groups does not divide h"),
    ),
    mistakes=(
        mistake("repeat instead of repeat_interleave", RIGHT.but(KEYS, "k = k.repeat(1, h // groups, 1, 1)").but(
                  VALUES, "v = v.repeat(1, h // groups, 1, 1)"), GROUPS,
            """Head 1 used the keys of group 1: the groups were repeated in the order 0 1 0 1, but neighboring heads
            share a group, 0 0 1 1. The axis of heads is cut into (groups, h / groups), in this order."""),
        mistake("the keys by turns, the values as they should", RIGHT.but(KEYS, "k = k.repeat(1, h // groups, 1, 1)"),
                GROUPS,
            """Head 1 used the keys of group 1 and the values of group 0: the keys were repeated in the order 0 1 0 1,
            but neighboring heads share a group, 0 0 1 1."""),
        mistake("the values by turns, the keys as they should", RIGHT.but(VALUES, "v = v.repeat(1, h // groups, 1, 1)"),
                GROUPS,
            """Head 1 used the keys of group 0 and the values of group 1: the values were repeated in the order 0 1 0 1,
            but neighboring heads share a group, 0 0 1 1."""),
        mistake("heads sent to i // groups", PLACES.but(
                  "k = k[:, torch.arange(h) // (h // groups)]", "k = k[:, torch.arange(h) // groups]").but(
                  "v = v[:, torch.arange(h) // (h // groups)]", "v = v[:, torch.arange(h) // groups]"), GROUPS,
            """Head i used group i // groups, which may not exist. Each group serves h / groups heads, so head i uses
            group i // (h / groups)."""),
        mistake("groups copies of each", RIGHT.but(KEYS, "k = k.repeat_interleave(groups, dim=1)").but(
                  VALUES, "v = v.repeat_interleave(groups, dim=1)"), GROUPS,
            """Each group was copied groups times. It serves h / groups heads: with 6 heads and 3 groups that is 2
            copies, not 3. (With 4 heads and 2 groups both numbers are 2, so the results are
            correct there.)"""),
        mistake("all heads read group 0", RIGHT.but(KEYS, "k = k[:, :1]").but(VALUES, "v = v[:, :1]"), GROUPS,
            "Every head used group 0. That is multi-query attention; with several groups each serves h "
            "/ groups heads."),
        mistake("values of group 0 for all", RIGHT.but(VALUES, "v = v[:, :1]"), GROUPS,
            "Every head used the keys of its own group and the values of group 0. Keys and values of a group belong "
            "together."),
        mistake("one result for a whole group", RIGHT.without(KEYS).without(VALUES).before(
                  "scores = q @ k.transpose(-2, -1)", "q = q.unflatten(1, (groups, -1)).mean(dim=2)").but(
                  RETURNED, "return (weights @ v).repeat_interleave(h // groups, dim=1)"), GROUPS,
            """All heads of a group return the same: their queries were averaged, or only one of them was used. The
            heads share keys and values, and each has its own queries."""),
        mistake("no scaling", RIGHT.without(DIVISION), GROUPS,
            "The division by the root of d_k is missing, so the largest score takes nearly everything (chapter 05)."),
        mistake("divided by the root of d_model", RIGHT.but("q.shape[-1] ** 0.5", "(h * q.shape[-1]) ** 0.5"), GROUPS,
            "The scores were divided by the root of the whole width. A head has d_k numbers, the last axis "
            "of q: that root."),
        mistake("divided by the root of the groups' width",
                RIGHT.but("q.shape[-1] ** 0.5", "(groups * q.shape[-1]) ** 0.5"), GROUPS,
            "The scores were divided by the root of groups times d_k. A query meets one key of d_k "
            "numbers: that root."),
        DIFFERENT_ROOT(RIGHT.but("q.shape[-1] ** 0.5", "v.shape[-1] ** 0.5"), GROUPS, name="divided by the root of d_v",
                       what="the width of a value"),
        DIFFERENT_ROOT(RIGHT.but("q.shape[-1] ** 0.5", "k.shape[-2] ** 0.5"), GROUPS,
                       name="divided by the root of the number of keys", what="the number of keys"),
        DIFFERENT_ROOT(RIGHT.but("q.shape[-1] ** 0.5", "h ** 0.5"), GROUPS,
                       name="divided by the root of the number of heads", what="the number of heads"),
        mistake("divided by the root of a group's width",
                RIGHT.but("q.shape[-1] ** 0.5", "(h // groups * q.shape[-1]) ** 0.5"), GROUPS,
            "The scores were divided by the root of all d_k of a group's heads together. Each head is scaled "
            "separately, by the root of its own d_k."),
        mistake("a causal mask", RIGHT.but("scores = scores / q.shape[-1] ** 0.5", """
                  later = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
                  scores = (scores / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)"""), GROUPS,
            "Later keys were masked. Nothing is masked here: every query sees all keys of its group."),
        mistake("numbers repeated in place of heads",
                RIGHT.but(KEYS, "k = k.repeat_interleave(h // groups).reshape(k.shape[0], h, *k.shape[2:])").but(
                  VALUES, "v = v.repeat_interleave(h // groups).reshape(v.shape[0], h, *v.shape[2:])"), GROUPS,
            "Every single number was repeated, since no axis was named, and then cut into heads. Whole heads are "
            "repeated."),
        mistake("divided by d_k", RIGHT.but(" ** 0.5", ""), GROUPS,
            "The scores were divided by d_k itself. Its *root* brings them back to about 1 (chapter 05)."),
        mistake("groups that do not divide", RIGHT.without(IF).without(RAISE), GROUPS,
            """4 heads cannot be divided among 3 groups. Your code did not raise ValueError: it went on, or stopped with
            a different error, which does not say why. Look at h and groups before anything is computed."""),
        mistake("groups that do not divide are cut off", RIGHT.without(IF).without(RAISE).before(
                  "scores = q @ k.transpose(-2, -1)", "q = q[:, :k.shape[1]]"), GROUPS,
            "4 heads cannot be divided among 3 groups, and heads were left out instead. Raise ValueError before "
            "anything is computed."),
        mistake("assert instead of ValueError", RIGHT.without(IF).without(RAISE).before(KEYS, "assert h % groups == 0"),
                GROUPS,
            "AssertionError was raised where groups does not divide h. For an argument that the caller can get wrong, "
            "raise a ValueError."),
        mistake("asked whether h divides groups", RIGHT.but("h % groups != 0", "groups % h != 0"), GROUPS,
            """Fewer groups than heads were refused, which is what this is for: the check is the wrong way round. groups
            has to divide h, so the rest of h divided by groups counts."""),
        mistake("the keys averaged",
                RIGHT.but(KEYS, "k = k.mean(dim=1, keepdim=True)").but(VALUES, "v = v.mean(dim=1, keepdim=True)"),
                GROUPS,
            """Keys and values of all groups were averaged into one. (An average of *heads* is how a trained multi-head
            model is converted into a grouped one, once; here each head reads its group as it is.)"""),
        mistake("the queries averaged", RIGHT.without(KEYS).without(VALUES).before(
                  DIVISION, "scores = scores").but("scores = q @ k",
                                                   "q = q.unflatten(1, (groups, -1)).mean(dim=2)\n    scores = q @ k"),
                                                   GROUPS,
            """The queries of a group's heads were averaged, so only one head a group is left. Queries stay as they are:
            h of them come in, h outputs go out."""),
        mistake("heads of a group added up",
                RIGHT.but(RETURNED, "return (weights @ v).unflatten(1, (groups, -1)).sum(dim=2)"), GROUPS,
            "The outputs of a group's heads were added up. They share keys and values and nothing else: there should "
            "be h outputs."),
        mistake("the heads merged", RIGHT.but(RETURNED, "return (weights @ v).transpose(1, 2).flatten(2)"), GROUPS,
            "The heads were put side by side, (B, Tq, h dv). Here they stay apart: (B, h, Tq, dv)."),
        mistake("grouped, and put together the other way", RIGHT.without(KEYS).without(VALUES).but(
                  RETURNED, "return (weights @ v.unsqueeze(2)).transpose(1, 2).flatten(1, 2)").but(
                  "scores = q @ k.transpose(-2, -1)",
                  "q = q.unflatten(1, (groups, h // groups))\n    scores = q @ k.unsqueeze(2).transpose(-2, -1)"),
                  GROUPS,
            "Each head's output is right, but the heads came back in a different order: their two axes changed places "
            "before they became one."),
        mistake("softmax over the queries", RIGHT.but("scores, dim=-1", "scores, dim=-2"), GROUPS,
            "The softmax runs over the queries. The weights of each query sum to 1 over the keys: the last axis "
            "(chapter 05)."),
        mistake("softmax over the heads", RIGHT.but("scores, dim=-1", "scores, dim=1"), GROUPS,
            "The softmax runs over the heads. In each head the weights of a query sum to 1 over the keys: the last "
            "axis (chapter 05)."),
        mistake("one softmax for a whole group", RIGHT.but(SOFTMAX, """
                  joined = scores.unflatten(1, (groups, -1)).movedim(2, -2)
                  weights = torch.softmax(joined.flatten(-2), dim=-1).unflatten(-1, joined.shape[-2:]).movedim(-2,
                      2).flatten(1, 2)"""), GROUPS,
            "Your weights sum to 1 over the heads of a group together. The heads have keys in common, but not weights: "
            "those of each head should sum to 1."),
        mistake("no softmax", RIGHT.but(SOFTMAX, "weights = scores"), GROUPS,
            "The scores themselves mixed the values. A softmax makes weights of them first (chapter 05)."),
        mistake("softmax without care", RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores)
                  weights = weights / weights.sum(dim=-1, keepdim=True)"""), GROUPS,
            "Large scores became infinite, and infinity over infinity is NaN. Chapter 04's softmax subtracts the "
            "largest first."),
        mistake("the values not shared out", RIGHT.but(RETURNED, "return weights"), GROUPS,
            "These are the weights, (B, h, Tq, Tk). They still have to mix the values."),
        mistake("values of the keys", RIGHT.but(RETURNED, "return weights @ k"), GROUPS,
            "The keys were mixed instead of the values."),
        mistake("weights and output", RIGHT.but(RETURNED, "return weights @ v, weights"), GROUPS,
            "Two things came back. Return only the output."),
        mistake("the first sentence's keys for all",
                RIGHT.but(KEYS, "k = k[:1].repeat_interleave(h // groups, dim=1)").but(
                  VALUES, "v = v[:1].repeat_interleave(h // groups, dim=1)"), GROUPS,
            "Every sentence of the batch read the keys and values of the first one."),
        mistake("groups backwards",
                PLACES.but("k[:, torch.arange(h) // (h // groups)]",
                           "k[:, (h - 1 - torch.arange(h)) // (h // groups)]").but(
                  "v[:, torch.arange(h) // (h // groups)]", "v[:, (h - 1 - torch.arange(h)) // (h // groups)]"), GROUPS,
            "The first heads read the last group. Count groups from the front, as heads are."),
        in_place("q", RIGHT.before(KEYS, "q /= q.shape[-1] ** 0.5").without(DIVISION), GROUPS),
        *usual_mistakes(RIGHT, arguments="q k v", detached=GROUPS, float32=GROUPS, single=GROUPS, squeezed=GROUPS,
                        viewed=GROUPS),
    ),
    correct=(
        correct("repeat_interleave", RIGHT),
        correct("places of the groups", PLACES),
        correct("an axis for the groups", """
            def grouped_query(q, k, v, groups):
                B, h, Tq, dk = q.shape
                if h % groups:
                    raise ValueError(f"{h} heads, {groups} groups")
                q = q.reshape(B, groups, h // groups, Tq, dk)
                scores = torch.einsum("bgrqd,bgkd->bgrqk", q, k) * dk**-0.5
                return torch.einsum("bgrqk,bgkv->bgrqv", scores.softmax(-1), v).reshape(B, h, Tq, v.shape[-1])
        """),
        correct("queries of a group below each other", """
            def grouped_query(q, k, v, groups):
                B, h, Tq, dk = q.shape
                if h % groups:
                    raise ValueError
                asked = q.reshape(B, groups, -1, dk)
                weights = F.softmax(asked @ k.mT / math.sqrt(dk), dim=-1)
                return (weights @ v).reshape(B, h, Tq, -1)
        """),
        correct("head by head", """
            def grouped_query(q, k, v, groups):
                h = q.size(1)
                if h % groups != 0 or groups > h:
                    raise ValueError("h must be a multiple of groups")
                outputs = []
                for i in range(h):
                    j = i * groups // h
                    w = torch.softmax(q[:, i] @ k[:, j].transpose(1, 2) / q.size(-1) ** 0.5, dim=2)
                    outputs.append(w @ v[:, j])
                return torch.stack(outputs, dim=1)
        """),
        correct("the library's", """
            def grouped_query(q, k, v, groups):
                if q.shape[1] % groups:
                    raise ValueError("not divisible")
                return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        """),
        correct("expanded", """
            def grouped_query(query, key, value, groups):
                B, h, _, dk = query.shape
                each, rest = divmod(h, groups)
                if rest:
                    raise ValueError("groups must divide the heads")
                key = key[:, :, None].expand(-1, -1, each, -1, -1).flatten(1, 2)
                value = value[:, :, None].expand(-1, -1, each, -1, -1).flatten(1, 2)
                return torch.softmax(query / dk**0.5 @ key.transpose(2, 3), 3) @ value
        """),
    ),
    hints=(
        "write down which group each of 6 heads uses when there are 3 groups. How many heads use the same one?",
        "q (B, h, Tq, dk); k (B, groups, Tk, dk) has to meet it: each group h / groups times in a row gives (B, h, "
        "Tk, dk). Scores (B, h, "
        "Tq, Tk), output (B, h, Tq, dv).",
        "refuse groups that do not divide h; copy the keys and values of each group h / groups times, the copies next "
        "to each other on the axis of heads; then chapter 05's attention.",
    ),
)  # fmt: skip
