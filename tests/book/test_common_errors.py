"""Each row of a page's "Common errors" is a mistake that a check identifies by name, or says why no check can see it.

The known answers of the catalogue show, in real gradings too, that a mistake named here fails with its own message.
"""

import re

import pytest

from autograder import catalogue
from tests.book.conftest import ROOT

RUN, TORCH, TRAIN = "in the notebook itself, not in an answer", "an error of torch or Python", "seen in a training run"
USE = "seen when a model is used, not in one answer"
UNNAMED = "wrong values in the check, without a name"

# Beginning of what the row says has happened, or of what you see -> exercise: mistake, or one of the reasons above.
IDENTIFIED = {
    "00": {
        "two shapes that do not fit": TORCH, "the inner sizes of a product differ": TORCH,
        "the row sums are flat": "00.2: row sums that lie flat",
        "`view` or `reshape` was used": "00.3: view or reshape",
        "`view` after `transpose`": "00.3: view after turning",
        "a mask must become numbers": "00.4: argmax of truth values",
        "the input was changed in place": "00.2: in place", "`squeeze()`": "00.2: the batch axis squeezed away",
        "its cell has not run": RUN, "the function's cell was not run": RUN, "a file next to the notebook": RUN,
    },
    "01": {
        "everything passes through one vector": TRAIN, "`H[:, -1]` returned a pad": "01.1: the last column",
        "the length was used as an index": "01.1: length used as index",
        "the root of the sum of all squares": "01.2: Frobenius norm",
        "every *entry* was raised": "01.2: elementwise power", "the gradient exploded": TRAIN,
        "it was rounded down": "01.3: rounded down", "attention stores $n^2$ weights": USE,
        "$s$ was added after the tanh": "01.5: tanh too late", "the mask was forgotten": "01.5: pads get weight",
        "the sentence has no word": "01.5: NaN where nothing may be attended",
    },
    "02": {
        "ids depend on the order of a set": "02.1: the order of a set",
        "the numbering started again": "02.1: words numbered from 0", "no `<unk>`": "02.2: unknown word crashes",
        "decoding did not stop": "02.2: decoding goes on after <eos>", "pads on the left": "02.3: pads on the left",
        "ids became floats": "02.3: float", "table not scaled": "02.4: scale forgotten",
        "`.data`, `.detach()` or numpy": "02.4: cut off from the gradient",
        "pairs were counted across words": "02.5: merges across words",
        "merges were applied from the left": "02.6: order of the word",
    },
    "03": {
        "the products were not added": "03.1: products not added", "`.sum()` without an axis": "03.1: all axes summed",
        "the sum ran over axis 0": "03.1: first axis summed", "one norm was computed": "03.2: norm of the whole table",
        "a zero vector": "03.2: zero divided by zero", "these are cosines": "03.4: divided by the two lengths",
        "`reshape` was used instead of `.T`": "03.4: K reshaped instead of transposed",
        "no division by $\\sqrt d$": "03.4: not scaled", "they were divided by $d$": "03.4: divided by d",
        "they were divided by something": "03.4: divided by the root of the number of keys",
        "the dot product was used": "03.5: dot product instead of cosine",
    },
    "04": {
        "the maximum was not subtracted": "04.2: no maximum subtracted",
        "one maximum for the whole": "04.2: one maximum for the whole tensor",
        "wrong `dim`": "04.2: always along the last axis", "a sum without `dim`": "04.2: one sum for the whole tensor",
        "`keepdim=True` forgotten": "04.2: an axis lost", "no exponential": "04.2: no exponential",
        "logarithms of the prob": "04.2: the logarithm of the shares",
        "logarithm taken after": "04.3: logarithm of the softmax", "multiplied by $\\tau$": "04.4: multiplied by tau",
        "softmax applied twice": "04.2: applied twice", "saturated": TRAIN,
    },
    "05": {
        "softmax over queries": "05.2: softmax over the queries", "no division by $\\sqrt{d_k}$": "05.2: no scaling",
        "divided by $d_k$": "05.2: divided by d_k",
        "divided by $\\sqrt T$": "05.2: divided by the root of the number of keys",
        "`reshape` where": "05.2: K reshaped instead of transposed",
        "`.T` reverses *all* axes": "05.2: all axes of K turned",
        "exp before subtracting": "05.2: exponential without care",
        "weights divided by $T$": "05.1: parts averaged",
        "one matrix used for both": "05.5: one projection for queries and keys",
        "projections not registered": "05.5: plain tensors instead of parameters",
    },
    "06": {
        "`view` without `transpose`": "06.1: view alone", "merged with only a reshape": "06.2: reshape alone",
        "`view` after `transpose`": "06.2: view after the exchange",
        "`if x_kv` instead": "06.3: x_kv asked for its truth",
        "keys or values computed": "06.3: keys and values from those who ask",
        "divided by $\\sqrt{D}$": "06.3: divided by the root of d_model",
        "softmax over axis 1": "06.3: softmax over the heads", "$0 \\cdot \\ln 0$": "06.5: 0 times log 0",
        "one head's weights": "06.3: one head's weights for all",
    },
    "07": {
        "all sines first": "07.1: sines first, cosines after", "positions counted from 1": "07.1: positions from 1",
        "sine and cosine exchanged": "07.1: sine and cosine exchanged",
        "exponent $2j/d$": "07.1: twice the column", "multiplied by $10000": "07.1: multiplied instead of divided",
        "the same number of cosines": "07.1: odd d stops", "the whole table was added": "07.2: the whole table",
        "offset forgotten": "07.2: offset ignored", "rows added along the batch": "07.2: indexed by the sentence",
        "wrong sign of the sine": "07.4: the other way round",
    },
    "08": {
        "a row where everything is hidden": "08.4: not a number",
        "a clean output, but": "08.4: only the output cleaned",
        "the mask was applied after": "08.4: mask after the softmax",
        "the scores were multiplied": "08.4: scores times the mask",
        "True and False are exchanged": "08.4: the wrong way round", "float16 ends": TORCH,
        "words attend to pads": "08.4: mask ignored",
        "the mask has no axis for the heads": "08.1: no axis for heads and queries",
        "the answer is in the input": TRAIN, "the mask holds integers": "08.1: whole numbers",
    },
    "09": {
        "divided by $D - 1$": "09.1: divided by D - 1", "no epsilon": "09.1: no eps",
        "mean over the words": "09.1: over the words", "no ReLU, or one only": "09.2: no ReLU",
        "the residual starts": "09.3: residual from the normed x",
        "dropout is still on": "09.3: dropout that never sleeps",
        "the two masks are exchanged": "09.4: masks exchanged",
        "queries from the memory": "09.4: queries from the memory",
        "`[layer] * 6`": "09.5: one encoder layer again and again", "a plain list": "09.5: layers in a plain list",
        "a softmax inside the model": "09.5: softmax at the end",
    },
    "10": {
        "the input is the answer": "10.1: not shifted", "`<bos>` was put in front": "10.1: nothing dropped",
        "the shift was made in place": "10.1: labels changed in place",
        "the sum was divided by": "10.2: divided by all places",
        "`<eos>` left out": "10.2: <eos> left out", "1 for the label": "10.3: the label has its share on top",
        "this is its floor": TRAIN, "a softmax before": "10.2: softmax before the loss",
        "steps counted from 0": "10.4: counted from 0",
        "the limit counts": "10.5: real tokens counted, not padded ones",
        "the optimizer does not have": "10.6: gradients forgotten after backward",
        "the loss is kept with": "10.6: a tensor",
    },
    "11": {
        "you read the scores of the first": "11.1: the first position asked",
        "dropout is on": "11.1: dropout left on", "the loop stopped": "11.1: stops when any row ends",
        "the rows were not ended": "11.1: finished rows go on", "the tokens were sorted": "11.2: not put back in order",
        "the token that crosses p": "11.2: the token that crosses p left out",
        "the search began with k": "11.3: k copies of bos",
        "the score does not account": "11.3: no division by the length",
        "a finished hypothesis": "11.3: finished hypotheses extended", "position 0 at every": "11.4: position always 0",
        "a mask without its offset": "11.4: the mask not shifted",
        "no group of four": "11.5: a mean over sentences", "a scale of 0 to 1": "11.5: from 0 to 1",
    },
    "12": {
        "test lines are in": "12.1: overlap of whole pairs", "the round trip": "12.2: spaces lost",
        "the model attends to pads": "12.3: good alone, bad in a batch", "a different signature": USE,
        "states of two training runs": "12.4: counters averaged", "no control": "12.5: no control",
        "no seed, no card": USE,
    },
    "13": {
        "no causal mask": "13.2: no causal mask", "$y = x$: it learned": "13.1: y is x",
        "windows that run past": "13.1: one window too many", "attention contributes": "13.2: no residual",
        "the head is not tied": "13.3: the head not tied",
        "the context is not cropped": "13.4: the context not cropped",
        "you always take": "13.4: tau not used", "0 should mean": "13.4: tau = 0 divides",
        "the prompt is lost": "13.4: the prompt lost", "the cache was used": USE,
        "the final norm is in it": "13.5: the last entry normed",
        "one tensor, changed": "13.5: one tensor under many names", "a matrix was not transposed": "15.4: not turned",
    },
    "14": {
        "reshaped without moving": "14.1: view alone", "rows and columns exchanged": "14.1: patches column by column",
        "a different order inside": "14.1: channels last", "the class token was not": "14.2: class token not expanded",
        "positions only for": "14.2: no position for the class token", "a causal mask": "14.2: causal mask left on",
        "tokens and batch exchanged": UNNAMED, "`x @ W.T` with": "14.3: kernels on the last axis",
        "softmax over the queries": "14.3: softmax over the queries", "no residual": "14.3: no residual",
        "`roll` wraps": "14.4: round the border", "a flipped kernel": "14.4: kernel flipped",
    },
    "15": {
        "it counts words": "15.1: the loss on everything", "labels were taken": "15.1: labels taken afterwards",
        "every chosen word": "15.1: always the mask", "$p$ was drawn once": "15.1: one draw for each sentence",
        "padding was pooled": "15.2: pads averaged", "the padding was set to 0": "15.2: pads as zeros in the max",
        "the model read something": TRAIN, "an old gradient": "15.3: old gradients kept",
        "names were compared": "15.3: the beginning of a name is enough",
        "a weight was not transposed": "15.4: not turned", "the file is float16": "15.4: through float16",
        "its first token was masked": USE,
    },
    "16": {
        "one table was counted": "16.1: one head", "each head was counted": "16.1: times h",
        "the feature map is missing": "16.2: phi missing", "the output was not divided": "16.2: no normalizer",
        "the brackets are on": "16.2: wrong bracket", "the state was read": "16.2: cumulative sum off by one",
        "the old sum, or": "16.3: old sum not rescaled", "the same": "16.3: neither rescaled",
        "$-\\infty - (": "16.3: minus infinity in a first block NaN",
        "`repeat` was used": "16.4: repeat instead of repeat_interleave", "heads were counted": USE,
        "the text is short": USE,
    },
}  # fmt: skip
REASONS = {RUN, TORCH, TRAIN, USE, UNNAMED}


def rows(number: str) -> list[list[str]]:
    """The rows of a chapter's table: symptom, cause, section to reread."""
    (path,) = (ROOT / "book").glob(f"{number}_*.md")
    table = re.search(r"\n## Common errors\n(.*?)(?=\n## |\n\(sec-)", path.read_text(encoding="utf-8"), re.S)[1]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.split("\n") if line[:1] == "|"]
    return cells[2:]


@pytest.mark.parametrize("number", IDENTIFIED)
def test_each_common_error_is_identified_by_a_check(number):
    known = IDENTIFIED[number]
    every = [catalogue.find(each) for assignment in catalogue.ASSIGNMENTS for each in assignment.exercise_ids]
    entries = {entry.number: entry for entry in every}
    happened = [row[1] for row in rows(number)]
    assert len(happened) >= 7
    matches = {said: [cause for cause in known if said.startswith(cause)] for said in happened}
    assert {said: found for said, found in matches.items() if len(found) != 1} == {}
    assert [cause for cause in known if not any(said.startswith(cause) for said in happened)] == []
    for found in known.values():
        if found not in REASONS:
            exercise, _, name = found.partition(": ")
            assert name in [mistake.name for mistake in entries[exercise].mistakes], found


def test_most_common_errors_are_identified():
    causes = [found for known in IDENTIFIED.values() for found in known.values()]
    assert sum(found not in REASONS for found in causes) > 0.85 * len(causes)


def test_every_chapter_is_here():
    assert [path.name[:2] for path in sorted((ROOT / "book").glob("[01][0-9]_*.md"))] == list(IDENTIFIED)
