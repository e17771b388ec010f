"""A line of text becomes a translated line (chapter 12).

The pipeline in six files: `__main__` -> here: tokenizer.encode -> batching.pad_sequences -> transformer.encode ->
greedy or beam_search, one cached step at a time -> tokenizer.decode.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_ref.checkpoint import CPU, Checkpoint, Code, load_checkpoint
from transformer_ref.config import DECODING_PRECISIONS, DecodingConfig, DecodingPrecision, fields_from
from transformer_ref.data.batching import moved, pad_sequences
from transformer_ref.decoding.arguments import expect_evaluation_mode
from transformer_ref.decoding.beam_search import Hypothesis, beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.length_limit import limits_by_source
from transformer_ref.device import choose_device, choose_precision
from transformer_ref.faster import accelerate, for_inference, freed_memory_kept, top_k
from transformer_ref.interop.marian import load_marian_folder
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import unwrapped
from transformer_ref.notices import warn_user
from transformer_ref.text.lines import list_of_lines, one_line
from transformer_ref.text.tokenizer import Tokenizer


class Attention(NamedTuple):
    """The attention weights of a sentence and its translation; each row sums to one."""

    source: list[str]  # the source's tokens, eos last
    target: list[str]  # the tokens the decoder read, bos first; the row of each says where it looked for the next one
    encoder: Tensor  # (layers, heads, source, source)
    decoder: Tensor  # (layers, heads, target, target)
    cross: Tensor  # (layers, heads, target, source)


class Translation(NamedTuple):
    """One of several translations of a line, and the score by which `beam_search` ranks them: higher is better."""

    text: str
    score: float


def open_model(
    folder: str | Path, device: torch.device = CPU, code: Code | None = None, run_its_code: bool = False
) -> Checkpoint:
    """Return the model and the tokenizers that `train` or `learn` wrote into a folder, or those of a Marian folder.

    code, run_its_code: for a learner's model, see `load_checkpoint`. With a Marian folder its weights are loaded into
    the learner's Transformer (chapter 15). Raises what `load_checkpoint`, `load_marian_folder` and `OwnMarian` raise,
    ValueError for run_its_code with a Marian folder, which holds no code.
    """
    if (Path(folder) / "config.json").is_file():
        if run_its_code:
            raise ValueError(f"run-its-code: expected a checkpoint that keeps code, got the Marian folder {folder}")
        found = load_marian_folder(folder)
        model = found.model if code is None else code.on_marian(found.model)
        notes = {"corpus": str(folder)} | ({} if code is None else {"parts": code.whose()})
        return Checkpoint(model.to(device), found.source_tokenizer, found.target_tokenizer, notes)
    return load_checkpoint(folder, device, code=code, run_its_code=run_its_code)


class Translator:
    """A model between two tokenizers; its parts are replaced by faster ones with the same outputs.

    precision: of the decoding. "fp32" and "bf16" convert the model, "auto" chooses the faster of these two, and None
    does not change the model. "int8" decodes with a copy whose weights are rounded to 8 bits. That is faster on most
    CPUs. Some translations differ from those in fp32, and may depend on the lines that are translated together. The
    model itself stays in fp32, and `attention` uses it.
    Raises ValueError for weights that are not finite, and for int8 if it is not available: on a GPU, for a learner's
    own model, or with a torch that has no engine for it.
    """

    def __init__(
        self,
        model: Transformer,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        precision: DecodingPrecision | None = None,
    ) -> None:
        model = unwrapped(model)
        if precision is not None:
            _convert(model, precision)
        _expect_finite_weights(model)
        self.model = accelerate(model)
        self._int8 = for_inference(self.model, int8=True) if precision == "int8" else None
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer

    @classmethod
    def load(
        cls, folder: str | Path, device: str | torch.device = "cpu", precision: DecodingPrecision = "fp32"
    ) -> "Translator":
        """Return the translator that `train` or `learn` wrote into a folder, or that of a Marian (OPUS-MT) folder.

        precision: "fp32", "bf16", "auto" or "int8", see `Translator`.
        Raises what `open_model`, `choose_device` and `Translator` raise.
        """
        opened = open_model(folder, choose_device(device))
        return cls(opened.model, opened.source_tokenizer, opened.target_tokenizer, precision)

    @property
    def precision(self) -> str:
        """The precision of decoding: "fp32", "bf16", "int8", or the name of the dtype of the model's weights."""
        dtype = next(self.model.parameters()).dtype
        names = {torch.float32: "fp32", torch.bfloat16: "bf16"}
        return "int8" if self._int8 is not None else names.get(dtype, str(dtype).removeprefix("torch."))

    def translate(self, lines: Iterable[str], first_line: int = 1, **settings: Any) -> list[str]:
        """Return one translation per line, in the same order; an empty line stays empty.

        A translation is one line. In fp32 it does not depend on the other lines; in bf16, whose rounding may depend on
        the size of a batch, and in int8 it sometimes does.
        first_line: the number of the first line in warnings. A line too long for the model is cut, with a warning.
        settings: fields of `DecodingConfig`, such as beam_size=1.
        Raises TypeError for one string instead of a list, ValueError for a line that is not text, a setting that does
        not fit or a model in training mode.
        """
        config = DecodingConfig(**fields_from(DecodingConfig, settings))
        with freed_memory_kept():
            hypotheses = self._hypotheses(lines, config, first_line, scored=False)
        return [self._text(best_first[0].ids) if best_first else "" for best_first in hypotheses]

    def n_best(self, lines: Iterable[str], count: int, first_line: int = 1, **settings: Any) -> list[list[Translation]]:
        """Return for each line `count` translations, or as many as there are, the best first; none for an empty line.

        count: at most the beam size. The other arguments are those of `translate`. Different ids may give the same
        text.
        """
        config = DecodingConfig(**fields_from(DecodingConfig, settings))
        if type(count) is not int or not 1 <= count <= config.beam_size:
            raise ValueError(f"count: expected 1 to {config.beam_size}, the beam, got {count!r}")
        with freed_memory_kept():
            hypotheses = self._hypotheses(lines, config, first_line, scored=True)
        return [[Translation(self._text(ids), score) for ids, score in best_first[:count]] for best_first in hypotheses]

    def _text(self, ids: list[int]) -> str:
        return one_line(self.target_tokenizer.decode(ids))

    def _hypotheses(
        self, lines: Iterable[str], config: DecodingConfig, first_line: int, scored: bool
    ) -> list[list[Hypothesis]]:
        """Return for each line its translations, the best first; none for an empty line. Greedy ids may end in pads."""
        lines = list_of_lines("lines", lines)
        sources = [self._source_ids(line, number) for number, line in enumerate(lines, first_line)]
        hypotheses: list[list[Hypothesis]] = [[] for _ in lines]
        decoder = for_inference(self.model) if self._int8 is None else self._int8  # with the weights of this moment
        filled = [i for i, source in enumerate(sources) if len(source) > 1]  # only eos means an empty line
        by_length = sorted(filled, key=lambda i: len(sources[i]))
        for start in range(0, len(by_length), config.batch_size):
            batch = by_length[start : start + config.batch_size]
            decoded = self._decode(decoder, [sources[i] for i in batch], config, scored)
            for i, best_first in zip(batch, decoded, strict=True):
                hypotheses[i] = best_first
        return hypotheses

    @torch.inference_mode()
    def attention(self, source: str, target: str | None = None) -> Attention:
        """Return the attention weights of all layers and heads for a sentence and a translation.

        target: by default the model's own translation, in the tokens that it generated, without one that would be
        beyond the last position. Raises ValueError for a target longer than the model can read, or a model in training
        mode, TypeError for anything but a string.
        """
        expect_evaluation_mode(self.model)
        for name, text in (("source", source), ("target", target)):
            if not isinstance(text, str) and (name, text) != ("target", None):
                raise TypeError(f"{name}: expected one string, got {text!r}")
        config, device = self.model.config, next(self.model.parameters()).device
        longest = config.max_length - 1  # after bos
        ids = self._generated(source)[:longest] if target is None else self.target_tokenizer.encode(target)
        if len(ids) > longest:
            raise ValueError(f"target: expected at most {longest} tokens, got {len(ids)}")
        target_ids = [config.bos, *ids]
        source_ids = self._source_ids(source)
        encoded = self.model.encode(torch.tensor([source_ids], device=device), need_weights=True)
        decoded = self.model.decode(torch.tensor([target_ids], device=device), encoded, need_weights=True)
        weights = (torch.cat(each) for each in (encoded.weights, decoded.self_weights, decoded.cross_weights))
        return Attention(self.source_tokenizer.tokens(source_ids), self.target_tokenizer.tokens(target_ids), *weights)

    def _generated(self, source: str) -> list[int]:
        """Return the ids of the translation of a line, without bos, eos and pads."""
        with freed_memory_kept():
            (best_first,) = self._hypotheses([source], DecodingConfig(), 1, scored=False)
        ids, (eos, pad) = best_first[0].ids[1:] if best_first else [], (self.model.config.eos, self.model.config.pad)
        return [id for id in (ids[: ids.index(eos)] if eos in ids else ids) if id != pad]

    def _source_ids(self, line: str, number: int = 1) -> list[int]:
        ids = self.source_tokenizer.encode(line)
        longest = self.model.config.max_length - 1  # eos follows
        if len(ids) > longest:
            warn_user(
                f"source: expected at most {longest} tokens, got {len(ids)} in line {number}; the rest is cut off"
            )
        return [*ids[:longest], self.model.config.eos]

    def _decode(
        self, model: Transformer, sources: list[list[int]], config: DecodingConfig, scored: bool
    ) -> list[list[Hypothesis]]:
        device = next(self.model.parameters()).device
        source_ids = moved(pad_sequences(sources, self.model.config.pad), device)  # (batch, source)
        max_length = limits_by_source(sources, config, self.model.config.max_length)
        greedy, beam = getattr(self.model, "searches", (greedy_decode, beam_search))  # a learner's model has its own
        if config.beam_size == 1 and not scored:
            ids = greedy(model, source_ids, max_length)
            return [[Hypothesis(row, math.nan)] for row in ids.tolist()]  # greedy decoding keeps no score
        found = beam(model, source_ids, config.beam_size, max_length, config.length_penalty, top_k)
        if not all(found):
            raise ValueError("model: expected finite logits, got NaN; its weights or its precision cannot hold them")
        return found


def _convert(model: Transformer, precision: DecodingPrecision) -> None:
    """Convert the model's weights to the dtype of a precision; int8 starts from fp32."""
    if precision not in DECODING_PRECISIONS:
        raise ValueError(f"precision: expected one of {', '.join(DECODING_PRECISIONS)}, got {precision!r}")
    stored = "fp32" if precision == "int8" else precision
    model.to(choose_precision(stored, next(model.parameters()).device))


def _expect_finite_weights(model: Transformer) -> None:
    """Raise ValueError for weights that are NaN or infinite, or not loaded at all."""
    for number, parameter in enumerate(model.parameters()):
        if parameter.is_meta or not parameter.isfinite().all():
            name, got = list(dict(model.named_parameters()))[number], "none" if parameter.is_meta else "NaN or infinity"
            raise ValueError(f"model: expected finite weights, got {got} in {name}")
