"""A learner's own code at work: the file that `assemble` wrote, its Transformer, and clear words when they fail.

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

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig
from transformer_ref.mine import MODULE, NOT_MINE, run_text
from transformer_ref.model_state import set_buffer

MODEL = "Transformer"
PARTS = (  # what a training and a translation take from the file where it is there, else from the package
    MODEL,
    "masked_ce",
    "smooth_targets",
    "noam_lr",
    "token_batches",
    "shift_right",
    "greedy_decode",
    "beam_search",
)


class OwnCodeError(ValueError):
    """The learner's code did what the package cannot go on with; the text says where."""


@dataclass(frozen=True)
class OwnCode:
    """A file that was run. name: how it is called in sentences; text: its source; module: what it defines."""

    name: str
    text: str
    module: ModuleType = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> "OwnCode":
        """Run a file. Raises OwnCodeError when it cannot be read or stops, or has no Transformer."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise OwnCodeError(f"model: expected a Python file, got {path} ({reason})") from error
        return cls.of_text(str(path), text)

    @classmethod
    def of_text(cls, name: str, text: str) -> "OwnCode":
        """Run a text as the file of that name. Raises OwnCodeError."""
        with cls(name, text, ModuleType(MODULE)).called("the file"):
            module = run_text(name, text)
        code = cls(name, text, module)
        if not callable(getattr(module, MODEL, None)):
            raise OwnCodeError(
                f"{name}: expected a class Transformer(cfg) (exercise 09.5), got none; `python -m autograder assemble` "
                "says what is missing, and with --fill puts the course's answers there"
            )
        return code

    def __deepcopy__(self, memory: dict) -> "OwnCode":
        return self  # a model's copy runs the same code

    @property
    def sha256(self) -> str:
        """Of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def part(self, name: str) -> Callable[..., Any] | None:
        """What the file itself holds under a name; None where it has none, or only the package's."""
        found = getattr(self.module, name, None)
        imported = str(getattr(found, "__module__", "")).startswith("transformer_ref")
        return found if callable(found) and not imported else None

    def whose(self) -> dict[str, str]:
        """Of each part that is used: "yours", "the course's" (as `assemble --fill` wrote it) or "the package's"."""
        filled = getattr(self.module, NOT_MINE, ())
        return {
            name: "the package's" if self.part(name) is None else "the course's" if name in filled else "yours"
            for name in PARTS
        }

    @contextmanager
    def called(self, what: str) -> Iterator[None]:
        """Whatever the learner's code raises in the block becomes an OwnCodeError that says what was called, and where.

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


class OwnCache:
    """The target tokens that earlier calls have seen; nothing else is kept, since the model computes all anew."""

    def __init__(self) -> None:
        self.ids: Tensor | None = None

    def append(self, ids: Tensor) -> Tensor:
        """Return all ids so far, (batch, so far), these among them."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        return self.ids

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch."""
        self.ids = self.ids.index_select(0, rows)


@dataclass(frozen=True)
class OwnSource:
    """A batch of sources, (batch, source), to be read at every step."""

    ids: Tensor

    def select(self, rows: Tensor) -> "OwnSource":
        """Return the given rows of the batch."""
        return OwnSource(self.ids.index_select(0, rows))


@dataclass(frozen=True)
class OwnDecoded:
    """hidden: logits, (batch, target, vocabulary), since only those are seen of the learner's model."""

    hidden: Tensor


class OwnTransformer(nn.Module):
    """The learner's Transformer behind the calls that the package makes of its own.

    Only forward(src, tgt_in) -> logits is asked of it. Raises OwnCodeError where it is no module or stops.
    """

    def __init__(self, code: OwnCode, config: ModelConfig) -> None:
        super().__init__()
        self.code, self.config = code, config
        with code.called(f"{MODEL}(config)"):
            self.own = getattr(code.module, MODEL)(config)
        if not isinstance(self.own, nn.Module) or not any(True for _ in self.own.parameters()):
            got = "no parameters" if isinstance(self.own, nn.Module) else type(self.own).__name__
            raise OwnCodeError(f"{code.name}: {MODEL}: expected an nn.Module with parameters, got {got}")

    def __deepcopy__(self, memory: dict) -> "OwnTransformer":
        """A new one with these weights and buffers: what a learner's modules keep of their last call cannot be
        copied."""
        with torch.random.fork_rng(devices=[]):
            copy = OwnTransformer(self.code, self.config)
        first = next(self.parameters())
        copy.to(first.device, first.dtype).train(self.training)
        with torch.no_grad():
            for (_, new), (_, old) in zip(copy.named_parameters(), self.named_parameters(), strict=True):
                new.copy_(old)
            for name, buffer in self.named_buffers():
                set_buffer(copy, name, buffer)
        return copy

    def forward(self, source_ids: Tensor, target_input_ids: Tensor) -> Tensor:
        """Return logits (batch, target, vocabulary)."""
        sizes = f"src {tuple(source_ids.shape)}, tgt_in {tuple(target_input_ids.shape)}"
        with self.code.called(f"{MODEL}.forward({sizes})"), torch.device(source_ids.device):
            logits = self.own(source_ids, target_input_ids)
        expected = (*target_input_ids.shape, self.config.target_vocabulary)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != expected:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise OwnCodeError(
                f"{self.code.name}: {MODEL}.forward({sizes}): expected logits {expected}, (batch, target, vocabulary), "
                f"got {got}"
            )
        return logits

    def encode(self, source_ids: Tensor, need_weights: bool = False) -> OwnSource:
        """Return the source as it is. Raises OwnCodeError for weights, which the learner's model does not hand out."""
        if need_weights:
            raise OwnCodeError(
                f"{self.code.name}: {MODEL}: attention weights are not available for your own model; run `export` first"
            )
        return OwnSource(source_ids)

    def new_cache(self) -> OwnCache:
        """Return an empty memory for `decode`."""
        return OwnCache()

    def decode(
        self,
        target_ids: Tensor,
        encoded: OwnSource,
        cache: OwnCache | None = None,
        need_weights: bool = False,
        mask: Tensor | None = None,
        positions: Any = None,
    ) -> OwnDecoded:
        """Return logits for the target's tokens; the arguments are those of `Transformer.decode`.

        A mask tells several hypotheses of one source apart, as beam search does: each is then read by itself.
        positions: with a mask the position of each newest token, all alike.
        """
        so_far = target_ids if cache is None else cache.append(target_ids)  # (batch, so far)
        if mask is None:
            return OwnDecoded(self(encoded.ids, so_far)[:, -target_ids.shape[1] :])
        batch, beam = target_ids.shape
        theirs = mask[:, 0]  # (batch, beam, so far), True at a hypothesis's own tokens
        length = positions[0] + 1  # of every prefix; an index by the mask would wait for a GPU
        order = theirs.byte().argsort(dim=-1, descending=True, stable=True)[..., :length]  # (batch, beam, length)
        prefixes = so_far[:, None].expand_as(theirs).gather(-1, order).view(batch * beam, length)
        logits = self(encoded.ids.repeat_interleave(beam, dim=0), prefixes)[:, -1]  # (batch * beam, vocabulary)
        return OwnDecoded(logits.view(batch, beam, -1))

    def logits(self, hidden: Tensor) -> Tensor:
        """Return what `decode` gave."""
        return hidden
