"""A trained model in one file (chapter 10).

The file is a safetensors file: no code runs when it is read. Its header holds the model's config and tokenizers as
JSON, so a checkpoint needs no other file. It is written under a temporary name, then renamed. `training.resume` saves
an unfinished training run in the same way.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer_ref.atomic_write import usual_mode
from transformer_ref.config import ModelConfig
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import buffers_of, parameters_of, plain_names, set_buffer, unwrapped
from transformer_ref.notices import warn_user
from transformer_ref.text.tokenizer import Tokenizer, tokenizer_from_json

CPU = torch.device("cpu")
MODEL_FILE = "model.safetensors"
SPARE = 10  # times the weights of a file that its config may name; then the message names the field instead
LARGEST_TABLE = 2**28  # numbers of a table of positions, which is computed, not stored
CARD_FILE, PAGE_FILE, CURVES_FILE = "run.json", "run.md", "curves.svg"  # the story of the model, see `run_card`


class Code(Protocol):
    """A learner's own file (`learner.own_code.OwnCode`). name: of the file; text: its source; sha256: of the source."""

    name: str
    text: str
    sha256: str

    def transformer(self, config: ModelConfig) -> nn.Module: ...

    def on_marian(self, model: nn.Module) -> nn.Module: ...

    def whose(self) -> dict[str, str]: ...


class Checkpoint(NamedTuple):
    """A model in evaluation mode, its tokenizers, and notes such as its corpus."""

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    notes: dict[str, Any]


def save_checkpoint(
    folder: str | Path,
    model: Transformer,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    notes: Mapping[str, Any],
) -> Path:
    """Write the model into a folder, which is created if necessary, and return the file's path.

    notes: plain values to store with it, such as the corpus it was trained on.
    """
    model = unwrapped(model)
    header = {
        "config": model.config.to_dict(),
        "notes": dict(notes),
        "source_tokenizer": source_tokenizer.to_json(),
        "target_tokenizer": target_tokenizer.to_json(),
    }
    if code := getattr(model, "code", None):  # a learner's own model carries the code that it is made of
        header["code"] = {"name": Path(code.name).name, "text": code.text, "sha256": code.sha256}
    return write_tensors(Path(folder) / MODEL_FILE, state_of(model), header)


def load_checkpoint(
    folder: str | Path,
    device: torch.device = CPU,
    expected: ModelConfig | None = None,
    code: Code | None = None,
    run_its_code: bool = False,
) -> Checkpoint:
    """Return what `save_checkpoint` wrote.

    folder: where it wrote, or the file itself; expected: a config that the file's must equal.
    code: the learner's own, of a model that is theirs; run_its_code: run the copy of it that the checkpoint keeps, with
    all rights of the caller. Without either, a checkpoint is data, and no code of it is ever run.
    Raises FileNotFoundError, or ValueError naming the field that does not fit.
    """
    path = Path(folder) if Path(folder).is_file() else Path(folder) / MODEL_FILE
    tensors, header = read_tensors(path)
    with reading_header(path):
        config = ModelConfig.from_dict(header["config"])
        source_tokenizer = tokenizer_from_json(header["source_tokenizer"])
        target_tokenizer = tokenizer_from_json(header["target_tokenizer"])
        notes = dict(header["notes"])
        kept = {name: str(header["code"][name]) for name in ("name", "text", "sha256")} if "code" in header else None
        if kept:
            kept["name"] = printable(kept["name"])
    if expected:
        expect_equal(path, config.to_dict(), expected.to_dict())
    sizes = {"source_vocabulary": source_tokenizer.size, "target_vocabulary": target_tokenizer.size}
    expect_equal(path, sizes, {name: getattr(config, name) for name in sizes})
    code = _code(path, kept, code, run_its_code)
    _expect_fitting(path, config, tensors)
    model = (code.transformer(config) if code else Transformer(config)).to(device)
    load_weights(path, model, tensors)
    return Checkpoint(model.eval(), source_tokenizer, target_tokenizer, notes)


def _expect_fitting(path: Path, config: ModelConfig, tensors: Mapping[str, Tensor]) -> None:
    """Check, before a model is built, that the file can hold it: a few bytes may name sizes that are slow to allocate.

    The count is a lower bound; each shape is checked later, by name.
    """
    d, layers = config.d_model, config.encoder_layers + config.decoder_layers
    words = max(config.source_vocabulary, config.target_vocabulary)
    least = layers * (4 * d * d + 2 * d * config.d_ff) + words * d
    have = sum(tensor.numel() for tensor in tensors.values())
    if least > SPARE * have or layers > SPARE * len(tensors):
        raise ValueError(
            f"config: expected the sizes of the {have:,} weights in {path}, got those of a model with {layers:,} "
            f"layers and at least {least:,} weights"
        )
    if config.max_length * d > LARGEST_TABLE:
        raise ValueError(
            f"max_length: expected at most {LARGEST_TABLE // d:,} positions at d_model {d}, got {config.max_length:,} "
            f"in {path}"
        )


def _code(path: Path, kept: dict[str, str] | None, code: Code | None, run_its_code: bool) -> Code | None:
    """Return the code that a model needs, None for the package's own. No other code is run."""
    if kept is None:
        if code:
            raise ValueError(f"model: expected no file of your own for the package's model, got {code.name} for {path}")
        return None
    if code:
        if code.sha256 != kept["sha256"]:
            warn_user(f"model: {code.name} has changed since {path} was trained")
        return code
    if not run_its_code:
        raise ValueError(
            f"model: expected the file of the code that {path} was trained with, got none. A checkpoint is data: its "
            f"copy of {kept['name']} is run only if you say so. --model {kept['name']} runs your file, --run-its-code "
            "the copy, with all of your rights"
        )
    from transformer_ref.learner.own_code import OwnCode  # only if asked to run the copy

    return OwnCode.of_text(f"{kept['name']} (the copy in {path})", kept["text"])


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> Path:
    """Write under a temporary name, then rename: a reader sees the old file or the new one, never a part.

    The file has the mode that `atomic_write` gives: safetensors creates files that only their owner can read.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")  # always this name: what a killed process left is written over
    try:
        save_file(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            temporary,
            metadata={name: json.dumps(value, ensure_ascii=False) for name, value in header.items()},
        )
        _sort_header(temporary)
        os.chmod(temporary, usual_mode(path))
        os.replace(temporary, path)
    except SafetensorError as error:  # such as a disk that is full
        raise OSError(f"checkpoint: expected to write {path}, got: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _sort_header(path: Path) -> None:
    """Sort the fields of the header, which the library writes in random order: equal contents give equal files."""
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
        data = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        if len(data) <= size:  # always, unless the library writes its JSON in another way one day
            file.seek(8)
            file.write(data.ljust(size))


@contextmanager
def reading_header(path: Path) -> Iterator[None]:
    """Turn any error in the block, which reads a header, into one sentence about the header."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the tokenizers' library is no Exception
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"checkpoint: expected the header of a checkpoint, got {path} with {what}") from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and header; the tensors on the CPU, where they can be checked without waiting for a GPU."""
    if not path.is_file():
        raise FileNotFoundError(f"checkpoint: expected the file {path}, got nothing")
    try:
        with safe_open(path, framework="pt") as file:
            header = {name: json.loads(value) for name, value in (file.metadata() or {}).items()}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"checkpoint: expected a complete safetensors file, got {path} ({error})") from error
    if "config" not in header:
        raise ValueError(f"checkpoint: expected a config in the header of {path}, got {sorted(header)}")
    return tensors, header


def printable(text: str) -> str:
    """Return a name from a file with control characters escaped, so that it is safe to print in a terminal."""
    return text if text.isprintable() else ascii(text)


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters, each once, and the buffers that belong to a model's state."""
    buffers = {name: buffer.clone() for name, buffer in buffers_of(model).items()}  # they may share memory
    return {name: parameter.detach() for name, parameter in parameters_of(model).items()} | buffers


def load_weights(path: Path, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load the weights of a file into the model, and the buffers that the file has."""
    parameters, buffers = parameters_of(model), buffers_of(model)
    tensors = plain_names(tensors, {*parameters, *buffers})
    weights = {name: tensor for name, tensor in tensors.items() if name not in buffers}
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    expect_equal(path, {name: tuple(tensor.shape) for name, tensor in weights.items()}, shapes)
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name}: expected finite weights, got NaN or infinity in {path}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
        for name in buffers.keys() & tensors.keys():
            set_buffer(model, name, tensors[name])


def expect_equal(path: Path, got: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name in sorted(got.keys() | expected.keys()):
        have, want = (values.get(name, "nothing") for values in (got, expected))
        if have != want:
            raise ValueError(f"{printable(name)}: expected {want}, got {have} in {path}")
