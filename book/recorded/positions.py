"""Record what three codes for positions are worth: positions.json, which chapter 07 shows.

    python -m book.recorded.positions

"lengths": encoders learn to say, at every place, the word one place before, or the word at the same place counted from
the end. The words are drawn at random, so only places can help. They train on 2 to 20 words and are asked up to 40.
"bites": translators of *the dog bites the man*, with sinusoids and without any positions. Each over three seeds.
Some seconds a model on one core. Interrupted, the same command goes on where it stopped.
"""

import itertools
import json
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from book.recorded.kept import Kept
from transformer_ref.config import ModelConfig
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.encoder import Encoder
from transformer_ref.model.positional_encoding import LearnedPositions, SinusoidalPositions
from transformer_ref.model.transformer import Transformer
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import BOS, EOS, SPECIAL_TOKENS

WORDS, LONGEST_TRAINED, LONGEST_ASKED = 20, 20, 40
STEPS, BATCH, RATE, SEEDS = 2_500, 32, 4e-3, (1, 2, 3)
ASKED = (2, 5, 10, 15, 18, 20, 21, 22, 24, 26, 28, 30, 35, 40)  # words
RECORD = FOLDER / "positions.json"

NOUNS = {
    "dog": "il cane", "man": "l' uomo", "cat": "il gatto", "boy": "il ragazzo",
    "girl": "la ragazza", "wolf": "il lupo", "hen": "la gallina", "horse": "il cavallo",
}  # fmt: skip
VERBS = {"bites": "morde", "sees": "vede", "follows": "segue", "hears": "sente"}
BITES_STEPS = 300


class NoPositions(nn.Module):
    """No positional encoding: the model is a bag of words."""

    def forward(self, x: Tensor, positions: object = 0) -> Tensor:
        """Return x, whatever the positions."""
        return x


Make = Callable[[int], nn.Module]  # from the width to a module that adds positions
CODES: dict[str, Make] = {
    "sinusoids": lambda width: SinusoidalPositions(LONGEST_ASKED, width),
    "learned": lambda width: LearnedPositions(LONGEST_ASKED, width),
    "none": lambda width: NoPositions(),
}


class Tagger(nn.Module):
    """An encoder that predicts one word at each position."""

    def __init__(self, code: str) -> None:
        super().__init__()
        config = ModelConfig(WORDS, WORDS, d_model=32, heads=2, encoder_layers=2, d_ff=64, dropout=0.0, norm_first=True)
        self.words, self.positions = Embedding(WORDS, config.d_model), CODES[code](config.d_model)
        self.encoder, self.output = Encoder(config), nn.Linear(config.d_model, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits for each word at each position: (batch, length) -> (batch, length, words)."""
        return self.output(self.encoder(self.positions(self.words(ids))).memory)


def one_before(ids: Tensor) -> Tensor:
    """Return the word one position before each; the first position has its own."""
    return torch.cat([ids[:, :1], ids[:, :-1]], dim=1)


def from_the_end(ids: Tensor) -> Tensor:
    """Return the sentence in reverse."""
    return ids.flip(1)


TASKS = {"the word before": one_before, "the sentence reversed": from_the_end}


def train_tagger(code: str, task: str, seed: int) -> Tagger:
    """Return a tagger after STEPS batches, each of one length."""
    torch.manual_seed(seed)
    model = Tagger(code)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    for _ in range(STEPS):
        length = int(torch.randint(2, LONGEST_TRAINED + 1, ()))
        ids = torch.randint(WORDS, (BATCH, length))  # (batch, length)
        loss = F.cross_entropy(model(ids).flatten(0, 1), TASKS[task](ids).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: Tagger, task: str, length: int) -> float:
    """Return the accuracy per position in 200 new sentences of this length."""
    ids = torch.randint(WORDS, (200, length), generator=torch.Generator().manual_seed(1_000 + length))
    return round((model(ids).argmax(dim=-1) == TASKS[task](ids)).double().mean().item(), 3)


def accuracies(code: str, task: str, seed: int) -> list[float]:
    """Train a tagger and return its accuracies, in the order of ASKED."""
    model = train_tagger(code, task, seed)
    return [accuracy(model, task, length) for length in ASKED]


def record_lengths(kept: Kept) -> dict:
    """Return task -> encoding -> one list of accuracies per seed, in the order of ASKED."""
    found: dict = {}
    for task, code, seed in itertools.product(TASKS, CODES, SEEDS):
        row = kept.made(f"{task}, {code}, seed {seed}", partial(accuracies, code, task, seed))
        found.setdefault(task, {}).setdefault(code, []).append(row)
    return found


def pairs() -> list[tuple[str, str]]:
    """Return every sentence of two nouns and a verb with its translation."""
    return [
        (f"the {who} {verb} the {whom}", f"{NOUNS[who]} {VERBS[verb]} {NOUNS[whom]}")
        for verb in VERBS
        for who, whom in itertools.permutations(NOUNS, 2)
    ]


def held_out(source: str) -> bool:
    """Return whether a sentence is in the test set, in both orders of its nouns: dog, man and bites, and others."""
    _, who, verb, _, whom = source.split()
    nouns = list(NOUNS)
    return (nouns.index(who) + nouns.index(whom) + list(VERBS).index(verb)) % 6 == 1


def vocabulary(sentences: list[str]) -> list[str]:
    """Return the special tokens, then every word."""
    return [*SPECIAL_TOKENS, *sorted({word for sentence in sentences for word in sentence.split()})]


def train_translator(code: str, seed: int) -> tuple[float, dict[str, str]]:
    """Return the accuracy on the test sentences, and the translation of each."""
    torch.manual_seed(seed)
    every = pairs()
    english, italian = (vocabulary([pair[side] for pair in every]) for side in (0, 1))
    config = ModelConfig(
        len(english), len(italian), d_model=32, heads=2, encoder_layers=1, decoder_layers=1, d_ff=64, dropout=0.0,
        norm_first=True, max_length=LONGEST_ASKED,
    )  # fmt: skip
    model = Transformer(config)
    model.positions = CODES[code](config.d_model)

    def ids(text: str, words: list[str]) -> list[int]:
        return [words.index(word) for word in text.split()]

    learned = [pair for pair in every if not held_out(pair[0])]
    source = torch.tensor([ids(english_side, english) for english_side, _ in learned])  # (sentence, 5)
    target = torch.tensor([[BOS, *ids(italian_side, italian), EOS] for _, italian_side in learned])  # (sentence, 7)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(BITES_STEPS):
        rows = torch.randint(len(source), (BATCH,))
        logits = model(source[rows], target[rows, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[rows, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    kept = [pair for pair in every if held_out(pair[0])]
    said = {}
    for english_side, _ in kept:
        written = [BOS]
        with torch.no_grad():
            while len(written) < 7 and written[-1] != EOS:
                scores = model(torch.tensor([ids(english_side, english)]), torch.tensor([written]))[0, -1]
                written.append(int(scores.argmax()))
        said[english_side] = " ".join(italian[token] for token in written[1:] if token != EOS)
    right = sum(said[english_side] == italian_side for english_side, italian_side in kept) / len(kept)
    return round(right, 3), said


def record_bites(kept: Kept) -> dict:
    """Return encoding -> the accuracy of each seed, and the first one's translations about the dog and the man."""
    asked = ("the dog bites the man", "the man bites the dog")
    found = {"asked": asked, "kept": sum(held_out(source) for source, _ in pairs()), "sentences": len(pairs())}
    for code in ("sinusoids", "none"):
        made = [kept.made(f"bites, {code}, seed {seed}", partial(train_translator, code, seed)) for seed in SEEDS]
        found[code] = {"right": [share for share, _ in made], "said": [made[0][1][source] for source in asked]}
    return found


def main() -> None:
    """Train all models and write the record."""
    torch.set_num_threads(1)
    kept = Kept("positions", [torch.__version__, WORDS, LONGEST_TRAINED, ASKED, STEPS, BATCH, RATE, SEEDS, BITES_STEPS])
    record = {"torch": torch.__version__, "words": WORDS, "steps": STEPS, "trained_up_to": LONGEST_TRAINED,
              "lengths": ASKED, "bites": record_bites(kept), "accuracy": record_lengths(kept)}  # fmt: skip
    RECORD.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    kept.forget()


if __name__ == "__main__":
    main()
