"""Record how well one vector carries a sentence, as sentences grow: bottleneck.json, which chapter 01 plots.

    python -m book.recorded.bottleneck

A sentence is a row of words drawn at random, its translation the same row in another language, word by word: nothing
can be guessed, everything must be carried. Three models learn it from sentences of 1 to 16 words: two that carry one
vector (32 and 64 numbers), and one with 32 numbers that looks back. About a minute a model on one core.
"""

import json
import time

import torch
from torch import Tensor

from book.recorded.recurrent import RecurrentTranslator, train_step
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import SPECIAL_TOKENS

WORDS, LONGEST_TRAINED, LONGEST_ASKED = 20, 16, 24
STEPS, BATCH, RATE = 3_000, 64, 4e-3
MODELS = {"one vector of 32": (32, False), "one vector of 64": (64, False), "looks back, 32": (32, True)}
RECORD = FOLDER / "bottleneck.json"


def sentences(count: int, length: int, language: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return random sentences and their translations, (count, length) both."""
    source = torch.randint(WORDS, (count, length), generator=generator)  # (batch, source)
    return source + len(SPECIAL_TOKENS), language[source] + len(SPECIAL_TOKENS)


def train(width: int, look_back: bool, language: Tensor) -> RecurrentTranslator:
    """Return a model trained on STEPS batches, each of one length."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    vocabulary = WORDS + len(SPECIAL_TOKENS)
    model = RecurrentTranslator(vocabulary, vocabulary, width, look_back)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    for _ in range(STEPS):
        length = int(torch.randint(1, LONGEST_TRAINED + 1, (), generator=generator))
        train_step(model, optimizer, *sentences(BATCH, length, language, generator))
        schedule.step()
    return model


def accuracy(model: RecurrentTranslator, length: int, language: Tensor) -> float:
    """Return the share of correctly translated words in 500 new sentences of this length."""
    source, labels = sentences(500, length, language, torch.Generator().manual_seed(1_000 + length))
    words, _ = model.translate(source, length)
    return (words == labels).double().mean().item()


def main() -> None:
    """Train the three models and write the record."""
    torch.set_num_threads(1)
    language = torch.randperm(WORDS, generator=torch.Generator().manual_seed(0))
    lengths = list(range(1, LONGEST_ASKED + 1))
    record = {"words": WORDS, "trained_up_to": LONGEST_TRAINED, "steps": STEPS, "lengths": lengths, "accuracy": {}}
    for name, (width, look_back) in MODELS.items():
        began = time.perf_counter()
        model = train(width, look_back, language)
        record["accuracy"][name] = [round(accuracy(model, length, language), 3) for length in lengths]
        print(name, f"{time.perf_counter() - began:.0f} s", record["accuracy"][name], flush=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
