"""12.5: who looked at whom, in every head of every layer; and what happens to a claim when it is put to the test."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.ch12_capstone.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, normal, visible

LOOK, CONTROL = sections("look control")
KINDS = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}
Head = tuple[str, int, int]


def export_attention(weights: dict[str, list[Tensor]], source: Tensor, target: Tensor,
                     pad: int) -> list[dict[str, Tensor]]:
    """The weights of each sentence, kind by kind, (layers, heads, query, key), without pads."""
    found = []
    for row in range(len(source)):
        lengths = {"source": int((source[row] != pad).sum()), "target": int((target[row] != pad).sum())}
        found.append({
            kind: torch.stack([layer[row, :, : lengths[query], : lengths[key]] for layer in weights[kind]])
            for kind, (query, key) in KINDS.items()
        })
    return found  # fmt: skip


def ablate(score: Callable, heads: list[Head], controls: list[list[Head]]) -> dict:
    """What is lost without the heads of a claim, and without others, as many, one group after another."""
    whole = float(score([]))
    drop, control = whole - float(score(heads)), [whole - float(score(others)) for others in controls]
    return {"whole": whole, "drop": drop, "control": control, "holds": drop > max(control)}


def inputs(g: torch.Generator, lengths: list[tuple[int, int]], layers: tuple[int, ...] = (2, 3, 3), heads: int = 4,
           pad: int = 0,
           dtype: torch.dtype = torch.float32, pads_seen: bool = False) -> Case:
    """A batch of sentences: lengths of the source and of the target of each. layers: of encoder, decoder and cross.

    pads_seen: pads get attention weights too, as in a model without a padding mask.
    """
    sizes = {"source": max(s for s, _ in lengths), "target": max(t for _, t in lengths)}
    ids = {side: torch.randint(1, 30, (len(lengths), size), generator=g) for side, size in sizes.items()}
    real = {side: torch.arange(size) < torch.tensor([pair[place] for pair in lengths])[:, None]
            for place, (side, size) in enumerate(sizes.items())}  # fmt: skip
    ids = {side: torch.where(ids[side] == pad, 30, ids[side]).where(real[side], pad) for side in sizes}
    weights = {}
    for count, (kind, (query, key)) in zip(layers, KINDS.items(), strict=True):
        mask = (real[key] | pads_seen)[:, None, None, :].expand(-1, heads, sizes[query], -1)
        if kind == "decoder":
            mask = mask & torch.ones(sizes["target"], sizes["target"], dtype=torch.bool).tril()
        weights[kind] = [
            torch.softmax(2 * normal(g, *mask.shape, dtype=torch.float64).masked_fill(~mask, -1e9), -1).to(dtype)
            for _ in range(count)
        ]
    return Case((weights, ids["source"], ids["target"], pad), function="export_attention")


def zeroed_pads_filled(case: Case, result: Any) -> Any:
    """The same weights; rows and columns of pads that are there and hold only zeros get the weights that were passed
    in: they should have been cut off, whatever they hold."""
    if case.function != "export_attention" or not isinstance(result, list) or len(result) != len(case.arguments[1]):
        return result
    weights, source, target, pad = case.arguments
    real = {"source": source != pad, "target": target != pad}
    filled = []
    for row, entry in enumerate(result):
        if not isinstance(entry, dict) or entry.keys() != KINDS.keys():
            return result
        filled.append(dict(entry))
        for kind, (query, key) in KINDS.items():
            given, got = torch.stack([layer[row] for layer in weights[kind]]), entry[kind]
            words = real[query][row][:, None] & real[key][row]  # (query, key)
            alike = isinstance(got, Tensor) and got.shape == given.shape and got.dtype == given.dtype
            if alike and not bool(got[..., ~words].any()):
                filled[-1][kind] = torch.where(words, got, given)
    return filled


class Score:
    """Scores of a model with some heads switched off: each head contributes, some only together."""

    def __init__(self, whole: float, worth: dict[Head, float], together: float = 0.0) -> None:
        self.whole, self.worth, self.together = whole, worth, together

    def __call__(self, off: list) -> float:
        gone = {tuple(head) for head in off}
        lost = sum(self.worth.get(head, 0.0) for head in gone)
        return self.whole - lost - self.together * (len(gone) > 1)


def tested(g: torch.Generator, groups: int, size: int, claimed: float, others: tuple[float, ...], together: float = 0.0,
           whole: float = 0.0) -> Case:  # fmt: skip
    """A claim about `size` heads that cost `claimed` together, compared with groups that cost `others`."""
    every = [(kind, layer, head) for kind in KINDS for layer in range(2) for head in range(6)]
    order = [every[place] for place in torch.randperm(len(every), generator=g).tolist()]
    parts = [order[place * size : (place + 1) * size] for place in range(groups + 1)]
    parts[0].sort(reverse=True)  # so that an answer that sorts them is seen to change them
    worth = {head: cost / size for part, cost in zip(parts, (claimed, *others), strict=True) for head in part}
    score = Score(whole or 0.75 + int(torch.randint(20, (), generator=g)) / 100, worth, together)
    return Case((score, parts[0], parts[1:]), function="ablate")


def by_hand(claimed: float, *others: float) -> Case:
    """A claim about one head of the cross-attention, compared with single heads of the encoder."""
    groups = [[("encoder", 0, place)] for place in range(len(others))]
    worth = {("cross", 0, 1): claimed, **{group[0]: cost for group, cost in zip(groups, others, strict=True)}}
    return Case((Score(0.8, worth), [("cross", 0, 1)], groups), function="ablate")


def numbers(evidence: Evidence) -> str:
    """The result for a claim, and the correct one."""
    if isinstance(evidence.got, dict) and isinstance(evidence.expected, dict) and "holds" in evidence.expected:
        parts = [f"{name}: {_rounded(evidence.got.get(name))!r}" for name in evidence.expected]
        return f"You returned {', '.join(parts)[:160]}."
    return ""


def _rounded(value: Any) -> Any:
    """Without the last digits of a difference of floats."""
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


RIGHT = answer("""
    def export_attention(weights, source, target, pad):
        found = []
        for row in range(len(source)):
            s = int((source[row] != pad).sum())
            t = int((target[row] != pad).sum())
            encoder = torch.stack([layer[row] for layer in weights["encoder"]])[:, :, :s, :s]
            decoder = torch.stack([layer[row] for layer in weights["decoder"]])[:, :, :t, :t]
            cross = torch.stack([layer[row] for layer in weights["cross"]])[:, :, :t, :s]
            found.append({"encoder": encoder, "decoder": decoder, "cross": cross})
        return found

    def ablate(score, heads, controls):
        whole = score([])
        drop = whole - score(heads)
        control = [whole - score(others) for others in controls]
        holds = drop > max(control)
        return {"whole": whole, "drop": drop, "control": control, "holds": holds}
""")
S, T = "s = int((source[row] != pad).sum())", "t = int((target[row] != pad).sum())"
STACK = "torch.stack([layer[row] for layer in weights[\"{}\"]])"
ENCODER, DECODER, CROSS = (STACK.format(kind) for kind in KINDS)
FOUND = 'found.append({"encoder": encoder, "decoder": decoder, "cross": cross})'
DROP, CONTROLS, HOLDS = (
    "drop = whole - score(heads)", "control = [whole - score(others) for others in controls]",
    "holds = drop > max(control)"
)


def each(change: str) -> str:
    """The right answer with something done to every kind of weights."""
    kinds = ", ".join(f'"{kind}": {kind}{change}' for kind in ("encoder", "decoder", "cross"))
    return RIGHT.but(FOUND, f"found.append({{{kinds}}})")


# fmt: off
DROPS_INVERTED = Family("drops the other way round", """Your drops have the other sign: what is lost is counted as
    positive, whole minus what is left.""")
# fmt: on

EXERCISE = Exercise(
    id="export-attention", number="12.5", difficulty=2, minutes=40, visible_points=1, hidden_points=4,
    reference=(export_attention, ablate), normalize=zeroed_pads_filled, section=LOOK,
    omits={"a second call": "nothing is kept that a batch or a claim could leave behind",
           "precision": "weights are copied, and a score is a float",
           "repeated items": "each sentence is cut by itself, so one that occurs twice checks nothing new"},
    probes=(
        visible("two sentences, two layers, four heads", inputs, [(5, 3), (4, 6)]),
        visible("a claim that holds", by_hand(0.4, 0.05, 0.1)),
        visible("a claim that a control refutes", by_hand(0.3, 0.02, 0.0, 0.35)),
        visible("a weaker claim", by_hand(0.1, 0.02, 0.35, 0.0)),
        visible("the same, the controls in another order", by_hand(0.1, 0.35, 0.02, 0.0)),
        visible("every control costs more", by_hand(0.1, 0.35, 0.2)),
        hidden("other sizes, another pad", inputs, [(7, 4), (3, 8), (6, 5)], layers=(3, 1, 2), heads=2, pad=7,
               pads_seen=True,
               announced_by="pad: the id of the padding"),
        hidden("one sentence", inputs, [(5, 6)], announced_by="one dict for each sentence"),
        hidden("one word, one head, one layer", inputs, [(1, 1), (2, 3)], layers=(1, 2, 2), heads=1,
               announced_by="(layers, heads, query, key)"),
        hidden("as many words on both sides", inputs, [(4, 4), (6, 6)], heads=6, layers=(4, 4, 4),
               announced_by="The queries are the rows"),
        hidden("float64", inputs, [(4, 5), (3, 2)], dtype=torch.float64, checks=UNTOUCHED, announced_by=PROMISED),
        hidden("pairs of heads", tested, 3, 2, 0.31254, (0.1, 0.0, 0.05), together=0.03, checks=UNTOUCHED,
               announced_by="as many heads as `heads`"),
        hidden("a control that costs more", tested, 4, 2, 0.20463, (0.01, 0.0, 0.1, 0.25),
               announced_by="larger than the drop of every control"),
        hidden("equal to a control", tested, 2, 1, 0.25, (0.25, 0.0), whole=0.75,
               announced_by="larger than the drop of every control"),
        hidden("heads that are not missed", tested, 3, 1, -0.125, (-0.25, -0.125, -0.5), whole=0.5,
               announced_by="A drop may be negative"),
        hidden("heads that are in the way, and others more", tested, 2, 1, -0.125, (-0.25, -0.5), whole=0.5,
               announced_by="A drop may be negative"),
        hidden("a control that is in the way", tested, 2, 1, 0.125, (-0.25, 0.0), whole=0.5,
               announced_by="A drop may be negative"),
        hidden("one control", tested, 1, 3, 0.1, (0.4,), announced_by="one list of heads for each control"),
    ),
    mistakes=(
        mistake("rows and columns exchanged", each(".transpose(-2, -1)"), LOOK,
            """Rows and columns are exchanged: queries are the rows, keys the columns. In the encoder nothing shows it
            but the sums: each *row* sums to 1."""),
        mistake("heads averaged", each(".mean(1, keepdim=True)"), LOOK,
            """The heads were averaged. One that looks left and one that looks right become a blur that neither shows:
            keep them separate."""),
        mistake("heads averaged away", each(".mean(1)"), LOOK,
            """The axis of heads is gone: they were averaged. One that looks left and one that looks right become a blur
            that neither shows. Keep them separate."""),
        mistake("layers in a list",
                RIGHT.but(FOUND, "found.append({kind: list(w) for kind, w in zip(weights, (encoder, decoder, "
                                 "cross))})"), LOOK,
            "A list of layers came back. Return one tensor of four axes: stack them."),
        mistake("layers averaged", each(".mean(0, keepdim=True)"), LOOK,
            "The layers were averaged. Each layer reads what the one below has written: keep them separate."),
        mistake("heads before layers", each(".transpose(0, 1)"), LOOK,
            "Your axes are (heads, layers, ...); the task asks for (layers, heads, ...)."),
        mistake("the last layer alone", each("[-1:]"), LOOK,
                "Only the last layer came back. Return all of them, the first one first."),
        mistake("layers from the last", each(".flip(0)"), LOOK,
                "The layers came back in reverse: the first layer is the one that reads the words."),
        mistake("pads shown", RIGHT.but(S, "s = source.shape[1]").but(T, "t = target.shape[1]"), LOOK,
            """Pads are among your rows and columns. The weights of a pad mean nothing, and no word may attend to one:
            cut each sentence to its own words. (Weights that are set to 0 still have their rows and columns.)"""),
        mistake("pads among the queries", RIGHT.but(T, "t = target.shape[1]"), LOOK,
            "The rows of pads were left in: the target was not cut to its own words."),
        mistake("pads among all queries",
                RIGHT.but("[:, :, :s, :s]", "[..., :s]").but("[:, :, :t, :t]", "[..., :t]").but("[:, :, :t, :s]",
                    "[..., :s]"), LOOK,
            "The columns of pads were cut, and their rows were not: a pad's query means nothing either. Cut the "
            "queries as well as the keys."),
        mistake("pads among all keys",
                RIGHT.but("[:, :, :s, :s]", "[:, :, :s]").but("[:, :, :t, :t]", "[:, :, :t]").but("[:, :, :t, :s]",
                    "[:, :, :t]"), LOOK,
            "The rows of pads were cut, and their columns were not: no word may attend to a pad. Cut the keys as well "
            "as the queries."),
        mistake("pads among the keys", RIGHT.but(S, "s = source.shape[1]"), LOOK,
            "The columns of pads were left in: the source was not cut to its own words."),
        mistake("all cut to the shortest",
                RIGHT.but(S, "s = int((source != pad).sum(1).min())").but(T, "t = int((target != pad).sum(1).min())"),
                LOOK,
            "Every sentence was cut to the length of the shortest. Each has its own."),
        mistake("softmax once more", each(".softmax(-1)"), LOOK,
            """You applied a softmax to attention weights, which are probabilities already: the rows still sum to 1, but
            all weights are nearly equal."""),
        mistake("rows that sum to 1 again",
                RIGHT.but(FOUND, "found.append({kind: w / w.sum(-1, keepdim=True) for kind, w in zip(weights, "
                                 "(encoder, decoder, cross))})"), LOOK,
            """Your rows were divided by their sums after the cut. If a word attends to pads, that no longer shows:
            return the weights as they are, only without the rows and columns of pads."""),
        mistake("brightened", each(" / cross.amax()"), LOOK,
            """Your numbers were divided by the largest, as for a picture. Then rows no longer sum to 1, and two heads
            cannot be compared. A picture may scale its colors, not its data."""),
        mistake("cross the other way", RIGHT.but("[:, :, :t, :s]", "[:, :, :s, :t]"), LOOK,
            "In cross-attention the queries come from the *target* and the keys from the *source*: rows have the "
            "target's length."),
        mistake("cross exchanged", RIGHT.but('"cross": cross}', '"cross": cross.transpose(-2, -1)}'), LOOK,
            "Rows and columns of the cross-attention are exchanged: the queries come from the *target*, and they are "
            "the rows."),
        mistake("kinds exchanged",
                RIGHT.but('"encoder": encoder, "decoder": decoder', '"encoder": decoder, "decoder": encoder'), LOOK,
            "The weights of the encoder are under the decoder's name."),
        mistake("the first sentence for all",
                RIGHT.but(ENCODER, ENCODER.replace("row", "0")).but(DECODER, DECODER.replace("row", "0")).but(
                  CROSS, CROSS.replace("row", "0")), LOOK, "Every entry shows the first sentence of the batch."),
        mistake("pads taken for 0",
                RIGHT.but(S, "s = int((source[row] != 0).sum())").but(T, "t = int((target[row] != 0).sum())"), LOOK,
            "0 was taken for the padding. The argument pad is its id: other models use a different one."),
        mistake("no control", RIGHT.but(HOLDS, "holds = drop > 0"), CONTROL,
            """You called a claim true as soon as removing its heads costs anything. Removing any head may cost
            something: the claim is that *these* matter, so removing as many other heads must cost less. That is what a
            control is for.""", quotes=numbers),
        mistake("the mean of the controls", RIGHT.but(HOLDS, "holds = drop > sum(control) / len(control)"), CONTROL,
            """The claimed heads were compared with the mean of the controls. They must cost more than every control:
            a single one that costs as much, or more, refutes the claim.""", quotes=numbers),
        mistake("the first control alone", RIGHT.but(HOLDS, "holds = drop > control[0]"), CONTROL,
            "Only the first control was compared with. Every one of them must cost less.", quotes=numbers),
        mistake("better than one of them", RIGHT.but(HOLDS, "holds = drop > min(control)"), CONTROL,
            "The claimed heads were compared with the control that costs least. Every control must cost less than "
            "they do.", quotes=numbers),
        mistake("equal is enough", RIGHT.but(HOLDS, "holds = drop >= max(control)"), CONTROL,
            "A drop equal to a control's does not hold (*larger*, not *at least*): then the other heads matter just as "
            "much.",
            quotes=numbers),
        mistake("only if anything is lost", RIGHT.but(HOLDS, "holds = drop > 0 and drop > max(control)"), CONTROL,
            "A claim whose drop is negative did not hold, though every control's is lower. Compare the drops, "
            "whatever their sign."),
        mistake("compared by size", RIGHT.but(HOLDS, "holds = abs(drop) > max(map(abs, control))"), CONTROL,
            "The drops were compared without their sign. A negative drop is smaller than none: nothing is lost there."),
        mistake("only the claim's sign turned", RIGHT.but(DROP, "drop = score(heads) - whole"), CONTROL,
            "The drop of your claim has the other sign: it is the whole model's score minus what is left.",
            quotes=numbers),
        mistake("the controls' scores", RIGHT.but(CONTROLS, "control = [score(others) for others in controls]"),
                CONTROL,
            "For the controls the scores that are left came back. A drop is the whole model's score minus that.",
            quotes=numbers),
        mistake("scores instead of drops",
                RIGHT.but(DROP, "drop = score(heads)").but(CONTROLS,
                    "control = [score(others) for others in controls]"), CONTROL,
            "These are the scores that are left, not what was lost. A drop is the whole model's score minus that.",
            quotes=numbers),
        DROPS_INVERTED(RIGHT.but(DROP, "drop = score(heads) - whole").but(CONTROLS,
                    "control = [score(others) - whole for others in controls]"),
            CONTROL, quotes=numbers),
        DROPS_INVERTED(RIGHT.but(DROP, "drop = score(heads) - whole").but(
                  CONTROLS, "control = [score(others) - whole for others in controls]").but(HOLDS,
                      "holds = drop < min(control)"),
            CONTROL, quotes=numbers, name="drops and claim the other way round"),
        mistake("drops as sizes",
                RIGHT.but(DROP, "drop = abs(whole - score(heads))").but(CONTROLS,
                    "control = [abs(whole - score(others)) for others in controls]"), CONTROL,
            "The sign is lost: where the score rises without the heads, the drop is negative; yours is positive."),
        mistake("drops as sizes, and equal is enough",
                RIGHT.but(DROP, "drop = abs(whole - score(heads))").but(CONTROLS,
                    "control = [abs(whole - score(others)) for others in controls]").but(HOLDS,
                        "holds = drop >= max(control)"), CONTROL,
            """A drop equal to a control's does not hold (*larger*, not *at least*). And where the score rises without
            the heads, the drop is negative; yours is positive."""),
        mistake("drops as shares",
                RIGHT.but(DROP, "drop = 1 - score(heads) / whole").but(CONTROLS,
                    "control = [1 - score(others) / whole for others in controls]"), CONTROL,
            "Your drops are fractions of the whole score. Return the difference, in points of the score.",
            quotes=numbers),
        mistake("one head after another", RIGHT.but(DROP, "drop = sum(whole - score([head]) for head in heads)").but(
                  CONTROLS, "control = [sum(whole - score([head]) for head in others) for others in controls]"),
                  CONTROL,
            """Heads were switched off one at a time and their drops added up. Two heads can replace each other:
            switch a group off together."""),
        mistake("each head of a control by itself",
                RIGHT.but(CONTROLS, "control = [whole - score([head]) for others in controls for head in others]"),
                CONTROL,
            """There is a drop for each head of the controls: they were switched off one at a time. Switch off all heads
            of a control together, as you do for the claim: two heads can replace each other.""", quotes=numbers),
        mistake("controls on top of the claim",
                RIGHT.but(CONTROLS, "control = [whole - score(heads + others) for others in controls]"), CONTROL,
            "The claimed heads were still off while the controls were measured. Switch off each group separately.",
            quotes=numbers),
        mistake("controls pile up", RIGHT.but(CONTROLS, """
                  control, off = [], []
                  for others in controls:
                      off = off + others
                      control.append(whole - score(off))"""), CONTROL,
            "Each control was switched off on top of those before. Measure each group separately, with all others on.",
            quotes=numbers),
        mistake("all controls at once",
                RIGHT.but(CONTROLS, "control = [whole - score([head for others in controls for head in others])]"),
                CONTROL,
            "All controls were switched off together. Measure each one separately: the claim is compared "
            "with every one.", quotes=numbers),
        mistake("the mean control", RIGHT.but('"control": control', '"control": sum(control) / len(control)'), CONTROL,
            "One number came back for the controls. Return a list with the drop of each."),
    ),
    correct=(
        correct("sentence by sentence", RIGHT),
        correct("by boolean masks", """
            def export_attention(weights, source, target, pad):
                sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
                stacked = {kind: torch.stack(list(layers), dim=1) for kind, layers in weights.items()}
                return [
                    {kind: w[b][:, :, sides[kind][0][b] != pad][..., sides[kind][1][b] != pad]
                        for kind, w in stacked.items()}
                    for b in range(source.size(0))
                ]

            def ablate(score, heads, controls):
                base = float(score([]))
                lost = [base - float(score(list(group))) for group in [heads, *controls]]
                return dict(whole=base, drop=lost[0], control=lost[1:],
                    holds=all(lost[0] > other for other in lost[1:]))
        """),
        correct("loops over layers and heads", """
            def cut(layers, b, q, k):
                return torch.stack([torch.stack([head[:q, :k] for head in layer[b]]) for layer in layers])

            def export_attention(weights, source, target, pad):
                result = []
                for b, (s_ids, t_ids) in enumerate(zip(source.tolist(), target.tolist())):
                    s, t = len([i for i in s_ids if i != pad]), len([i for i in t_ids if i != pad])
                    result.append({
                        "cross": cut(weights["cross"], b, t, s),
                        "decoder": cut(weights["decoder"], b, t, t),
                        "encoder": cut(weights["encoder"], b, s, s),
                    })
                return result

            def ablate(score, heads, controls):
                whole = score([])
                without = score(heads)
                controls_without = [score(c) for c in controls]
                holds = without < min(controls_without)
                return {"holds": bool(holds), "whole": whole, "drop": whole - without,
                        "control": [whole - c for c in controls_without]}
        """),
    ),
    hints=(
        "which axis holds the queries, which one the keys, and what would refute the claim?",
        "a layer's (B, h, Tq, Tk) for one sentence is (h, Tq, Tk), cut to the words of each side; stacked over layers "
        "it has four axes. "
        "A claim needs one score of the whole model, one without the heads, one for each control.",
        "for each sentence count the tokens of both sides that are not pads; stack the layers' weights and cut them; "
        "for a claim: "
        "whole minus what is left, "
        "for the heads and for each control; it holds if the first is larger than all others.",
    ),
)  # fmt: skip
