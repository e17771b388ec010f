"""Record where a small translator errs: errors.json, for chapter 12.

    python -m book.recorded.errors

The translator that `ablations` calls "nothing changed", of the first seed, is trained for half of its steps, so that
there is something to see, and asked for every line of the test and of the held-out combinations. Kept of each line: its
words, how often its rarest word is in the training, and whether the translation was right; of some wrong ones, the
lines themselves. A minute of one core.
"""

import json
import re
from collections import Counter
from typing import Any

import torch

from book.recorded import ablations
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.recording import FOLDER

STEPS = 400
EXAMPLES = 4  # wrong lines kept of each number of words and each rarity
LENGTHS, RARITIES = (6, 9, 12), (100, 200, 400)  # where one group ends and the next begins
RECORD = FOLDER / "errors.json"


def group(value: int, borders: tuple[int, ...]) -> int:
    """Return which of the groups between these borders a value belongs to."""
    return sum(value > border for border in borders)


def words(line: str) -> list[str]:
    """Return the words in small letters, without marks."""
    return re.findall(r"\w+", line.lower())


def main() -> None:
    """Train the translator, translate with it, and write the record."""
    torch.set_num_threads(1)
    corpus = build_corpus()
    ablations.SETTINGS["steps"] = STEPS
    translator = ablations.trained(1)
    met = Counter(word for pair in corpus.train for word in words(pair.english))
    pairs = [*corpus.test, *corpus.held_out]
    said = translator.translate([pair.english for pair in pairs], beam_size=1)
    lines, examples, kept = [], [], Counter[tuple[int, int]]()
    for pair, translation in zip(pairs, said, strict=True):
        found = words(pair.english)
        length, rarest = len(found), min(met[word] for word in found)
        is_right = translation == pair.italian
        lines.append([length, rarest, int(is_right)])
        place = group(length, LENGTHS), group(rarest, RARITIES)
        if not is_right and kept[place] < EXAMPLES:
            kept[place] += 1
            examples.append({"place": place, "source": pair.english, "said": translation, "right": pair.italian})
    record: dict[str, Any] = {
        "torch": torch.__version__, "steps": STEPS, "lengths": LENGTHS, "rarities": RARITIES, "lines": lines,
        "examples": examples,
    }  # fmt: skip
    text = json.dumps(record, ensure_ascii=False).replace("}, {", "},\n{")
    RECORD.write_text(text + "\n", encoding="utf-8")
    print(sum(right for *_, right in lines), "of", len(lines), "right;", len(examples), "wrong lines kept")


if __name__ == "__main__":
    main()
