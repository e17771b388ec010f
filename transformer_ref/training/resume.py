"""An unfinished training run in one safetensors file, and how it is continued (chapter 10)."""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_ref.checkpoint import expect_equal, load_weights, read_tensors, reading_header, state_of, write_tensors
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.machine import kind_of_machine
from transformer_ref.model_state import plain_names, unwrapped
from transformer_ref.training.trainer import Training, schedule_progress, share_done

# when a training is resumed
MAY_DIFFER = ("steps", "minutes", "grad_accumulation_steps", "num_validations", "patience", "muon_precision")
RATES = ("learning_rate", "muon_rate", "max_grad_norm")  # may differ, too, if the caller says so
TRAINING_FILE = "training.safetensors"


def save_training(folder: str | Path, training: Training) -> Path:
    """Write everything that `load_training` needs to continue exactly where this training is."""
    tensors = {f"model.{name}": tensor for name, tensor in state_of(training.model).items()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in training.optimizer.tensors().items()}
    tensors["losses"] = torch.tensor(training.losses, dtype=torch.float64)
    header = {
        "config": training.config.to_dict(),
        "step": training.step,
        "seconds": training.seconds,
        "schedule_from": training.schedule_from,
        "tokens": training.tokens,
        "validations": training.validations,
        "patience_from": training.patience_from,
        "epoch": training.stream.epoch,
        "position": training.stream.position,
        "data_sha256": training.stream.sha256,
        "machine": _machine(training),
    }
    model = unwrapped(training.model)
    if config := getattr(model, "config", None):
        header["model"] = config.to_dict()
    if code := getattr(model, "code", None):
        header["code_sha256"] = code.sha256
    if training.average:
        tensors |= {f"average.{name}": tensor for name, tensor in training.average.means.items()}
        header["average_updates"] = training.average.updates
    return write_tensors(Path(folder) / TRAINING_FILE, tensors, header)


def load_training(folder: str | Path, training: Training, new_rates: Collection[str] = ()) -> list[str]:
    """Set a new training to the state of the saved one; its length and the use of memory may differ.

    A precision "auto" becomes the saved one, except on another kind of machine, which chooses again.
    With another length, the rest of the schedule is stretched over the rest of the training. A learner's code may have
    been edited, as long as its weights have the same names and shapes. new_rates: those of RATES that may differ, too,
    such as after a loss that was not finite; a rate of 0 stays 0. Returns a sentence for each such difference.
    Raises FileNotFoundError, or ValueError naming the field that does not fit, such as the corpus: a tokenizer learned
    from another text gives the same ids to other words.
    """
    path = Path(folder) / TRAINING_FILE
    mapped, header = read_tensors(path)
    tensors = {name: tensor.clone() for name, tensor in mapped.items()}  # Windows replaces no file that is still mapped
    del mapped
    with reading_header(path):
        saved = TrainingConfig.from_dict(header["config"]).to_dict()
        counts = {name: header[name] for name in ("step", "seconds", "tokens", "validations", "epoch", "position")}
    on_another = header.get("machine", _machine(training)) != _machine(training)
    for name in ("precision", "muon_precision"):
        if getattr(training.config, name) == "auto":
            if on_another:  # which may be many times slower in what the first one chose
                saved[name] = "auto"
            training.config = dataclasses.replace(training.config, **{name: saved[name]})
    config = training.config.to_dict()
    rates = [name for name in RATES if name in new_rates and saved[name] != config[name] and saved[name] * config[name]]
    must_stay = config.keys() - {*MAY_DIFFER, *rates}
    expect_equal(path, {name: saved[name] for name in must_stay}, {name: config[name] for name in must_stay})
    model = unwrapped(training.model)
    own = getattr(model, "code", None)
    code = header.get("code_sha256", "nothing")
    expect_equal(path, {"model": _whose(code != "nothing")}, {"model": _whose(own is not None)})
    _expect_same_beginning(path, header, training)
    load_weights(path, model, _part(tensors, "model."))
    training.optimizer.load_tensors(_part(tensors, "optimizer."))
    if training.average:
        for name, mean in plain_names(_part(tensors, "average."), training.average.means).items():
            training.average.means[name].copy_(mean)
        training.average.updates = header["average_updates"]
    training.step, training.seconds, training.tokens = counts["step"], counts["seconds"], counts["tokens"]
    training.saved_step = training.step
    training.stream.epoch, training.stream.position = counts["epoch"], counts["position"]
    training.losses = tensors["losses"].tolist()
    training.validations = [(step, loss) for step, loss in counts["validations"]]
    # without patience, the best model was not kept
    training.patience_from = header.get("patience_from", 0) if saved["patience"] else len(training.validations)
    notes = [f"{name} is {config[name]:g} from here on, after {saved[name]:g} until now" for name in rates]
    notes += _settle_schedule(training, header)
    if own and code != own.sha256:
        notes.append(f"{own.name} has changed since this training was saved; its weights still fit, so it goes on")
    return notes


def _expect_same_beginning(path: Path, header: Mapping[str, Any], training: Training) -> None:
    """Raise ValueError if the saved model has another configuration, or the saved training other data.

    Files of earlier versions lack one or both, which is then not compared. The sizes of the vocabularies follow from
    the data, and `load_weights` compares them, too.
    """
    config = getattr(unwrapped(training.model), "config", None)
    try:
        if config and "model" in header:
            with reading_header(path):
                saved = ModelConfig.from_dict(header["model"])
            sizes = {name: getattr(config, name) for name in ("source_vocabulary", "target_vocabulary")}
            expect_equal(path, saved.to_dict() | sizes, config.to_dict())
        data = training.stream.sha256
        expect_equal(path, {"data_sha256": header.get("data_sha256", data)}, {"data_sha256": data})
    except ValueError as error:
        raise ValueError(f"{error}; resume with the options that the training began with, including --from") from error


def _whose(own: bool) -> str:
    return "your own" if own else "the package's"


def _settle_schedule(training: Training, header: Mapping[str, Any]) -> list[str]:
    """Continue the saved schedule; return a remark if the training has another length now."""
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


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
