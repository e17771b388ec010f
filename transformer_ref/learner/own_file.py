"""A learner's own file, run: the parts that it holds, and one clear sentence when one of them fails.

The code is the learner's, on their own machine: it runs with all of their rights, and only when they name the file or
ask for the copy that a checkpoint keeps. What goes wrong inside becomes one sentence, with the part and the line.
"""

import hashlib
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from transformer_ref.learner.mine import MODULE, NOT_MINE, run_text

MODEL = "Transformer"
PARTS = (  # what a training run and a translation take from the file where it is there, else from the package
    *(MODEL, "masked_ce", "smooth_targets", "noam_lr", "token_batches", "shift_right"),
    *("greedy_decode", "beam_search"),
)


class OwnCodeError(ValueError):
    """The learner's code did something that the package cannot continue with; the text says where."""


@dataclass(frozen=True)
class LearnersFile:
    """A file that was run. name: as shown in sentences; text: its source; module: what it defines."""

    name: str
    text: str
    module: ModuleType = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> "LearnersFile":
        """Run a file. Raises OwnCodeError if it cannot be read, raises an exception, or has no Transformer."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise OwnCodeError(f"model: expected a Python file, got {path} ({reason})") from error
        return cls.of_text(str(path), text)

    @classmethod
    def of_text(cls, name: str, text: str) -> "LearnersFile":
        """Run a source as the file of that name. Raises OwnCodeError."""
        with cls(name, text, ModuleType(MODULE)).called("the file"):
            module = run_text(name, text)
        code = cls(name, text, module)
        if not callable(getattr(module, MODEL, None)):
            raise OwnCodeError(
                f"{name}: expected a class Transformer(cfg) (exercise 09.5), got none; `python -m autograder assemble` "
                "says what is missing, and with --fill puts the course's answers there"
            )
        return code

    def __deepcopy__(self, memory: dict) -> "LearnersFile":
        return self  # a model's copy runs the same code

    @property
    def sha256(self) -> str:
        """Of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def part(self, name: str) -> Callable[..., Any] | None:
        """Return what the file itself defines under a name; None if it has nothing, or only the package's."""
        found = getattr(self.module, name, None)
        imported = str(getattr(found, "__module__", "")).startswith("transformer_ref")
        return found if callable(found) and not imported else None

    def whose(self) -> dict[str, str]:
        """Return each part's author: "yours", "the course's" (`assemble --fill` wrote it) or "the package's"."""
        filled = getattr(self.module, NOT_MINE, ())
        return {
            name: "the package's" if self.part(name) is None else "the course's" if name in filled else "yours"
            for name in PARTS
        }

    @contextmanager
    def called(self, what: str) -> Iterator[None]:
        """Turn any exception of the learner's code in the block into an OwnCodeError: what was called, and where.

        what: such as "masked_ce(logits (2, 3, 5), labels (2, 3), pad)".
        """
        try:
            yield
        except OwnCodeError:
            raise
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            line = next((frame.lineno for frame in reversed(frames) if frame.filename == self.name), None)
            line = error.lineno if isinstance(error, SyntaxError) else line
            place = "" if line is None else f" in line {line}"
            said = " ".join(str(error).split()) or "no message"
            raise OwnCodeError(f"{self.name}: {what} stopped{place} with {type(error).__name__}: {said}") from error
