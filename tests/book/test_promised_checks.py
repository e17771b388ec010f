"""A check does what a page or a notebook says that it does.

Add each such sentence to PROMISES, with what must be true of the cases; ANY_CHECK holds what is said of
every check. A sentence that is in neither fails, and so does an entry that nobody says any more.
"""

import functools
import json
import re
from pathlib import Path

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case

ROOT = Path(__file__).resolve().parents[2]
VERBS = re.compile(
    r"\bchecks? (?:for [\d.]+ |of [\d.]+ |will |does not |never |cells? )*"
    r"(?:send|hand|call|ask|use|has|have|draw|make|count|cop(?:y|ies)|look|"
    r"allow|show|name|say|try|trie|compare|give|feed|"
    r"contain)"
    r"|\bcheck's\b|\bin the checks\b|\bof the hidden ones\b"
)


def shapes(case: Case) -> list[tuple[int, ...]]:
    return [tuple(value.shape) for value in case.arguments if isinstance(value, torch.Tensor)]


def numbers(case: Case) -> torch.Tensor:
    return torch.cat([v.flatten().double() for v in case.arguments if isinstance(v, torch.Tensor)])


def different_letters_differ(case: Case) -> bool:
    (left, right) = shapes(case)
    return len({*left, *right}) == 4  # batch, rows, common, columns


def any_of(*questions):
    """Whether each condition is true in at least one case."""
    return lambda cases: all(any(asks(case) for case in cases) for asks in questions)


def first(asks):
    return lambda cases: asks(cases[0])


def place(case: Case) -> bool:
    """Each number encodes its position: 123 is sentence 1, word 2, feature 3."""
    (x,) = case.arguments
    return x.tolist() == [[[100 * b + 10 * t + d for d in range(4)] for t in range(3)] for b in range(2)]


def has_generator(case: Case) -> bool:
    return any(isinstance(value, torch.Generator) for value in case.arguments)


def asked_again(case: Case) -> bool:
    return any(isinstance(value, dict) and value.get("steps", 1) > 1 for value in case.arguments)


def all_weights_given(cases: list[Case]) -> bool:
    return all(case.weights and case.construct for case in cases)


PROMISES = {  # part of the sentence -> exercise, and what must be true of its cases
    "Different letters may be different, and the checks make sure": ("batch-matmul", any_of(different_letters_differ)),
    "The check's first pair is the one above": (
        "batch-matmul",
        first(lambda case: case.arguments[0].tolist() == [[[1, 2], [3, 4]], [[1, 0], [0, 2]]]),
    ),
    "The visible check has 2 rows of 3": ("row-normalize", first(lambda case: shapes(case) == [(2, 3)])),
    "One of the hidden ones is square": ("row-normalize", any_of(lambda case: len({*shapes(case)[0]}) == 1)),
    "The check's numbers say where they were": ("swap-batch-time", first(place)),
    "The check uses numbers that say where they were": ("swap-batch-time", first(place)),
    "The checks will use a different vocabulary": ("encode-decode", any_of(lambda case: "I" not in case.arguments[1])),
    "in the checks 0 can be the id of a real word": (
        "pad-batch",
        any_of(lambda case: case.arguments[1] != 0 and any(0 in map(int, sentence) for sentence in case.arguments[0])),
    ),
    "single vectors, stacks, deeper stacks, and a stack against a single vector": (
        "dot",
        any_of(
            *(
                lambda case, axes=axes: [len(shape) for shape in shapes(case)] == axes
                for axes in ([1, 1], [2, 2], [3, 3], [2, 1])
            )
        ),
    ),
    "the check for 03.3 looks at it": (
        "score-std",
        any_of(has_generator),
    ),
    r"The check sends $\pm 1000$ in one tensor, a score of $-\infty$, and three axes": (
        "softmax",
        any_of(
            lambda case: numbers(case).min() < -900 and numbers(case).max() > 900,
            lambda case: bool(numbers(case).isneginf().any()),
            lambda case: len(shapes(case)[0]) == 3,
        ),
    ),
    "The check calls it with $T_q = 4$, $T_k = 6$, $d_k = 5$": (
        "attention-weights",
        any_of(lambda case: [shape[1:] for shape in shapes(case)] == [(4, 5), (6, 5)]),
    ),
    r"The check for 05.2 uses scores of $\pm 1000$": (
        "attention-weights",
        any_of(
            lambda case: (case.arguments[0] @ case.arguments[1].mT).max() > 900,
            lambda case: (case.arguments[0] @ case.arguments[1].mT).min() < -900,
        ),
    ),
    "The check looks for the three projections among your parameters, copies weights in and compares": (
        "self-attention",
        all_weights_given,
    ),
    "The check copies its own weights into yours": (
        "self-attention",
        all_weights_given,
    ),
    "Random numbers, so yours differ a little; the check allows for that": (
        "score-std",
        lambda cases: all(probe.rtol >= 0.01 for probe in catalogue.find("score-std").probes),
    ),
    "The check reports the first wrong line": (
        "predict-shapes",
        lambda cases: all(probe.hide_expected for probe in catalogue.find("predict-shapes").probes),
    ),
    "as the check of 00.3 does": ("swap-batch-time", first(place)),
    "The check calls your function a few times with a small model and an optimizer, and looks at the weights": (
        "train-step",
        lambda cases: (
            catalogue.find("train-step").harness == "training step" and any(asked_again(case) for case in cases)
        ),
    ),
    "The check calls your function with untrained models, whose output depends on every token": (
        "generate",
        any_of(lambda case: len(case.arguments[1]) == 5000 and case.arguments[4] > 0),
    ),
    "The check calls your function with a `SmallGPT` from the cell above, with any number of blocks": (
        "residual-trace",
        lambda cases: len({case.arguments[0]["layers"] for case in cases}) > 2,
    ),
    "(after 60 the check gives up)": (
        "overfit-one-batch",
        lambda cases: catalogue.find("overfit-one-batch").seconds == 60,
    ),
    "the check says which symptom it sees": (
        "overfit-one-batch",
        lambda cases: all(known.shows for known in catalogue.find("overfit-one-batch").mistakes),
    ),
    "The checks count thousands of windows": (
        "lm-batch",
        any_of(lambda case: case.arguments[3] == 4_000),
    ),
    "The check counts where 4,000 windows begin": (
        "lm-batch",
        any_of(lambda case: case.arguments[3] == 4_000),
    ),
    "The check counts 20,000 draws": (
        "sample",
        any_of(lambda case: shapes(case) and shapes(case)[0][0] == 20_000),
    ),
    "the check counts what your code makes": (
        "linear-attention",
        any_of(
            *(lambda case, so=so: case.arguments[0].shape[1] > 500 and case.arguments[3] is so for so in (True, False))
        ),
    ),
    "With 400 words the check counts the entries of all tensors that torch's operations read or create": (
        "linear-attention",
        any_of(
            *(lambda case, so=so: case.arguments[0].shape[1] == 400 and case.arguments[3] is so for so in (True, False))
        ),
    ),
    "With 24 blocks the check looks at the largest tensor that your code creates": (
        "online-softmax",
        any_of(lambda case: len(case.arguments[0]) == 24),
    ),
    "The check uses images that are taller than wide, and wider than tall": (
        "patchify",
        any_of(*(lambda case, way=way: way * (shapes(case)[0][-1] - shapes(case)[0][-2]) > 0 for way in (1, -1))),
    ),
    "The check counts what becomes of 20,000 tokens": (
        "mlm-mask",
        any_of(lambda case: case.arguments[0].numel() == 20_000),
    ),
    "the checks use the same classes": (
        "freeze-except",
        any_of(lambda case: case.arguments[0]["layers"] > 0),
    ),
    "The check looks at the flags, takes a step with an optimizer that was made before": (
        "freeze-except",
        lambda cases: (
            catalogue.find("freeze-except").harness == "freezing" and any(c.arguments[0]["stale"] for c in cases)
        ),
    ),
}
ANY_CHECK = (  # said of every check
    "what a check says",
    "What a check says",
    "The check looks at the function that the kernel knows",
    "The checks look at what comes back",
    "The check looks at what your code",
    "The check says what it sees in your numbers",
    "there the check does not ask for another",
    "All five functions keep the same contract, and the check tests it",
    "the check had passed in",
    "Your own check draws them on the spot and shows them",
    "The check copies its own parameters into your projections",
    "sizes of its own, with and without biases",
    "the check tries it on models",
)


@functools.cache
def prose() -> dict[str, str]:
    """The prose of pages and notebooks, without code and tables, each as one line."""
    said = {}
    for path in sorted((ROOT / "book").glob("*.md")):
        said[path.name] = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    for path in sorted((ROOT / "solutions").glob("*/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        said[path.name] = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return {name: " ".join(re.sub(r"^\|.*$", "", text, flags=re.M).split()) for name, text in said.items()}


@pytest.mark.parametrize("said", PROMISES)
def test_a_check_asks_what_a_page_promises(said):
    exercise_id, holds = PROMISES[said]
    assert any(said in text for text in prose().values()), "nobody says this any more"
    cases = [probe.draw(torch.Generator().manual_seed(1)) for probe in catalogue.find(exercise_id).probes]
    assert holds(cases)


def test_no_page_promises_what_is_not_held_against_the_checks():
    known = (*PROMISES, *ANY_CHECK)
    loose = []
    for name, text in prose().items():
        for sentence in re.split(r"(?<=[.!?:])\s", text):
            if VERBS.search(sentence) and not any(each.partition(":")[0] in sentence for each in known):
                loose.append(f"{name}: {sentence}")
    assert not loose


def test_a_promise_that_no_case_keeps_is_found():
    exercise_id, holds = PROMISES["One of the hidden ones is square"]
    cases = [probe.draw(torch.Generator().manual_seed(1)) for probe in catalogue.find(exercise_id).probes]
    assert not holds([case for case in cases if len(set(shapes(case)[0])) > 1])
