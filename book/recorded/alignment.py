"""Record where a small trained translator looks while it writes: alignment.json, which chapter 01 shows.

    python -m book.recorded.alignment

It learns from short sentences of the built-in English-Italian corpus, then translates sentences that it has not seen.
About three minutes on one core.
"""

import json
import time
from collections import Counter

import torch

from book.recorded.recurrent import RecurrentTranslator, train_step
from transformer_ref.data.batching import pad_sequences
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import EOS, PAD
from transformer_ref.text.vocabulary import Vocabulary

COMMON_WORDS, SHORTEST, LONGEST = 400, 3, 8
STEPS, BATCH, WIDTH, RATE = 3_000, 64, 64, 4e-3
SHOWN = (
    "I closed the windows.",
    "The elegant scientist will manage this plant.",
    "We cleaned their zeppelin and saw it.",
    "You will install three new practical smartphones tomorrow.",
)
RECORD = FOLDER / "alignment.json"

Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """Return the words in lower case, without the mark at the end."""
    return tuple(text.lower().rstrip(".?").split())


def short_pairs() -> tuple[list[tuple[Words, Words]], list[tuple[Words, Words]]]:
    """Return training and test pairs: short, and made of common English words only."""
    corpus = build_corpus(train=40_000, validation=0, test=1_000, held_out=0)
    splits = [
        [(words_of(pair.english), words_of(pair.italian)) for pair in split] for split in (corpus.train, corpus.test)
    ]
    splits = [
        [(english, italian) for english, italian in split if SHORTEST <= len(english) <= LONGEST] for split in splits
    ]
    counts = Counter(word for english, _ in splits[0] for word in english)
    common = {word for word, _ in counts.most_common(COMMON_WORDS)}
    shown = {words_of(text) for text in SHOWN}
    train, test = ([pair for pair in split if common.issuperset(pair[0])] for split in splits)
    return [pair for pair in train if pair[0] not in shown], test


def train(pairs: list[tuple[Words, Words]], source: Vocabulary, target: Vocabulary) -> RecurrentTranslator:
    """Return a model trained on STEPS batches, each of sentences of one length."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = RecurrentTranslator(len(source), len(target), WIDTH, look_back=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    by_length = {length: [pair for pair in pairs if len(pair[0]) == length] for length in range(SHORTEST, LONGEST + 1)}
    lengths = [len(english) for english, _ in pairs]  # a length is drawn as often as it occurs
    for _ in range(STEPS):
        group = by_length[lengths[int(torch.randint(len(lengths), (), generator=generator))]]
        chosen = torch.randint(len(group), (BATCH,), generator=generator).tolist()
        english = torch.tensor([source.encode(group[index][0]) for index in chosen])  # (batch, source)
        italian = pad_sequences([[*target.encode(group[index][1]), EOS] for index in chosen], PAD)  # (batch, target)
        train_step(model, optimizer, english, italian)
        schedule.step()
    return model


def translated(model: RecurrentTranslator, english: Words, source: Vocabulary, target: Vocabulary) -> dict:
    """Return the translation of one sentence, a row of weights for each word, and one for the end."""
    ids, weights = model.translate(torch.tensor([source.encode(english)]), 2 * LONGEST)
    italian = target.decode(ids[0].tolist())
    rows = [[round(weight, 3) for weight in row] for row in weights[0, : len(italian)].tolist()]
    unknown = [word for word in english if word not in source]
    return {"source": list(english), "unknown": unknown, "target": italian, "weights": rows}


def main() -> None:
    """Train, evaluate and write the record."""
    torch.set_num_threads(1)
    pairs, test = short_pairs()
    source, target = (Vocabulary.build(side) for side in zip(*pairs, strict=True))
    began = time.perf_counter()
    model = train(pairs, source, target)
    print(f"{len(pairs)} pairs, {time.perf_counter() - began:.0f} s", flush=True)
    right = sum(tuple(translated(model, english, source, target)["target"]) == italian for english, italian in test)
    record = {
        "pairs": len(pairs),
        "steps": STEPS,
        "test": len(test),
        "exactly_right": right,
        "sentences": [translated(model, words_of(text), source, target) for text in SHOWN],
    }
    for sentence in record["sentences"]:
        print(" ".join(sentence["source"]), "|", " ".join(sentence["target"]))
    print(f"{right} of {len(test)} unseen sentences exactly right")
    RECORD.write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
