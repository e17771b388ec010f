"""15.1: which words are chosen, and what replaces them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch15_pretrained.shared import listed, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, in_place
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import InWords, JudgedParts
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.beyond import pretrained

MLM, EIGHTY = sections("mlm eighty")
UNCOUNTED = -100
# of the tables whose shares are looked at; where fewer than half of the words are chosen, more rows
ROWS, LENGTH = 400, 50
CHANCE = 0.045  # at least five times as much as such a share differs by chance
SMALL = 1_000  # with fewer tokens, only what chance has no part in is looked at
MANY_ROWS = 300  # from so many sentences on, chance alone never makes their shares as alike as a fixed number does
CERTAIN = 20  # an id that should have that many labels does not lack all of them by chance
FORM, RIGHT_FORM = "what came back", "two tables, both (B, T) and long"
COVERED, STAYED, OTHER = (
    "share of the chosen that becomes the mask", "share of the chosen that stays",
    "share of the chosen that becomes another word"
)
CHOSEN = "share of the words that is chosen"
BY_SENTENCE = "one draw decides for many words of a sentence"
FIXED = "as many words are chosen in one sentence as in another"
BY_PLACE = "one draw decides for a place in many sentences"
FATES = "one fate for many words of a sentence"
WORDS = "ordinary words that never come as another word"
TWINS = "share of the other words that equal the one before"
AT_SPECIALS = "labels of the specials"
SPECIAL = "share of the specials that is chosen or changed"
A_SPECIAL, AN_UNCHOSEN, A_LABEL = (
    "a special is chosen or changed", "a word changes that has no label",
    "a label is not the word that stood there"
)  # in small tables
UNCHOSEN = "share of the words that change and are not chosen"
LABELS = "share of the labels that are not the word that stood there"
BEYOND, ALL, NONE = "ids that the vocabulary does not have", "every word is chosen", "no word is chosen"
MUST_NOT = {
    **dict.fromkeys((SPECIAL, A_SPECIAL), "a special was chosen or changed"),
    **dict.fromkeys((LABELS, A_LABEL), "a label is not the original id of its word"),
    **dict.fromkeys((UNCHOSEN, AN_UNCHOSEN), "a word was changed that has no label"),
    BY_SENTENCE: "words of one sentence are not chosen independently",
    FIXED: "the number of chosen words is fixed for each sentence, so they are not chosen independently",
    BY_PLACE: "words at one position of many sentences are not chosen independently",
    FATES: "what replaces the chosen words of one sentence is not drawn independently",
}


def mlm_mask(
    ids: Tensor, p: float, g: torch.Generator, mask_id: int, V: int, specials: list[int]
) -> tuple[Tensor, Tensor]:
    """The masked input, and the labels."""
    inputs, labels = pretrained.mlm_mask(ids, p, g, mask_id, V, specials)
    return inputs, labels


def what_happened(case: Case, result: Any) -> Any:
    """Shares of what became of the tokens; in small tables, only what chance has no part in."""
    ids, _, _, mask_id, V, specials = case.arguments
    if result is None:
        return None
    form = _form(result, ids)
    inputs, labels = result if form == RIGHT_FORM else (ids, torch.full_like(ids, UNCOUNTED))
    special = torch.isin(ids, torch.tensor(specials, dtype=ids.dtype))
    asked, changed = labels != UNCOUNTED, inputs != ids
    chosen = asked & ~special
    found: dict[str, Any] = {
        FORM: form,
        AT_SPECIALS: sorted(set(labels[special].tolist()))[:3],
        SPECIAL: _share(special & (asked | changed), special),
        LABELS: _share(chosen & (labels != ids), chosen),
        UNCHOSEN: _share(~special & changed & ~asked, ~special & ~asked),
        BEYOND: sorted(set(inputs[(inputs < 0) | (inputs >= V)].tolist()))[:5],
    }
    if ids.numel() < SMALL:
        for share, happens in ((SPECIAL, A_SPECIAL), (LABELS, A_LABEL), (UNCHOSEN, AN_UNCHOSEN)):
            found[happens] = found.pop(share) > 0
        found |= {ALL: bool((chosen | special).all()), NONE: not bool(chosen.any())}
    else:
        covered, stayed = chosen & (inputs == mask_id), chosen & (inputs == ids)
        other = chosen & ~covered & ~stayed
        found |= {CHOSEN: _share(chosen, ~special), COVERED: _share(covered, chosen), OTHER: _share(other, chosen),
                  STAYED: _share(stayed, chosen)}
        by_sentence = _shared(chosen, ~special, 1) or _together(chosen, ~special)
        found |= {BY_SENTENCE: by_sentence, FIXED: _fixed(chosen, ~special), BY_PLACE: _shared(chosen, ~special, 0),
                  FATES: _shared(covered, chosen, 1)}
        followed = other[:, :-1].any() if other.shape[1] > 1 else False
        came = inputs[other]
        found[TWINS] = float((came[1:] == came[:-1]).double().mean()) if followed and len(came) > 1 else 0.0
        enough = len(came) > 15 * V
        found[WORDS] = len(set(range(V)) - {mask_id, *specials} - set(came.tolist())) if enough else 0
    told = {"inputs": inputs, "labels": labels} if form == RIGHT_FORM else {}
    return JudgedParts({"in words": _in_words(case, found, _never_chosen(case, asked))} | found, told)


def _in_words(case: Case, found: dict[str, Any], never_chosen: str) -> str:
    """The first of what was found that is wrong, in words. never_chosen: what to add where the share is wrong."""
    ids, p, _, mask_id, V, _ = case.arguments
    far = CLOSE if p == 1 and ids.numel() > ROWS * LENGTH else CHANCE
    fates = {COVERED: ("became the mask", 0.8 + 0.1 / V), OTHER: ("became a different id", 0.1 - 0.2 / V),
             STAYED: ("stayed as they are", 0.1 + 0.1 / V)}  # fmt: skip
    if bool((ids == mask_id).any()):  # a mask that stays cannot be distinguished
        fates = {}
    for what, value in found.items():
        told = ""
        if what == FORM and value != RIGHT_FORM:
            told = f"{value} came back, where inputs and labels are expected, both (B, T) and long"
        elif what == AT_SPECIALS and set(value) - {UNCOUNTED}:
            told = f"a special has the label {max(value)}; specials are never chosen, so their label is {UNCOUNTED}"
        elif what == BEYOND and value:
            told = f"your inputs hold the id {value[0]}, but ids run from 0 to {V - 1}"
        elif what in MUST_NOT and value:
            told = MUST_NOT[what]
        elif what == ALL and value != (p == 1) and p in (0, 1):
            told = "p = 1, but not every word has a label" if p else "p = 0, but every word has a label"
        elif what == NONE and value and p == 1:
            told = "p = 1, but no word has a label"
        elif what == NONE and not value and p == 0:
            told = "p = 0, but words have labels"
        elif what == CHOSEN and abs(float(value) - p) > far:
            told = f"{value:.1%} of the words have a label, where p = {p:g}{never_chosen}"
        elif what in fates and abs(value - fates[what][1]) > far:
            told = f"{value:.1%} of the chosen words {fates[what][0]}, where about {fates[what][1]:.0%} are expected"
        elif what == TWINS and value > 2 / V + far:
            told = f"{value:.0%} of the random ids equal the random id before, so they are not drawn separately"
        elif what == WORDS and value:
            told = f"{value} of the vocabulary's words never come as a random id"
        if told:
            return InWords(told)
    return "as expected"


def _never_chosen(case: Case, asked: Tensor) -> str:
    """The ids that are not special and never have a label although they occur often, as the end of a sentence."""
    ids, p, _, _, _, specials = case.arguments
    occur, labeled = (ids[kept].bincount() for kept in (ids >= 0, asked))
    enough = [int(token) for token in (p * occur > CERTAIN).nonzero()[:, 0]]
    never = [token for token in enough if token not in specials and not labeled[token : token + 1].any()]
    if not never:
        return ""
    ids_named = f"the id{'s' if len(never) > 1 else ''} {listed(map(str, never))}"
    return f"; words with {ids_named} never have one, and specials = {specials}"


def _form(result: Any, ids: Tensor) -> str:
    """What came back, in words."""
    if not isinstance(result, (tuple, list)):
        return "one table" if isinstance(result, Tensor) else "no table"
    if len(result) != 2:
        return f"{len(result)} things"
    for name, table in zip(("inputs", "labels"), result, strict=True):
        if not isinstance(table, Tensor):
            return f"{name} that are not a tensor"
        if table.shape != ids.shape:
            return f"{name} of shape {tuple(table.shape)}"
        if table.dtype != ids.dtype:
            return f"{name} of dtype {str(table.dtype).removeprefix('torch.')}"
    return RIGHT_FORM


def _share(some: Tensor, of: Tensor) -> float:
    return float(some.sum() / of.sum()) if bool(of.any()) else 0.0


def _shared(some: Tensor, of: Tensor, axis: int) -> bool:
    """Whether the shares along an axis lie farther apart than independent draws let them. Their squared distances from
    the mean, in units of what chance gives, are 1 on average; twice that never comes by chance here.
    """
    away = _away(some, of, axis)
    return away is not None and bool(away.mean() > 2.5)


def _fixed(some: Tensor, of: Tensor) -> bool:
    """Whether the shares of many sentences are closer together than independent draws let them be, since a fixed number
    is chosen in each."""
    away = _away(some, of, 1)
    return away is not None and len(away) >= MANY_ROWS and bool(away.mean() < 0.5)


def _away(some: Tensor, of: Tensor, axis: int) -> Tensor | None:
    """The squared distances of the shares along an axis from their mean, in units of what chance gives; None if there
    is nothing to compare."""
    sizes, share = of.sum(axis).double(), _share(some, of)
    if not 0 < share < 1 or of.shape[1 - axis] < 2:
        return None
    kept = sizes > 0
    return (some.sum(axis)[kept] / sizes[kept] - share).square() * sizes[kept] / (share * (1 - share))


def _together(some: Tensor, of: Tensor) -> bool:
    """Whether neighbors are chosen together more often, or more rarely, than independent draws choose them."""
    pairs, share = of[:, :-1] & of[:, 1:], _share(some, of)
    if not 0 < share < 1 or not bool(pairs.any()):
        return False
    both = _share(some[:, :-1] & some[:, 1:] & pairs, pairs)
    return abs(both - share**2) > 0.1 * share * (1 - share)


def inputs(
    g: torch.Generator, p: float, B: int = ROWS, T: int = LENGTH, V: int = 40, mask_id: int = 2,
    specials: tuple[int, ...] = (0, 2, 1),
) -> Case:  # fmt: skip
    """Sentences that begin with a special and end in pads, of ordinary words that repeat."""
    words = torch.tensor([token for token in range(V) if token not in specials and token != mask_id])
    # the last third comes only from the vocabulary
    ids = words[torch.randint(2 * len(words) // 3, (B, T), generator=g)]
    if specials:
        lengths = torch.randint(max(T // 2, 1), T + 1, (B,), generator=g)
        lengths[-1] = T
        ids = ids.masked_fill(torch.arange(T) >= lengths[:, None], specials[0])
        if T > 2:
            ids[:, 0] = specials[-1] if specials[-1] != mask_id else specials[0]
            ids[: B // 2, T // 3] = next(special for special in specials if special != mask_id)
    return Case((ids, p, _generator(g), mask_id, V, list(specials)))


def with_masks(g: torch.Generator, *sizes: Any) -> Case:
    """Sentences in which every fourth word is the mask itself."""
    case = inputs(g, *sizes)
    ids, _, _, mask_id, _, specials = case.arguments
    fourth = torch.arange(ids.shape[1]) % 4 == 1
    ids[~torch.isin(ids, torch.tensor(specials)) & fourth] = mask_id
    return case


def _generator(g: torch.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(torch.randint(1 << 40, (), generator=g)))


def by_hand(p: float) -> Case:
    """Two sentences, of four words and of two."""
    ids = torch.tensor([[1, 7, 4, 9, 5], [1, 8, 4, 0, 0]])
    return Case((ids, p, torch.Generator().manual_seed(15), 2, 12, [0, 2, 1]))


def many() -> Case:
    """The same table for everybody."""
    return inputs(torch.Generator().manual_seed(15), 0.92)


def shares(evidence: Evidence) -> str:
    """What became of the chosen words."""
    got = evidence.got
    if not isinstance(got, dict) or COVERED not in got:
        return ""
    return (f"Of the words, {got[CHOSEN]:.0%} were chosen (p = {evidence.arguments[1]}). "
            f"Of those, {got[COVERED]:.0%} became the mask, {got[OTHER]:.0%} another "
            f"word, and {got[STAYED]:.0%} stayed.")  # fmt: skip


def shares_and_reason(evidence: Evidence) -> str:
    """What became of the chosen words, and the slip that leads to exactly these shares."""
    got = evidence.got
    if not isinstance(got, dict) or COVERED not in got:
        return ""
    reason = ""
    if got[COVERED] < 0.06 and abs(got[OTHER] - 0.88) < 0.03:
        reason = ("That is what happens if random ids replace the word wherever the draw is below .9: they overwrite "
                  "the masks below .8. Their interval is .8 to .9.")
    elif abs(got[COVERED] - 0.8) < CHANCE and abs(got[OTHER] - 0.02) < 0.012:
        reason = ("2 % is a tenth of the 20 % that are not masked. If a second draw decides about these, half of them "
                  "become a random id.")
    return f"{shares(evidence)} {reason}".strip()


def another_id(evidence: Evidence) -> bool:
    """Whether one id is where the mask should be."""
    inputs, labels, ids = evidence.got.told["inputs"], evidence.got.told["labels"], evidence.arguments[0]
    others = inputs[(labels != UNCOUNTED) & (inputs != ids)]
    one = len(others) > 0 and int(others.bincount().max()) > 0.7 * len(others)
    return one and near(evidence, CHOSEN) and evidence.got[COVERED] < 0.06 and evidence.got[OTHER] > 0.75


def others_everywhere(evidence: Evidence) -> bool | None:
    """Whether about one in ten of the ordinary words without a label was replaced by some other word. None where
    these are few, so that chance may decide."""
    inputs, labels = evidence.got.told["inputs"], evidence.got.told["labels"]
    specials = torch.tensor(evidence.arguments[5], dtype=inputs.dtype)
    left = (labels == UNCOUNTED) & ~torch.isin(evidence.arguments[0], specials)
    if int(left.sum()) < SMALL:
        return None
    changed = left & (inputs != evidence.arguments[0])
    covered = changed & (inputs == evidence.arguments[3])
    return 0.07 < _share(changed, left) < 0.13 and _share(covered, changed) < 0.2


def tables(evidence: Evidence) -> str:
    """The first sentence's ids, inputs and labels."""
    if not isinstance(evidence.got, JudgedParts) or not evidence.got.told:
        return ""
    rows = [evidence.arguments[0][0], evidence.got.told["inputs"][0], evidence.got.told["labels"][0]]
    ids, read, labels = (" ".join(map(str, row[:6].tolist())) + (" ..." if len(row) > 6 else "") for row in rows)
    return f"Your first row of ids {ids} became inputs {read} and labels {labels}."


def specials_chosen(evidence: Evidence) -> str:
    """Which of the specials were chosen or changed, and which were not."""
    if not isinstance(evidence.got, JudgedParts) or not evidence.got.told:
        return ""
    ids, told = evidence.arguments[0], evidence.got.told
    touched = (told["labels"] != UNCOUNTED) | (told["inputs"] != ids)
    there = [special for special in evidence.arguments[5] if bool((ids == special).any())]
    chosen = [special for special in there if bool(touched[ids == special].any())]
    safe = [special for special in there if special not in chosen]
    if not chosen or not safe:
        return ""
    return f"Of the specials, your code chose or changed {listed(map(str, chosen))}, and not {listed(map(str, safe))}."


def staying(least: float, most: float) -> Callable[[Evidence], bool | None]:
    """Whether the share of the chosen words that stay is between these, and that of the other words is right. None
    where chance may decide, in small tables, and where the text itself holds masks."""

    def shown(evidence: Evidence) -> bool | None:
        ids, mask_id, got = evidence.arguments[0], evidence.arguments[3], evidence.got
        if STAYED not in got or abs(got[STAYED] - 0.19) < 0.005 or bool((ids == mask_id).any()):
            return None
        return near(evidence, CHOSEN) and abs(got[OTHER] - 0.1) < 0.03 and least < got[STAYED] < most

    return shown


def near(evidence: Evidence, *shares: str) -> bool:
    """Whether these shares are as they should be."""
    return all(what in evidence.got and abs(evidence.got[what] - evidence.expected[what]) <= CHANCE for what in shares)


def only_covered(evidence: Evidence) -> bool:
    """Whether there are labels only at the masks, except at a few that came as a random id, though other words changed,
    in a small table perhaps none."""
    inputs, labels = evidence.got.told["inputs"], evidence.got.told["labels"]
    asked, covered = labels != UNCOUNTED, inputs == evidence.arguments[3]
    came = covered & (evidence.arguments[0] != evidence.arguments[3])
    changed = (inputs != evidence.arguments[0]) & ~covered
    exchanged = bool(changed.any()) or inputs.numel() < SMALL
    few = int((came & ~asked).sum()) < 0.02 * int(came.sum())
    return not bool((asked & ~covered).any()) and few and exchanged


def only_changed(evidence: Evidence) -> bool:
    """Whether there are labels where a word changed, by the mask and by other words, of which a small table may have
    none; and nowhere else, except at a few words that were replaced by themselves."""
    inputs, labels = evidence.got.told["inputs"], evidence.got.told["labels"]
    changed, asked = inputs != evidence.arguments[0], labels != UNCOUNTED
    exchanged = bool((changed & (inputs != evidence.arguments[3])).any()) or inputs.numel() < SMALL
    unchanged = int((asked & ~changed).sum())
    few = unchanged < 0.02 * int(changed.sum()) and bool(asked[changed].all())
    few = few and evidence.got.get(OTHER, 0.0) < 0.15  # else all have labels, and none stays
    return few and exchanged and bool(changed.any()) and evidence.arguments[3] not in evidence.arguments[0]


def first_alone(evidence: Evidence) -> bool:
    """Whether of several sentences only the first has labels."""
    asked = (evidence.got.told["labels"] != UNCOUNTED).any(dim=1)
    return len(asked) > 1 and bool(asked[0]) and not bool(asked[1:].any())


RIGHT = answer("""
    def mlm_mask(ids, p, g, mask_id, V, specials):
        special = torch.zeros_like(ids, dtype=torch.bool)
        for s in specials:
            special = special | (ids == s)
        chosen = torch.rand(ids.shape, generator=g) < p
        chosen = chosen & ~special
        labels = torch.where(chosen, ids, -100)
        fate = torch.rand(ids.shape, generator=g)
        other = torch.randint(V, ids.shape, generator=g)
        inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)
        inputs = torch.where(chosen & (fate >= 0.9), other, inputs)
        return inputs, labels
""")
DRAWN, REAL = "chosen = torch.rand(ids.shape, generator=g) < p", "chosen = chosen & ~special"
LABELED, FATE = "labels = torch.where(chosen, ids, -100)", "fate = torch.rand(ids.shape, generator=g)"
COVER, SWAP = (
    "inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)",
    "inputs = torch.where(chosen & (fate >= 0.9), other, inputs)"
)
RANDOM, RETURN = "other = torch.randint(V, ids.shape, generator=g)", "return inputs, labels"
FOUND = "special = special | (ids == s)"
CLOSE = 0.015  # where about 100,000 words are chosen
AMONG = {"atol": CHANCE, "rtol": 0.0}

# fmt: off
SOME_SPECIALS = Family("one special left out", """No special may be chosen, but only some of them are left out. In a
    loop over `specials` two slips do that: it does not go through the whole list, or each special overwrites what was
    found for those before it.""")
ONE_DRAW = Family("one draw for both", """One random number decided both whether a word is chosen and what becomes of
    it. Among those below p nearly all are below .8 too. Draw once more for the second question.""")
# fmt: on

EXERCISE = Exercise(
    id="mlm-mask", number="15.1", difficulty=2, minutes=30, visible_points=1, hidden_points=4,
    reference=mlm_mask, normalize=what_happened, section=MLM, quotes=shares, seconds=60.0,
    omits={"precision": "ids are whole numbers, and shares are compared as far as chance allows"},
    probes=(
        visible("p = 1, two sentences", by_hand(1.0)),
        visible("p = 0.92, 20,000 tokens", many(), **AMONG),
        hidden("p = 0.15", inputs, 0.15, 4 * ROWS, announced_by="p: the probability that a word is chosen", **AMONG),
        hidden("p = 0.5, drawn with g", inputs, 0.5, checks={"generator"},
               announced_by="draw random numbers only from g", **AMONG),
        hidden("p = 1", inputs, 1.0, 6 * ROWS, announced_by="from 0 to 1", atol=CLOSE, rtol=0.0),
        hidden("p = 0", inputs, 0.0, 3, 5, announced_by="from 0 to 1"),
        hidden("other ids", inputs, 0.5, ROWS, LENGTH, 44, 43, (5, 11, 43), announced_by="any ids", **AMONG),
        hidden("a mask beyond the specials", with_masks, 0.5, ROWS, LENGTH, 43, 7, (3, 0),
               announced_by="need not be one of them", **AMONG),
        hidden("no specials", inputs, 0.5, ROWS, LENGTH, 40, 2, (), announced_by="may be empty", **AMONG),
        hidden("sentences of one word", inputs, 0.5, 20_000, 1, 40, 2, (0, 2, 1), announced_by=PROMISED, **AMONG),
        hidden("one sentence", inputs, 0.5, 1, 20_000, 40, 2, (0, 2, 1), announced_by=PROMISED, **AMONG),
        second_call(inputs, 0.5, **AMONG),
    ),
    mistakes=(
        mistake("specials chosen", RIGHT.without(REAL), MLM,
            """Specials were chosen too: the model has to guess pads and the tokens that frame a sentence. Nothing
            can be learned there; leave them out before anything else is decided.""", quotes=tables),
        SOME_SPECIALS(RIGHT.but(FOUND, "special = ids == s"), MLM, quotes=specials_chosen),
        SOME_SPECIALS(RIGHT.but("for s in specials:", "for s in specials[:1]:"), MLM, quotes=specials_chosen,
                      name="pads alone left out"),
        mistake("ids 0 to 2 written in", RIGHT.but("for s in specials:", "for s in (0, 1, 2):"), MLM,
            "The ids 0, 1 and 2 were left out whatever `specials` holds. It is the last argument, and may hold any "
            "ids."),
        mistake("specials covered, but not asked",
                RIGHT.without(REAL).but(LABELED, "labels = torch.where(chosen & ~special, ids, -100)"), MLM,
            "Specials have no label, but the mask or another word replaced them. Leave them out of both.",
            quotes=tables),
        mistake("the loss on everything", RIGHT.but(LABELED, "labels = ids.clone()"), EIGHTY,
            """Every token has a label, so most of the loss is about words that the model can see: copying them is
            enough. Only the chosen ones have labels; everywhere else the label is -100.""", quotes=tables),
        mistake("the loss on all words", RIGHT.but(LABELED, "labels = torch.where(special, -100, ids)"), EIGHTY,
            """Every word has a label, so most of the loss is about words that the model can see: copying them is
            enough. Only the chosen ones have labels; everywhere else the label is -100."""),
        mistake("the loss on covered words alone", RIGHT.but(LABELED, "labels = ids").but(RETURN, """
                  labels = torch.where(chosen & (inputs != ids), ids, -100)
                  return inputs, labels"""), EIGHTY,
            """Only words that changed have a label. A chosen word that stays as it is has a label too: the model must
            not be able to assume that a word it sees is right.""", shows=only_changed),
        mistake("labels taken afterwards", RIGHT.but(LABELED, "labels = ids").but(RETURN, """
                  labels = torch.where(chosen, inputs, -100)
                  return inputs, labels"""), EIGHTY,
            """The labels hold what is there *now*: where the mask is, the label is the mask. The label is the
            word that was masked.""",
            quotes=tables),
        mistake("the other way round", RIGHT.but("torch.where(chosen, ids, -100)", "torch.where(chosen, -100, ids)"),
                EIGHTY,
            "The labels are where nothing was chosen. The chosen words have labels, and the others have -100.",
            quotes=tables),
        mistake("pad instead of -100", RIGHT.but("-100", "0"), EIGHTY,
            "Where there is no label you put 0, which is an id. -100 is what torch's cross-entropy passes over.",
            quotes=tables),
        mistake("-1 instead of -100", RIGHT.but("-100", "-1"), EIGHTY,
            "Where there is no label you put -1. torch's cross-entropy passes over -100, and stops at -1.",
            quotes=tables),
        mistake("the mask as a label", RIGHT.but("-100", "mask_id"), EIGHTY,
            "Where there is no label you put the mask's id. -100 is what torch's cross-entropy passes over.",
            quotes=tables),
        mistake("always the mask", RIGHT.but("fate < 0.8", "fate < 2").without(SWAP), EIGHTY,
            """All chosen words became the mask. Later texts hold none, and then the model has never learned to look at
            a word that it sees: 80 % become the mask, 10 % another word, 10 % stay."""),
        mistake("none stays", RIGHT.but("fate >= 0.9", "fate >= 0.8"), EIGHTY,
            "None of the chosen words stays: 20 % became another one. 10 % become another word, and 10 % "
            "stay as they are."),
        mistake("none becomes another", RIGHT.without(SWAP), EIGHTY,
            """No chosen word became another one, or hardly any: nearly 20 % stay. Both tenths count all chosen words:
            10 % become another word, drawn from the vocabulary, and 10 % stay."""),
        mistake("80 and 10 exchanged", RIGHT.but("fate < 0.8", "fate < 0.1").but("fate >= 0.9", "fate >= 0.2"), EIGHTY,
            "80 % of the chosen words became another word, and 10 % the mask. It is the other way round."),
        mistake("80 stay", RIGHT.but("fate < 0.8", "fate < 0.1"), EIGHTY,
            "80 % of the chosen words stay as they are. 80 % become the mask."),
        mistake("80 % of all words", RIGHT.but("chosen & (fate < 0.8)", "~special & (fate < 0.8)"), EIGHTY,
            "80 % of *all* words became the mask, whether they were chosen or not. Choose first, and then divide the "
            "chosen ones."),
        mistake("other words everywhere", RIGHT.but("chosen & (fate >= 0.9)", "~special & (fate >= 0.9)"), EIGHTY,
            """Words that were not chosen were replaced by random ids too: about one in ten of those that have no label.
            Only chosen words change.""", shows=others_everywhere),
        ONE_DRAW(RIGHT.without(FATE).but(DRAWN, "fate = torch.rand(ids.shape, generator=g)\n    chosen = fate < p"),
                 EIGHTY),
        ONE_DRAW(RIGHT.without(FATE).but(DRAWN, "fate = torch.rand(ids.shape, generator=g)\n    chosen = fate < p").but(
                     "fate >= 0.9", "(fate >= 0.8) & (fate < 0.9)"), EIGHTY, name="one draw for both, in this order"),
        mistake("one draw for each sentence",
                RIGHT.but(DRAWN, "chosen = torch.rand(len(ids), 1, generator=g).expand(ids.shape) < p"), MLM,
            """One draw decided for a whole sentence: all its words are hidden or none, and where all are hidden there
            is nothing to guess from. Each word has a draw of its own."""),
        mistake("one draw for each position",
                RIGHT.but(DRAWN, "chosen = torch.rand(ids.shape[1], generator=g).expand(ids.shape) < p"), MLM,
            """The same positions were chosen in all sentences: one draw for each position, and none of a sentence's
            own. Draw a table as large as ids."""),
        mistake("the first sentence alone",
                RIGHT.but(REAL, "chosen = chosen & ~special & (torch.arange(len(ids)) == 0)[:, None]"), MLM,
            "Only the first sentence has labels. The batch holds several: ids is (B, T).", quotes=None,
            shows=first_alone),
        mistake("one fate for each sentence",
                RIGHT.but(FATE, "fate = torch.rand(len(ids), 1, generator=g).expand(ids.shape)"), EIGHTY,
            "All chosen words of a sentence share one fate: mask, another word or nothing. Each of them has a draw of "
            "its own.", quotes=None),
        mistake("one other word for all",
                RIGHT.but(RANDOM, "other = torch.randint(V, (1,), generator=g).expand(ids.shape)"), EIGHTY,
            "All replaced words became one and the same. Draw a separate word for each position.", quotes=tables),
        mistake("one other word for each sentence",
                RIGHT.but(RANDOM, "other = torch.randint(V, (len(ids), 1), generator=g).expand(ids.shape)"), EIGHTY,
            "All replaced words of a sentence became one and the same. Draw a separate word for each position.",
            quotes=None),
        mistake("words of the batch alone",
                RIGHT.but(RANDOM, "other = ids[:, torch.randperm(ids.shape[1], generator=g)]"), EIGHTY,
            "The other words were taken from the sentence itself. They are drawn from all V ids.", quotes=None),
        mistake("the last half of the words never", RIGHT.but("torch.randint(V, ids", "torch.randint(V // 2, ids"),
                EIGHTY,
            """Part of the vocabulary never comes as another word. Draw from all V ids, 0 and V - 1 among them.""",
            quotes=None,
            shows=lambda evidence: evidence.got.get(WORDS, 0) > 0 and evidence.got[TWINS] < 0.3 and near(evidence,
                CHOSEN, COVERED, STAYED)),
        mistake("two draws for one fate", RIGHT.but(
                  "chosen & (fate >= 0.9), other", "chosen & (torch.rand(ids.shape, generator=g) < 0.1), other"),
                  EIGHTY,
            """Of the masked words one in ten was exchanged afterwards, and about 18 % stay. This happens if a
            second, independent draw decides whether a random id replaces the word. One draw decides between all three,
            so that 80, 10 and 10 % add up.""", shows=staying(0.15, 0.19)),
        mistake("two intervals of one fate", RIGHT.but("fate >= 0.9", "fate < 0.1"), EIGHTY,
            """About 10 % first became the mask and were exchanged afterwards, and 20 % stay: the interval of the random
            ids, such as 0 to .1, lies inside the interval of the mask, 0 to .8. The three intervals must not
            overlap.""", shows=staying(0.19, 0.24)),
        mistake("only covered words are asked", RIGHT.but(RETURN, """
                  labels = torch.where(inputs == mask_id, ids, -100)
                  return inputs, labels"""), EIGHTY,
            """Only words that became the mask have a label. Tokens that were exchanged, and those that stayed, have
            labels too: the model must not know that what it sees is right.""", shows=only_covered),
        mistake("ids from 1 to V",
                RIGHT.but("torch.randint(V, ids.shape, generator=g)",
                          "torch.randint(1, V + 1, ids.shape, generator=g)"), EIGHTY,
            "Some of the other words have the id V, which the vocabulary does not have: ids run from 0 to V - 1.",
            quotes=tables),
        mistake("exactly so many", RIGHT.but(DRAWN, """
                  wanted = int(p * ids.shape[1])
                  chosen = torch.rand(ids.shape, generator=g).argsort(dim=1).argsort(dim=1) < wanted"""), MLM,
            """A fixed number was chosen in each sentence, cut to a whole number: in a short sentence no word is ever
            chosen. Each word is chosen independently, with probability p."""),
        mistake("1 - p", RIGHT.but("generator=g) < p", "generator=g) > p"), MLM,
            "The fraction of chosen words is 1 - p. A number drawn from 0 to 1 is *below* p with probability p."),
        mistake("15 % written in", RIGHT.but("generator=g) < p", "generator=g) < 0.15"), MLM,
            "15 % of the words were chosen whatever p is. It is the second argument."),
        mistake("p squared",
                RIGHT.but(DRAWN, "chosen = (torch.rand(ids.shape, generator=g) < p) & (torch.rand(ids.shape, "
                                 "generator=g) < p)"), MLM,
            "p was applied twice, so only p times p of the words were chosen."),
        mistake("another mask", RIGHT.but("mask_id, ids)", "V - 1, ids)"), EIGHTY,
            """There is a different id where the mask should be, such as the last of the vocabulary or one of the
            specials. The mask's id is the fourth argument.""",
            quotes=tables, shows=another_id),
        mistake("the mask never chosen", RIGHT.but(REAL, "chosen = chosen & ~special & (ids != mask_id)"), MLM,
            """Words whose id is that of the mask were never chosen. Only the specials are left out, and the mask need
            not be one of them."""),
        mistake("labels at the specials", RIGHT.but(LABELED, "labels = torch.where(chosen | special, ids, -100)"),
                EIGHTY,
            """The specials have labels, though they were not chosen and not changed. Only chosen words have a label;
            everywhere else the label is -100.""", quotes=tables),
        families.G_NOT_USED(RIGHT.but(
                  "chosen = torch.rand(ids.shape, generator=g)", "chosen = torch.rand(ids.shape)").but(
                  "fate = torch.rand(ids.shape, generator=g)",
                  "fate = torch.rand(ids.shape)").but("torch.randint(V, ids.shape, generator=g)",
                  "torch.randint(V, ids.shape)"),
            MLM),
        mistake("labels first", RIGHT.but(RETURN, "return labels, inputs"), MLM,
            "Inputs and labels came back in the other order. First the input of the model, then the labels."),
        mistake("inputs alone", RIGHT.but(RETURN, "return inputs"), MLM,
            "Only one table came back. There should be two: what the model reads, and the labels."),
        mistake("a table of chosen places", RIGHT.but(RETURN, "return inputs, chosen"), MLM,
            "The second result marks *where* words were chosen. Return the labels: the original word there, and -100 "
            "elsewhere."),
        mistake("ids as fractions", RIGHT.but(RETURN, "return inputs.float(), labels.float()"), MLM,
            "Fractions came back. Ids and labels are whole numbers, of the dtype of ids; no table of words can be "
            "read with a fraction."),
        in_place("ids", RIGHT.but(COVER, "inputs = ids\n    inputs[chosen & (fate < 0.8)] = mask_id"), MLM,
                 "inputs = ids is another name for the same tensor, so masking its words masks the caller's, and "
                 "the labels that share it."),
        mistake("ids changed in place, and labels taken from them", RIGHT.without(LABELED).but(
                  COVER, "inputs = ids\n    inputs[chosen & (fate < 0.8)] = mask_id").but(
                  SWAP, "inputs[chosen & (fate >= 0.9)] = other[chosen & (fate >= 0.9)]").but(RETURN, """
                  labels = torch.where(chosen, ids, -100)
                  return inputs, labels"""), MLM,
            """The caller's ids were changed, and the labels were read from them afterwards, so they hold the mask.
            inputs = ids is another name for the same tensor, not a copy: what is written into one is written into the
            other.""", quotes=tables),
        mistake("other shares", RIGHT.but("fate < 0.8", "fate < 0.9").but("fate >= 0.9", "fate >= 0.95"), EIGHTY,
            """Of the chosen words 80 % become the mask, 10 % another word, and 10 % stay.""",
            quotes=shares_and_reason,
            shows=lambda evidence: near(evidence, CHOSEN) and not near(evidence, COVERED, STAYED, OTHER)),
        mistake("another share than p", RIGHT.but("generator=g) < p", "generator=g) < p ** 0.5"), MLM,
            """The fraction of chosen words is not p. Each word is chosen independently, with probability p. (Or words
            that are not special were treated as special.)""",
            shows=lambda evidence: CHOSEN in evidence.got and not near(evidence, CHOSEN) and not evidence.got[SPECIAL]),
        mistake("another dtype", RIGHT.but(RETURN, "return inputs.int(), labels.int()"), MLM,
            """Both tables have the dtype of ids, long: an embedding and a loss need that.""",
            shows=lambda evidence: " of dtype " in evidence.got[FORM]),
    ),
    correct=(
        correct("three tables", RIGHT),
        correct("word by word", """
            def mlm_mask(ids, p, g, mask_id, V, specials):
                def u():
                    return torch.rand(1, generator=g).item()
                inputs, labels = ids.tolist(), [[-100] * len(row) for row in ids]
                for b, row in enumerate(ids.tolist()):
                    for t, word in enumerate(row):
                        if word in specials or u() >= p:
                            continue
                        labels[b][t] = word
                        fate = u()
                        if fate < 0.8:
                            inputs[b][t] = mask_id
                        elif fate < 0.9:
                            inputs[b][t] = int(torch.randint(0, V, (), generator=g))
                return torch.tensor(inputs), torch.tensor(labels)
        """),
        correct("a classifier of fates", """
            def mlm_mask(ids, p, g, mask_id, V, specials):
                words = ~torch.isin(ids, torch.tensor(specials, dtype=torch.long))
                chosen = torch.bernoulli(torch.full(ids.shape, float(p)), generator=g).bool() & words
                where = chosen.nonzero()
                kinds = torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), max(len(where), 1), replacement=True,
                    generator=g)[:len(where)]
                x, y = ids.clone(), torch.full_like(ids, -100)
                y[chosen] = ids[chosen]
                covered = where[kinds == 0]
                x[covered[:, 0], covered[:, 1]] = mask_id
                swapped = where[kinds == 1]
                x[swapped[:, 0], swapped[:, 1]] = torch.randint(V, (len(swapped),), generator=g)
                return x, y
        """),
        correct("half of what is left, as libraries do", """
            def mlm_mask(ids, p, g, mask_id, V, specials):
                labels = ids.clone()
                chances = torch.full(labels.shape, p)
                for s in specials:
                    chances.masked_fill_(ids == s, 0.0)
                masked = torch.bernoulli(chances, generator=g).bool()
                labels[~masked] = -100
                out = ids.clone()
                replaced = torch.bernoulli(torch.full(labels.shape, 0.8), generator=g).bool() & masked
                out[replaced] = mask_id
                random = torch.bernoulli(torch.full(labels.shape, 0.5), generator=g).bool() & masked & ~replaced
                words = torch.randint(V, labels.shape, dtype=torch.long, generator=g)
                out[random] = words[random]
                return out, labels
        """),
        correct("one number for both questions, stretched", """
            def mlm_mask(ids, p, g, mask_id, V, specials):
                u = torch.rand(ids.shape, generator=g, dtype=torch.float64)
                usual = torch.ones_like(ids, dtype=torch.bool)
                for s in specials:
                    usual &= ids.ne(s)
                ordinary = [v for v in range(V) if v not in specials]
                other = torch.tensor(ordinary)[torch.randint(len(ordinary), ids.shape, generator=g)]
                x = torch.where(usual & (u < 0.8 * p), torch.full_like(ids, mask_id), ids)
                x = torch.where(usual & (u >= 0.8 * p) & (u < 0.9 * p), other, x)
                return [x, torch.where(usual & (u < p), ids, torch.full_like(ids, -100))]
        """),
        correct("a NamedTuple", """
            from typing import NamedTuple

            class Batch(NamedTuple):
                inputs: torch.Tensor
                labels: torch.Tensor

            def mlm_mask(ids, p, g, mask_id, V, specials):
                chosen = (torch.rand(*ids.size(), generator=g) < p)
                chosen &= torch.stack([ids != s for s in specials] + [torch.ones_like(ids).bool()]).all(0)
                dice = torch.randint(10, ids.shape, generator=g)
                noise = torch.randint(high=V, size=ids.shape, generator=g)
                seen = ids.masked_fill(chosen & (dice < 8), mask_id)
                seen = torch.where(chosen & (dice == 8), noise, seen)
                return Batch(seen, ids.masked_fill(~chosen, -100))
        """),
    ),
    hints=(
        "three questions, one after the other: may this word be chosen at all, is it chosen, and what replaces it?",
        "everything is (B, T): a table of True and False for the ordinary words, a second one for the chosen words, a "
        "table of random numbers from 0 to 1, and a table of random ids.",
        "chosen: ordinary, and a draw below p. labels: the id where chosen, else -100. A second draw: below .8 the "
        "mask, from .8 to .9 "
        "any id, drawn from 0 to V - 1, else the word itself.",
    ),
)  # fmt: skip

