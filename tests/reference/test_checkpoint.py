"""A checkpoint is one file that needs no other, and a damaged one is reported in one line."""

import dataclasses
import json
import os
import stat
import time

import pytest
import torch
from drawn import generator, ids, tiny_config
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from transformer_ref import checkpoint
from transformer_ref.checkpoint import MODEL_FILE, load_checkpoint, save_checkpoint
from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.training import resume
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.resume import TRAINING_FILE, load_training, save_training
from transformer_ref.training.trainer import Training

SOURCE = WordTokenizer.build(["I closed the windows ."])
TARGET = WordTokenizer.build(["Ho chiuso le finestre : è l'una"])


def model(**changes) -> Transformer:
    sizes = {"source_vocabulary": SOURCE.size, "target_vocabulary": TARGET.size}
    return Transformer(tiny_config(**{**sizes, **changes}), generator(1)).eval()


def training(**changes) -> Training:
    network, config = model(), TrainingConfig(steps=3, **changes)
    stream = BatchStream([[4, 5], [6]], [[4], [5, 6]], 8, 0, 1, 2, config.seed)
    return Training(network, build_optimizer(network, config), stream, config, MeanLoss(0, config.label_smoothing))


@pytest.fixture
def folder(tmp_path):
    save_checkpoint(tmp_path / "deep" / "down", model(), SOURCE, TARGET, {"corpus": "grammar", "step": 7})
    return tmp_path / "deep" / "down"


def test_what_was_saved_comes_back(folder):
    loaded = load_checkpoint(folder)
    source, target = ids(1, 2, 5, low=4), ids(2, 2, 3, low=4)
    assert loaded.model(source, target).equal(model()(source, target))
    assert loaded.model.config == model().config and not loaded.model.training
    assert loaded.notes == {"corpus": "grammar", "step": 7}
    assert loaded.source_tokenizer.encode("closed windows") == SOURCE.encode("closed windows")
    assert loaded.target_tokenizer.decode(TARGET.encode("è l'una")) == "è l'una"


def test_tied_tables_stay_tied(tmp_path):
    save_checkpoint(tmp_path, model(target_vocabulary=SOURCE.size, tie_embeddings=True), SOURCE, SOURCE, {})
    loaded = load_checkpoint(tmp_path).model
    assert loaded.output.weight is loaded.source_embedding.weight is loaded.target_embedding.weight


def test_the_file_itself_may_be_named_instead_of_its_folder(folder):
    assert load_checkpoint(folder / MODEL_FILE).notes["step"] == 7


def test_saving_again_replaces_the_file_and_leaves_no_other(folder):
    save_checkpoint(folder, model(), SOURCE, TARGET, {"step": 8})
    assert load_checkpoint(folder).notes == {"step": 8}
    assert [path.name for path in folder.iterdir()] == [MODEL_FILE]


def test_a_save_that_fails_leaves_the_old_checkpoint_and_nothing_else(folder):
    with pytest.raises(TypeError):
        save_checkpoint(folder, model(), SOURCE, TARGET, {"step": object()})
    assert load_checkpoint(folder).notes["step"] == 7
    assert [path.name for path in folder.iterdir()] == [MODEL_FILE]


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"expected the file .*{MODEL_FILE}"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("kept", [0, 5, 100, -50])
def test_a_truncated_checkpoint_is_refused(folder, kept):
    path = folder / MODEL_FILE
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match="checkpoint: expected a complete safetensors file"):
        load_checkpoint(folder)


def test_a_foreign_file_is_refused(tmp_path):
    save_file({"weight": torch.zeros(2)}, tmp_path / MODEL_FILE)
    with pytest.raises(ValueError, match="checkpoint: expected a config"):
        load_checkpoint(tmp_path)


def rewritten(folder, tensors=None, **header):
    """Write a checkpoint's file again with other tensors and other entries of the header; None takes one away."""
    path = folder / MODEL_FILE
    with safe_open(path, framework="pt") as file:
        metadata = {name: value for name, value in {**file.metadata(), **header}.items() if value is not None}
    save_file({**load_file(path), **(tensors or {})}, path, metadata=metadata)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"notes": None}, "with no 'notes'"),
        ({"notes": "7"}, "with 'int' object is not iterable"),
        ({"source_tokenizer": None}, "with no 'source_tokenizer'"),
        ({"source_tokenizer": "{}"}, "with the JSON object must be"),
        ({"target_tokenizer": '"{}"'}, "with no 'kind'"),
        ({"config": "[]"}, "with .*must be a mapping, not list"),
        (
            {"config": '{"source_vocabulary": "many", "target_vocabulary": 9}'},
            "with source_vocabulary: expected int, got",
        ),
        ({"config": "nonsense"}, "expected a complete safetensors file"),
    ],
)
def test_a_damaged_header_is_one_sentence_that_names_the_file(header, words, folder):
    rewritten(folder, **header)
    with pytest.raises(ValueError, match=words) as error:
        load_checkpoint(folder)
    assert str(folder / MODEL_FILE) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused_by_their_name(bad, folder):
    weight = model().output.weight.detach().clone()
    weight[1, 2] = bad
    rewritten(folder, {"output.weight": weight})
    with pytest.raises(ValueError, match="output.weight: expected finite weights, got NaN or infinity in"):
        load_checkpoint(folder)


def test_a_damaged_training_is_one_sentence_too(tmp_path):
    path = save_training(tmp_path, training())
    save_file(load_file(path), path, metadata={"config": json.dumps(TrainingConfig(steps=3).to_dict())})
    with pytest.raises(ValueError, match=f"expected the header of a checkpoint, got {path} with no 'step'"):
        load_training(tmp_path, training())


def test_what_the_disk_cannot_hold_is_an_error_of_the_system_that_names_the_file(folder, monkeypatch):
    def full(tensors, path, metadata):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(OSError, match=f"expected to write {folder / MODEL_FILE}, got: .*No space left on device"):
        save_checkpoint(folder, model(), SOURCE, TARGET, {})


def test_a_config_other_than_expected_is_refused_by_its_field(folder):
    wanted = dataclasses.replace(model().config, d_ff=99)
    with pytest.raises(ValueError, match="d_ff: expected 99, got 20"):
        load_checkpoint(folder, expected=wanted)


def test_a_tokenizer_of_another_size_is_refused_by_its_field(tmp_path):
    save_checkpoint(tmp_path, model(), TARGET, TARGET, {})
    with pytest.raises(ValueError, match=f"source_vocabulary: expected {SOURCE.size}, got {TARGET.size}"):
        load_checkpoint(tmp_path)


def test_a_weight_of_another_shape_is_refused_by_its_name(folder):
    path = folder / MODEL_FILE
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    tensors = load_file(path)
    tensors["output.weight"] = tensors["output.weight"][:-1].clone()
    save_file(tensors, path, metadata=header)
    with pytest.raises(ValueError, match=r"output.weight: expected \(\d+, 12\), got"):
        load_checkpoint(folder)


def test_a_training_with_another_setting_is_not_resumed(tmp_path):
    save_training(tmp_path, training())
    with pytest.raises(ValueError, match=r"learning_rate: expected 0.5, got 0.004"):
        load_training(tmp_path, training(learning_rate=0.5))


def test_a_rate_may_change_on_a_resume_if_it_is_named(tmp_path):
    save_training(tmp_path, training())
    resumed = training(learning_rate=0.5, max_grad_norm=2.0)
    with pytest.raises(ValueError, match=r"max_grad_norm: expected 2.0, got 1.0"):
        load_training(tmp_path, resumed, ["learning_rate", "seed"])
    with pytest.raises(ValueError, match=r"seed: expected 5, got 1"):
        load_training(tmp_path, training(seed=5), ["learning_rate", "seed"])
    assert load_training(tmp_path, resumed, ["learning_rate", "max_grad_norm"]) == [
        "learning_rate is 0.5 from here on, after 0.004 until now",
        "max_grad_norm is 2 from here on, after 1 until now",
    ]
    assert resumed.optimizer.optimizers[0].param_groups[0]["lr"] == 0.5


def test_a_training_may_be_resumed_for_longer(tmp_path):
    stopped = training()
    stopped.step, stopped.seconds, stopped.stream.epoch, stopped.stream.position = 2, 1.5, 3, 1
    save_training(tmp_path, stopped)
    network, config = model(), TrainingConfig(steps=30, minutes=2.0)
    longer = Training(network, build_optimizer(network, config), training().stream, config, MeanLoss(0))
    load_training(tmp_path, longer)
    assert (longer.step, longer.seconds, longer.stream.epoch, longer.stream.position) == (2, 1.5, 3, 1)


def test_auto_is_resumed_as_what_it_stood_for(tmp_path):
    save_training(tmp_path, training(precision="bf16"))
    resumed = training(precision="auto")
    load_training(tmp_path, resumed)
    assert resumed.config.precision == "bf16"
    with pytest.raises(ValueError, match="precision: expected fp32, got bf16"):
        load_training(tmp_path, training(precision="fp32"))


@pytest.mark.parametrize("name", ["precision", "muon_precision"])
def test_auto_is_decided_anew_on_another_kind_of_machine(name, tmp_path, monkeypatch):
    save_training(tmp_path, training(**{name: "bf16"}))
    same, other = (training(**{name: "auto"}) for _ in range(2))
    load_training(tmp_path, same)
    monkeypatch.setattr(resume, "kind_of_machine", lambda device: "x86_64 with other units")
    load_training(tmp_path, other)
    assert (getattr(same.config, name), getattr(other.config, name)) == ("bf16", "auto")


def test_muon_may_multiply_in_another_precision_from_a_resume_on(tmp_path):
    save_training(tmp_path, training(muon_precision="bf16"))
    resumed = training(muon_precision="fp32")
    load_training(tmp_path, resumed)
    assert resumed.config.muon_precision == "fp32"


def test_a_truncated_training_is_refused(tmp_path):
    path = save_training(tmp_path, training())
    path.write_bytes(path.read_bytes()[:-9])
    assert path.name == TRAINING_FILE
    with pytest.raises(ValueError, match="checkpoint: expected a complete safetensors file"):
        load_training(tmp_path, training())


def test_a_training_does_not_go_on_with_other_data_and_does_with_a_file_that_does_not_know_its_own(tmp_path):
    path, other = save_training(tmp_path, training()), training()
    other.stream = BatchStream([[4, 5], [6]], [[5], [4, 6]], 8, 0, 1, 2, other.config.seed)
    with pytest.raises(ValueError, match="data_sha256: expected .*, got .* in "):
        load_training(tmp_path, other)
    with safe_open(path, framework="pt") as file:
        header = {name: text for name, text in file.metadata().items() if name != "data_sha256"}
    save_file(load_file(path), path, metadata=header)
    load_training(tmp_path, other)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"d_ff": 40_000_000}, r"config: expected the sizes of the [\d,]+ weights in .*, got those of a model with"),
        ({"encoder_layers": 1_000_000}, r"with 1,000,00\d layers"),
        ({"max_length": 10**9}, r"max_length: expected at most [\d,]+ positions at d_model \d+, got 1,000,000,000"),
    ],
)
def test_a_small_file_that_names_a_huge_model_is_refused_at_once(folder, changes, expected):
    with safe_open(folder / MODEL_FILE, framework="pt") as file:
        header = dict(file.metadata())
    header["config"] = json.dumps(json.loads(header["config"]) | changes)
    save_file(load_file(folder / MODEL_FILE), folder / MODEL_FILE, metadata=header)
    began = time.process_time()
    with pytest.raises(ValueError, match=expected):
        load_checkpoint(folder)
    assert time.process_time() - began < 5


def test_a_name_in_a_file_cannot_move_the_cursor(folder):
    tensors = load_file(folder / MODEL_FILE)
    with safe_open(folder / MODEL_FILE, framework="pt") as file:
        header = dict(file.metadata())
    save_file({**tensors, "\x1b[2J": torch.ones(1)}, folder / MODEL_FILE, metadata=header)
    with pytest.raises(ValueError) as found:
        load_checkpoint(folder)
    assert "\x1b" not in str(found.value) and r"\x1b[2J" in str(found.value)


def test_a_training_of_another_model_is_not_resumed_even_if_every_weight_fits(tmp_path):
    def of(**changes: object) -> Training:
        network, config = model(**changes), TrainingConfig(steps=3)
        return dataclasses.replace(training(), model=network, optimizer=build_optimizer(network, config))

    path = save_training(tmp_path, of(heads=4, d_model=8))
    for changes, words in (
        ({"heads": 2}, "heads: expected 2, got 4 in .*; resume with the options that the training began with"),
        ({"dropout": 0.7}, "dropout: expected 0.7, got 0.1"),
        ({"max_length": 31}, "max_length: expected 31, got"),
        ({"norm_first": True}, "norm_first: expected True, got False"),
        ({"activation": "gelu"}, "activation: expected gelu, got relu"),
        ({"d_ff": 12}, "d_ff: expected 12, got"),
    ):
        with pytest.raises(ValueError, match=words):
            load_training(tmp_path, of(**{"heads": 4, "d_model": 8, **changes}))
    load_training(tmp_path, of(heads=4, d_model=8))
    with safe_open(path, framework="pt") as file:
        header = {name: text for name, text in file.metadata().items() if name != "model"}
    save_file(load_file(path), path, metadata=header)
    load_training(tmp_path, of(heads=2, d_model=8))  # a file of an earlier version does not know its model


def test_a_colleague_can_read_a_new_file_and_an_old_one_keeps_its_rights(tmp_path):
    before = os.umask(0o022)
    try:
        paths = [save_checkpoint(tmp_path, model(), SOURCE, TARGET, {}), save_training(tmp_path, training())]
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o644, 0o644]
    paths[0].chmod(0o640)
    save_checkpoint(tmp_path, model(), SOURCE, TARGET, {})
    assert stat.S_IMODE(paths[0].stat().st_mode) == 0o640


def test_equal_models_give_equal_files(tmp_path):
    notes = {"corpus": 'a "ü\n\x01\x7f\u2028 \U0001f600', "step": 7}
    files = {save_checkpoint(tmp_path / str(i), model(), SOURCE, TARGET, notes).read_bytes() for i in range(5)}
    assert len(files) == 1 and load_checkpoint(tmp_path / "4").notes == notes
