"""A trained model in one file, and an unfinished training in another (chapter 10).

Both are safetensors: no code runs when they are read. The model's config and its tokenizers stand in the
file's header as JSON, so a checkpoint needs nothing beside it. A file is written under a temporary name, then
renamed.
"""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.machine import kind_of_machine
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import buffers_of, parameters_of, plain_names, set_buffer, unwrapped
from transformer_ref.notices import warn_user
from transformer_ref.own_code import OwnCode, OwnTransformer
from transformer_ref.text.tokenizer import Tokenizer, tokenizer_from_json
from transformer_ref.training.trainer import Training, schedule_progress, share_done

CPU = torch.device("cpu")
MAY_DIFFER = ("steps", "minutes", "accumulation", "validations", "patience", "muon_precision")  # when resumed
MODEL_FILE, TRAINING_FILE = "model.safetensors", "training.safetensors"
CARD_FILE, PAGE_FILE, CURVES_FILE = "run.json", "run.md", "curves.svg"  # the story of the model, see `run_card`


class Checkpoint(NamedTuple):
    """A model in evaluation mode, what it reads and writes with, and notes such as its corpus."""

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
    """Write the model into a folder, which is made if need be, and return the file's path.

    notes: plain values to keep beside it, such as the corpus it was trained on.
    """
    model = unwrapped(model)
    header = {
        "config": model.config.to_dict(),
        "notes": dict(notes),
        "source_tokenizer": source_tokenizer.to_json(),
        "target_tokenizer": target_tokenizer.to_json(),
    }
    if isinstance(model, OwnTransformer):
        header["code"] = {"name": Path(model.code.name).name, "text": model.code.text, "sha256": model.code.sha256}
    return _write(Path(folder) / MODEL_FILE, _state(model), header)


def load_checkpoint(
    folder: str | Path,
    device: torch.device = CPU,
    expected: ModelConfig | None = None,
    code: OwnCode | None = None,
    run_its_code: bool = False,
) -> Checkpoint:
    """Return what `save_checkpoint` wrote.

    folder: where it wrote, or the file itself; expected: a config that the file's must equal.
    code: the learner's own, of a model that is theirs; run_its_code: run the copy of it that the checkpoint keeps, with
    all rights of whoever calls. Without either, a checkpoint is data, and no code of it is ever run.
    Raises FileNotFoundError, or ValueError naming the field that does not fit.
    """
    path = Path(folder) if Path(folder).is_file() else Path(folder) / MODEL_FILE
    tensors, header = _read(path)
    with _reading_header(path):
        config = ModelConfig.from_dict(header["config"])
        source_tokenizer = tokenizer_from_json(header["source_tokenizer"])
        target_tokenizer = tokenizer_from_json(header["target_tokenizer"])
        notes = dict(header["notes"])
        kept = {name: str(header["code"][name]) for name in ("name", "text", "sha256")} if "code" in header else None
    if expected:
        _expect_equal(path, config.to_dict(), expected.to_dict())
    sizes = {"source_vocabulary": source_tokenizer.size, "target_vocabulary": target_tokenizer.size}
    _expect_equal(path, sizes, {name: getattr(config, name) for name in sizes})
    code = _code(path, kept, code, run_its_code)
    model = (OwnTransformer(code, config) if code else Transformer(config)).to(device)
    _load_weights(path, model, tensors)
    return Checkpoint(model.eval(), source_tokenizer, target_tokenizer, notes)


def _code(path: Path, kept: dict[str, str] | None, code: OwnCode | None, run_its_code: bool) -> OwnCode | None:
    """Return the code that a model needs; None for the package's own. Only what was asked for is run."""
    if kept is None:
        if code:
            raise ValueError(
                f"model: expected no file of one's own for the package's model, got {code.name} for {path}"
            )
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
    return OwnCode.of_text(f"{kept['name']} (the copy in {path})", kept["text"])


def save_training(folder: str | Path, training: Training) -> Path:
    """Write all that `load_training` needs to go on exactly where this training stands."""
    tensors = {f"model.{name}": tensor for name, tensor in _state(training.model).items()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in training.optimizer.tensors().items()}
    tensors["losses"] = torch.tensor(training.losses, dtype=torch.float64)
    header = {
        "config": training.config.to_dict(),
        "step": training.step,
        "seconds": training.seconds,
        "schedule_from": training.schedule_from,
        "tokens": training.tokens,
        "validations": training.validations,
        "epoch": training.stream.epoch,
        "position": training.stream.position,
        "data_sha256": training.stream.sha256,
        "machine": _machine(training),
    }
    model = unwrapped(training.model)
    if isinstance(model, OwnTransformer):
        header["code_sha256"] = model.code.sha256
    if training.average:
        tensors |= {f"average.{name}": tensor for name, tensor in training.average.means.items()}
        header["average_updates"] = training.average.updates
    return _write(Path(folder) / TRAINING_FILE, tensors, header)


def load_training(folder: str | Path, training: Training) -> list[str]:
    """Set a freshly built training to where the saved one stood; its length and the use of memory may differ.

    A precision "auto" becomes the saved one, except on another kind of machine, which chooses anew.
    With another length, what is left of the schedule is stretched over what is left of the training. A learner's code
    may have been edited, as long as its weights have the same names and shapes. Returns a sentence for each such
    difference.
    Raises FileNotFoundError, or ValueError naming the field that does not fit, such as ids of another text: a tokenizer
    learned from it means other words by the same numbers.
    """
    path = Path(folder) / TRAINING_FILE
    tensors, header = _read(path)
    with _reading_header(path):
        saved = TrainingConfig.from_dict(header["config"]).to_dict()
        counts = {name: header[name] for name in ("step", "seconds", "tokens", "validations", "epoch", "position")}
    on_another = header.get("machine", _machine(training)) != _machine(training)
    for name in ("precision", "muon_precision"):
        if getattr(training.config, name) == "auto":
            if on_another:  # which may be many times slower in what the first one chose
                saved[name] = "auto"
            training.config = dataclasses.replace(training.config, **{name: saved[name]})
    _expect_equal(path, _that_must_stay(saved), _that_must_stay(training.config.to_dict()))
    model = unwrapped(training.model)
    own = isinstance(model, OwnTransformer)
    code = header.get("code_sha256", "nothing")
    _expect_equal(path, {"model": _whose(code != "nothing")}, {"model": _whose(own)})
    data = training.stream.sha256
    _expect_equal(path, {"data_sha256": header.get("data_sha256", data)}, {"data_sha256": data})  # old files have none
    _load_weights(path, model, _part(tensors, "model."))
    training.optimizer.load_tensors(_part(tensors, "optimizer."))
    if training.average:
        for name, mean in plain_names(_part(tensors, "average."), training.average.means).items():
            training.average.means[name].copy_(mean)
        training.average.updates = header["average_updates"]
    training.step, training.seconds, training.tokens = counts["step"], counts["seconds"], counts["tokens"]
    training.stream.epoch, training.stream.position = counts["epoch"], counts["position"]
    training.losses = tensors["losses"].tolist()
    training.validations = [(step, loss) for step, loss in counts["validations"]]
    notes = _settle_schedule(training, header)
    if own and code != model.code.sha256:
        notes.append(
            f"{model.code.name} has changed since this training was saved; its weights still fit, so it goes on"
        )
    return notes


def _whose(own: bool) -> str:
    return "one's own" if own else "the package's"


def _settle_schedule(training: Training, header: Mapping[str, Any]) -> list[str]:
    """Continue the saved schedule; return what to say where the training has another length now."""
    config = training.config
    before = dataclasses.replace(config, **{name: header["config"][name] for name in ("steps", "minutes")})
    training.schedule_from = tuple(header.get("schedule_from", (0.0, 0.0)))
    if (before.steps, before.minutes) == (config.steps, config.minutes) or training.step == 0:
        return []
    old = dataclasses.replace(training, config=before)
    # the last step that was taken is never quite at the end, where a linear schedule would leave a rate of 0 for good
    reached = min(schedule_progress(old), 1 - 1 / training.step)
    training.schedule_from = share_done(training), reached
    rate = training.rate(config, training.step + 1, reached)
    finished = ", which was finished" if share_done(old) >= 1 else ""
    return [
        f"the training of {_length(before)}{finished} goes on to {_length(config)}: its rates go on from {rate:.2%} of "
        "their peak and do not rise again; --from begins a new schedule with this model"
    ]


def _length(config: TrainingConfig) -> str:
    return f"{config.steps:,} steps" if config.minutes is None else f"{config.minutes:g} minutes"


def _machine(training: Training) -> str:
    return kind_of_machine(next(training.model.parameters()).device)


def _write(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> Path:
    """Write under a temporary name, then rename: whoever reads sees the old file or the new one, never a half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")  # always this name: what a killed process left is written over
    try:
        save_file(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            temporary,
            metadata={name: json.dumps(value, ensure_ascii=False) for name, value in header.items()},
        )
        os.replace(temporary, path)
    except SafetensorError as error:  # such as a disk that is full
        raise OSError(f"checkpoint: expected to write {path}, got: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return path


@contextmanager
def _reading_header(path: Path) -> Iterator[None]:
    """Say in one sentence what a header lacks; whatever reads it in the block may fail in its own way."""
    try:
        yield
    except Exception as error:  # the tokenizers' library raises nothing more special
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"checkpoint: expected the header of a checkpoint, got {path} with {what}") from error


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
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


def _state(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters, each once, and the buffers that a model keeps as part of its state."""
    buffers = {name: buffer.clone() for name, buffer in buffers_of(model).items()}  # they may share memory
    return {name: parameter.detach() for name, parameter in parameters_of(model).items()} | buffers


def _load_weights(path: Path, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give the model the weights of a file, and the buffers that the file has."""
    parameters, buffers = parameters_of(model), buffers_of(model)
    tensors = plain_names(tensors, {*parameters, *buffers})
    weights = {name: tensor for name, tensor in tensors.items() if name not in buffers}
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    _expect_equal(path, {name: tuple(tensor.shape) for name, tensor in weights.items()}, shapes)
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name}: expected finite weights, got NaN or infinity in {path}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
        for name in buffers.keys() & tensors.keys():
            set_buffer(model, name, tensors[name])


def _expect_equal(path: Path, got: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name in sorted(got.keys() | expected.keys()):
        have, want = (values.get(name, "nothing") for values in (got, expected))
        if have != want:
            raise ValueError(f"{name}: expected {want}, got {have} in {path}")


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _that_must_stay(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in MAY_DIFFER}
