"""Record where *He* looks: stories.json, for chapter 12.

    python -m book.recorded.stories

Small encoder-decoders read stories of two sentences (*The boy was going outside with his friends. He bought oranges.*)
and write the second one with a name in the place of the pronoun (*The boy bought oranges.*). Who is meant is never
said: it follows from who can be a he, a she or a they. Trained from three seeds on stories made by rule; the pairs of
people that are asked about were never together in training. The first model is opened: what its heads look at from the
pronoun, and what is lost without a head. Some two minutes of one core.
"""

import itertools
import json
import re
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from book.recorded.heads import silenced
from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import pad_sequences
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.model.transformer import Transformer
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS

PEOPLE = {
    "he": "boy man king uncle father brother grandfather waiter",
    "she": "girl woman queen aunt mother sister grandmother waitress",
    "they": "friends children neighbors cousins teachers guests parents students",
}
OPENINGS = (
    "The {a} was going outside with the {b} .",
    "With the {b} the {a} went to the market .",
    "At the station the {a} met the {b} .",
    "The {a} waited for the {b} in front of the house .",
    "Near the river the {b} came to see the {a} .",
)
DEEDS = ("bought oranges", "lost a key", "told a story", "sang a song", "found a letter", "opened the door")
SHOWN = ("The boy was going outside with the friends . He bought oranges .", "The boy bought oranges .")
SIZES = dict(d_model=64, heads=4, encoder_layers=2, decoder_layers=1, d_ff=128, dropout=0.0, norm_first=True)
STEPS, BATCH, RATE, SEEDS = 900, 64, 3e-3, (1, 2, 3)
RECORD = FOLDER / "stories.json"


class Story(NamedTuple):
    """Two sentences, the second one without its pronoun, the person who is meant, and the other one."""

    source: str
    target: str
    meant: str
    other: str


def stories() -> list[Story]:
    """Return every story in which the pronoun fits only one of two people."""
    kinds = {person: pronoun for pronoun, names in PEOPLE.items() for person in names.split()}
    found = []
    for (a, b), opening, deed in itertools.product(itertools.permutations(kinds, 2), OPENINGS, DEEDS):
        for meant, other in ((a, b), (b, a)):
            if kinds[a] != kinds[b]:
                source = f"{opening.format(a=a, b=b)} {kinds[meant].capitalize()} {deed} ."
                found.append(Story(source, f"The {meant} {deed} .", meant, other))
    return found


def held_out(story: Story) -> bool:
    """Return whether two people are in the test set, in either order: every seventh pair, and those of the story
    shown."""
    names = [name for names in PEOPLE.values() for name in names.split()]
    places = sorted((names.index(story.meant), names.index(story.other)))
    return (places[0] + 3 * places[1]) % 7 == 1 or {story.meant, story.other} == {"boy", "friends"}


def vocabulary(every: Sequence[Story]) -> list[str]:
    """Return the special tokens, then every word."""
    return [*SPECIAL_TOKENS, *sorted({word for story in every for text in story[:2] for word in text.split()})]


def ids(text: str, words: list[str]) -> list[int]:
    """Return the number of each word, then <eos>."""
    return [*(words.index(word) for word in text.split()), EOS]


def trained(seed: int, every: Sequence[Story], words: list[str]) -> Transformer:
    """Return a model trained on the stories of the other pairs of people."""
    model = Transformer(
        ModelConfig(len(words), len(words), max_length=40, **SIZES), torch.Generator().manual_seed(seed)
    )
    learned = [story for story in every if not held_out(story)]
    source = pad_sequences([ids(story.source, words) for story in learned], PAD)
    target = pad_sequences([[BOS, *ids(story.target, words)] for story in learned], PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    g = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        rows = torch.randint(len(source), (BATCH,), generator=g)
        logits = model(source[rows], target[rows, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[rows, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def right(model: Transformer, asked: Sequence[Story], words: list[str]) -> float:
    """Return the share of stories whose second sentence is translated with the correct name."""
    source = pad_sequences([ids(story.source, words) for story in asked], PAD)
    written = greedy_decode(model, source, 10)  # (story, length), <bos> first
    said = [[token for token in row[1:] if token not in (EOS, PAD)] for row in written.tolist()]
    wanted = [ids(story.target, words)[:-1] for story in asked]
    return round(sum(a == b for a, b in zip(said, wanted, strict=True)) / len(asked), 3)


@torch.no_grad()
def from_the_pronoun(model: Transformer, asked: Sequence[Story], words: list[str]) -> list[list[dict[str, float]]]:
    """Return for each layer and head the pronoun's mean weights for the person meant and for the other one."""
    found: list[Tensor] = []
    for story in asked:
        tokens = story.source.split()
        pronoun = max(tokens.index(word) for word in ("He", "She", "They") if word in tokens)
        weights = torch.cat(model.encode(torch.tensor([ids(story.source, words)]), need_weights=True).weights)
        rows = weights[:, :, pronoun]  # (layer, head, key)
        found.append(torch.stack([rows[..., tokens.index(person)] for person in (story.meant, story.other)], -1))
    mean = torch.stack(found).mean(0)  # (layer, head, 2)
    return [[{"meant": round(a, 3), "other": round(b, 3)} for a, b in layer] for layer in mean.tolist()]


def without(model: Transformer, asked: Sequence[Story], words: list[str]) -> list[list[float]]:
    """Return for each layer and head the accuracy with its output set to zero."""
    found = []
    for layer in model.encoder.layers:
        row = []
        for head in range(model.config.heads):
            with silenced(layer.self_attention, [head]):
                row.append(right(model, asked, words))
        found.append(row)
    return found


@torch.no_grad()
def opened(model: Transformer, words: list[str]) -> dict[str, Any]:
    """Return every weight of the story shown: encoder, decoder and cross-attention."""
    source, target = (ids(text, words) for text in SHOWN)
    encoded = model.encode(torch.tensor([source]), need_weights=True)
    decoded = model.decode(torch.tensor([[BOS, *target[:-1]]]), encoded, need_weights=True)
    kinds = {"encoder": encoded.weights, "decoder": decoded.self_weights, "cross": decoded.cross_weights}
    tables = {
        kind: [[[[round(share, 3) for share in row] for row in head] for head in layer[0].tolist()] for layer in layers]
        for kind, layers in kinds.items()
    }
    return {"source": [words[id] for id in source], "target": [words[id] for id in [BOS, *target[:-1]]], **tables}


def main() -> None:
    """Train the three models, open the first, and write the record."""
    torch.set_num_threads(1)
    every = stories()
    words = vocabulary(every)
    kept = [story for story in every if held_out(story)]
    asked = kept[:: max(len(kept) // 400, 1)]
    record: dict[str, Any] = {
        "torch": torch.__version__, "sizes": SIZES, "steps": STEPS, "learned": len(every) - len(kept),
        "asked": len(asked), "right": [], "pronoun": [], "without": [],
    }  # fmt: skip
    for seed in SEEDS:
        began = time.process_time()
        model = trained(seed, every, words)
        record["right"].append(right(model, asked, words))
        record["pronoun"].append(from_the_pronoun(model, asked[::4], words))
        record["without"].append(without(model, asked, words))
        if seed == SEEDS[0]:
            record["opened"] = opened(model, words)
        told = {name: record[name][-1] for name in ("right", "pronoun", "without")}
        print(seed, f"{time.process_time() - began:.0f} s", json.dumps(told), flush=True)
    text = re.sub(r"(\}\]?, |\]\], )", r"\1\n", json.dumps(record))
    RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
