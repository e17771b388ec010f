"""A learner's Transformer behind the interface of the package's own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig
from transformer_ref.learner.own_file import MODEL, LearnersFile, OwnCodeError
from transformer_ref.learner.own_search import own_beam, own_greedy
from transformer_ref.model_state import set_buffer


class OwnCache:
    """The target tokens of earlier calls; nothing else is kept, since the model recomputes everything."""

    def __init__(self) -> None:
        self.ids: Tensor | None = None

    def append(self, ids: Tensor) -> Tensor:
        """Add these ids and return all ids so far, (batch, so far)."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        return self.ids

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch."""
        self.ids = self.ids.index_select(0, rows)


@dataclass(frozen=True)
class OwnSource:
    """A batch of sources, (batch, source), which the model reads again at every step."""

    ids: Tensor

    def select(self, rows: Tensor) -> "OwnSource":
        """Return the given rows of the batch."""
        return OwnSource(self.ids.index_select(0, rows))


@dataclass(frozen=True)
class OwnDecoded:
    """hidden: logits, (batch, target, vocabulary), since the learner's model returns only those."""

    hidden: Tensor


class OwnTransformer(nn.Module):
    """The learner's Transformer with the interface of the package's model.

    It only needs forward(src, tgt_in) -> logits. Raises OwnCodeError if it is not a module or raises an exception.
    """

    def __init__(self, code: LearnersFile, config: ModelConfig) -> None:
        super().__init__()
        self.code, self.config = code, config
        with code.called(f"{MODEL}(config)"):
            self.own = getattr(code.module, MODEL)(config)
        if not isinstance(self.own, nn.Module) or not any(True for _ in self.own.parameters()):
            got = "no parameters" if isinstance(self.own, nn.Module) else type(self.own).__name__
            raise OwnCodeError(f"{code.name}: {MODEL}: expected an nn.Module with parameters, got {got}")

    def __deepcopy__(self, memory: dict) -> "OwnTransformer":
        """Return a new model with these weights and buffers: what modules keep of their last call cannot be copied."""
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
        """Return the source itself. Raises OwnCodeError for weights, which the learner's model does not return."""
        if need_weights:
            raise OwnCodeError(
                f"{self.code.name}: {MODEL}: attention weights are not available for your own model; run `export` first"
            )
        return OwnSource(source_ids)

    @property
    def searches(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return greedy decoding and beam search, the learner's if their file has them."""
        return own_greedy, own_beam

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

        With a mask, as from beam search, there are several hypotheses of one source, and each is read separately.
        positions: with a mask the position of each newest token, all equal.
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
