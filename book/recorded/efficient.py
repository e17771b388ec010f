"""Record what four ways of attention cost here: efficient.json, for chapter 16.

    python -m book.recorded.efficient

One thread of the processor, and the time that it works, so that other programs on the machine cost little; the least
of nine rounds. The reader's own machine is measured by `python -m transformer_ref.beyond.measure`. Three minutes of one
quiet core.
"""

import time

import torch

from transformer_ref.beyond.measure import measure, save
from transformer_ref.recording import FOLDER

LONGEST = 4096  # tokens
REPEATS = 9
RECORD = FOLDER / "efficient.json"


def main() -> None:
    """Measure, and write the record."""
    torch.set_num_threads(1)
    found = measure(LONGEST, torch.device("cpu"), REPEATS, clock=time.process_time, tell=print)
    save({"command": "python -m book.recorded.efficient"} | found, RECORD, drawn=False)


if __name__ == "__main__":
    main()
