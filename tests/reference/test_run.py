"""A corpus becomes a checkpoint, and whatever cuts that off leaves a training run that can go on."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from transformer_ref.checkpoint import load_checkpoint
from transformer_ref.config import TrainingConfig
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.training import run as run_module
from transformer_ref.training.processes import Processes
from transformer_ref.training.resume import TRAINING_FILE, load_training
from transformer_ref.training.run import prepare, save_model, train
from transformer_ref.training.trainer import Progress

LINES = Parallel([f"one two {word}" for word in ("cat", "dog", "key", "sea")] * 3, ["uno due gatto cane"] * 12)


def begun():
    config = TrainingConfig(steps=4, warmup_steps=1, num_validations=2, ema_decay=0.9)
    return prepare("grammar", LINES, LINES, ("en", "it"), config, torch.device("cpu"))


def test_a_training_is_saved_soon_then_ever_more_rarely_until_it_is_every_two_minutes(tmp_path, monkeypatch):
    saved = []

    def each_second(training, on_step):
        for second in range(1, 501):
            training.step, training.seconds = second, float(second)
            on_step(Progress(second, 0.0, 1.0, 1, float(second)))

    monkeypatch.setattr(run_module, "fit", each_second)
    monkeypatch.setattr(run_module, "save_training", lambda output, training: saved.append(training.seconds))
    train(begun(), tmp_path, [])
    assert saved == [6, 13, 27, 55, 111, 223, 344, 465, 500]  # a second after each time, and at the end


def test_a_card_of_another_model_does_not_outlive_it(tmp_path):
    for name in ("run.json", "run.md", "curves.svg"):
        (tmp_path / name).write_text("of another model")
    save_model(begun(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_validation_that_is_cut_off_saves_the_weights_that_were_learned(tmp_path, monkeypatch):
    def cut_off(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "validation_loss", cut_off)
    run = begun()
    with pytest.raises(KeyboardInterrupt):
        train(run, tmp_path, [])
    saved = load_file(tmp_path / TRAINING_FILE)
    monkeypatch.setattr(run_module, "validation_loss", lambda *given: 1.0)
    whole = begun()
    learned = {}

    class Watcher:
        def __call__(self, progress):
            if progress.step == run.training.step:
                learned.update((name, each.detach().clone()) for name, each in whole.training.model.named_parameters())

        def validated(self, progress, loss): ...

    train(whole, tmp_path / "whole", [Watcher()])
    assert run.training.step == 2
    assert all(saved[f"model.{name}"].equal(each) for name, each in learned.items())
    means = run.training.average.means
    assert any(not saved[f"model.{name}"].equal(mean) for name, mean in means.items())


def test_a_validation_needs_no_more_memory_than_a_step(monkeypatch):
    run = begun()
    whole = [batch.source.shape for batch in run.validation.one_epoch()]
    loss = run_module.validation_loss(run.training.model, run.validation.one_epoch(), 0)
    for accumulation, count, logits in ((1, 1, 2**26), (3, 1, 2**26), (2, 2, 2**26), (1, 1, 300)):
        monkeypatch.setattr(run_module, "MOST_LOGITS", logits)
        run.training.config = replace(run.training.config, grad_accumulation_steps=accumulation)
        run.training.processes = Processes(0, count)
        pieces = list(run_module._pieces(run))
        rows = -(-max(shape[0] for shape in whole) // (accumulation * count))
        assert max(len(piece.source) for piece in pieces) <= rows
        assert all(
            len(piece.source) == 1 or piece.target_labels.numel() * run.target_tokenizer.size <= logits + 300
            for piece in pieces
        )
        assert sum(len(piece.source) for piece in pieces) == sum(shape[0] for shape in whole)
        in_pieces = run_module.validation_loss(run.training.model, pieces, 0)
        assert in_pieces == pytest.approx(loss, rel=1e-5)


def test_early_stopping_remembers_over_a_resume_what_was_best(tmp_path, monkeypatch):
    scores = iter([3.0, 2.0, 2.5, 2.6, 2.7, 1.0, 1.0])
    monkeypatch.setattr(run_module, "validation_loss", lambda *given: next(scores))

    def begin(steps):
        config = TrainingConfig(steps=steps, warmup_steps=1, num_validations=8, patience=3)
        return prepare("grammar", LINES, LINES, ("en", "it"), config, torch.device("cpu"))

    first = begin(8)
    with pytest.raises(KeyboardInterrupt):
        train(first, tmp_path, [Stop(after=3)])
    best = (tmp_path / "model.safetensors").read_bytes()  # of step 2
    second = begin(8)
    load_training(tmp_path, second.training)
    train(second, tmp_path, [])
    assert second.training.step == 5 and [loss for _, loss in second.training.validations] == [3.0, 2.0, 2.5, 2.6, 2.7]
    assert (tmp_path / "model.safetensors").read_bytes() == best
    third = begin(8)
    load_training(tmp_path, third.training)
    train(third, tmp_path, [])  # it has ended: no step more
    assert third.training.step == 5 and (tmp_path / "model.safetensors").read_bytes() == best


@pytest.mark.parametrize("interrupted", [True, False])
def test_patience_that_begins_with_a_resume_counts_from_there_and_always_leaves_a_model(
    interrupted, tmp_path, monkeypatch
):
    scores = iter([1.0, 2.0, 3.0, 2.5, 2.6, 2.7, 2.8])
    monkeypatch.setattr(run_module, "validation_loss", lambda *given: next(scores))

    def begin(patience):
        config = TrainingConfig(steps=8, warmup_steps=1, num_validations=8, patience=patience)
        return prepare("grammar", LINES, LINES, ("en", "it"), config, torch.device("cpu"))

    first = begin(0)
    with pytest.raises(KeyboardInterrupt):
        train(first, tmp_path, [Stop(after=3)])
    if not interrupted:  # killed: the state was saved, but no model
        (tmp_path / "model.safetensors").unlink()
    for stop in (4, 5, None):  # the best since patience began is that of step 4
        resumed = begin(2)
        load_training(tmp_path, resumed.training)
        if stop:
            with pytest.raises(KeyboardInterrupt):
                train(resumed, tmp_path, [Stop(after=stop)])
        else:
            train(resumed, tmp_path, [])
            assert resumed.training.step == 6
        assert step_of_model(tmp_path) == 4


def test_patience_saves_the_current_model_if_the_folder_has_none(tmp_path, monkeypatch):
    scores = iter([1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(run_module, "validation_loss", lambda *given: next(scores))

    def begin():
        config = TrainingConfig(steps=4, warmup_steps=1, num_validations=4, patience=2)
        return prepare("grammar", LINES, LINES, ("en", "it"), config, torch.device("cpu"))

    train(begin(), tmp_path, [])
    assert step_of_model(tmp_path) == 1
    (tmp_path / "model.safetensors").unlink()
    resumed = begin()
    load_training(tmp_path, resumed.training)
    train(resumed, tmp_path, [])
    assert step_of_model(tmp_path) == resumed.training.step == 4


def step_of_model(folder):
    return load_checkpoint(folder).notes["step"]


class Stop:
    def __init__(self, after):
        self.after = after

    def __call__(self, progress):
        pass

    def validated(self, progress, loss):
        if progress.step == self.after:
            raise KeyboardInterrupt
