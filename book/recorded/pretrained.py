"""Record what pretraining brings a judge of reviews: pretrained.json and review_judge.json, for chapter 15.

    python -m book.recorded.pretrained

A small encoder guesses hidden words: of the built-in English, or of reviews without a label. Then it, and one that has
learned nothing, become judges of reviews from few labels, with all weights or with the head alone. Three seeds each;
judged on words that had a label in training and on words that never had one. Five minutes of one core.
"""

import copy
import json
import platform
import re
import time
from typing import Any

import torch
from torch import Tensor

from transformer_ref.beyond.masked_language import (
    MASK,
    MaskedLanguageModel,
    ReviewJudge,
    WordList,
    fine_tune,
    guesses,
    pack,
    pretrain,
    right,
    small_config,
)
from transformer_ref.beyond.pretrained import How, freeze_except
from transformer_ref.beyond.reviews import BLAME, PRAISE, SEEN, UNSEEN, Review, write_reviews
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.recording import FOLDER

SEEDS = (1, 2, 3)
TEXTS, STEPS, RATE = 6_000, 1_500, 6e-3
LABELS = (8, 32, 128)
TUNING = {"head": dict(steps=150, rate=3e-2), "all": dict(steps=150, rate=1e-3)}
JUDGED = 1_000
SHOWN = (
    "the soup was <mask> and the staff was friendly .",
    "the soup was <mask> and the staff was rude .",
    "the <mask> was pleasant and the light was shabby .",
    "i closed the <mask> .",
    "she visited the bank near the <mask> .",
)
RECORD, JUDGE = FOLDER / "pretrained.json", FOLDER / "review_judge.json"


def batch(words: WordList, reviews: list[Review]) -> tuple[Tensor, Tensor]:
    """Return ids (count, length) and labels (count,)."""
    return words.batch([review.text for review in reviews]), torch.tensor([review.label for review in reviews])


@torch.no_grad()
def knows_sides(model: MaskedLanguageModel, words: WordList, reviews: list[Review]) -> float:
    """Return how often a masked word of praise or blame is predicted to be of the review's side."""
    sides = [torch.tensor([words.ids[word] for word in side]) for side in (BLAME, PRAISE)]
    judging, hits = set(BLAME) | set(PRAISE), 0
    for review in reviews:
        ids = words.batch([review.text])
        place = next(i for i, id in enumerate(ids[0].tolist()) if words.tokens[id] in judging)
        ids[0, place] = MASK
        shares = model(ids)[0, place].softmax(-1)  # (vocabulary,)
        blame, praise = (shares[side].sum() for side in sides)
        hits += int(praise > blame) == review.label
    return hits / len(reviews)


def judged(
    body: MaskedLanguageModel, how: How, way: str, labeled: tuple[Tensor, Tensor], tests: dict, seed: int
) -> tuple[ReviewJudge, dict[str, float]]:
    """Return a judge with that encoder and its accuracies."""
    judge = ReviewJudge(copy.deepcopy(body), how)
    if way == "head":
        freeze_except(judge, ["head"])
    fine_tune(judge, *labeled, g=torch.Generator().manual_seed(seed), **TUNING[way])
    return judge, {name: round(right(judge, *test), 3) for name, test in tests.items()}


def _without_results(vocabulary: int) -> dict[str, Any]:
    """What was run, with empty places for what came out."""
    return {
        "command": "python -m book.recorded.pretrained",
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "seeds": SEEDS,
        "texts": TEXTS,
        "steps": STEPS,
        "labels": LABELS,
        "judged": JUDGED,
        "vocabulary": vocabulary,
        "runs": [],
        "pooling": [],
        "losses": {},
        "sides": {},
        "guesses": {},
    }


def main() -> None:
    """Train, evaluate, and write both records."""
    torch.set_num_threads(1)
    began = time.process_time()
    texts = {
        "built-in": [pair.english for pair in build_corpus(TEXTS, 0, 0, 0).train],
        "reviews": [review.text for review in write_reviews(TEXTS, seed=1)],
    }
    words = WordList([*texts["built-in"], *texts["reviews"]])
    tests = {
        "labeled words": batch(words, write_reviews(JUDGED, seed=2, words=SEEN)),
        "other words": batch(words, write_reviews(JUDGED, seed=3, words=UNSEEN)),
    }
    record = _without_results(len(words.tokens))
    for seed in SEEDS:
        for kind in ("new", "built-in", "reviews"):
            g = torch.Generator().manual_seed(seed)
            body = MaskedLanguageModel(small_config(len(words.tokens)), g)
            record["weights"] = sum(parameter.numel() for parameter in body.parameters())
            if kind != "new":
                rows = [torch.tensor(words.encode(text)) for text in texts[kind]]
                losses = pretrain(body, rows, STEPS, g, rate=RATE)
                record["losses"].setdefault(kind, []).append(
                    [round(sum(losses[i : i + 50]) / 50, 3) for i in range(0, STEPS, 50)]
                )
            record["sides"].setdefault(kind, []).append(knows_sides(body, words, write_reviews(300, seed=4)))
            for count in LABELS:
                labeled = batch(words, write_reviews(count, seed=10 * seed, words=SEEN))
                for way in TUNING:
                    judge, scores = judged(body, "mean", way, labeled, tests, seed)
                    record["runs"].append({"seed": seed, "from": kind, "labels": count, "learns": way, **scores})
                    print(f"{time.process_time() - began:.0f} s", record["runs"][-1], flush=True)
                    if (seed, kind, count, way) == (SEEDS[0], "reviews", 32, "all"):
                        packed = pack(judge, words, texts["reviews"])
                        JUDGE.write_text(json.dumps(packed).replace("]], ", "]],\n") + "\n", encoding="utf-8")
            if kind == "reviews":
                labeled = batch(words, write_reviews(32, seed=10 * seed, words=SEEN))
                for how in ("mean", "cls", "max"):
                    for way in TUNING:
                        scores = judged(body, how, way, labeled, tests, seed)[1]
                        record["pooling"].append({"seed": seed, "how": how, "learns": way, **scores})
            if seed == SEEDS[0] and kind != "new":
                record["guesses"][kind] = {
                    text: [[word, round(share, 3)] for word, share in guesses(body, words, text)] for text in SHOWN
                }
    record["minutes"] = round((time.process_time() - began) / 60, 1)
    RECORD.write_text(re.sub(r"(\}, |\], (?=\[\d))", r"\1\n", json.dumps(record)) + "\n", encoding="utf-8")
    print({kind: shares for kind, shares in record["sides"].items()}, record["guesses"], record["minutes"])


if __name__ == "__main__":
    main()
