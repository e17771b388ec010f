"""One right step, a fit that learns, stops, and goes on exactly where it was."""

import itertools
import math
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from drawn import generator, tiny_config
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer_ref import machine
from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import Batch, BatchStream
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.fast.loss import PackedLoss
from transformer_ref.learner.own_file import OwnCodeError
from transformer_ref.model.transformer import Transformer
from transformer_ref.training import trainer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.gradients import DivergedError, Gradients, TrainingError
from transformer_ref.training.interrupt import interrupts_held_back
from transformer_ref.training.loss import MeanLoss, masked_cross_entropy
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.processes import Processes
from transformer_ref.training.resume import load_training, save_training
from transformer_ref.training.trainer import Training, fit, train_step, validation_loss

VOCABULARY = 17


def stream(seed: int = 3) -> BatchStream:
    """Return sentences whose translation is their words in reverse, each plus one."""
    drawn = torch.Generator().manual_seed(9)
    sources = [torch.randint(4, VOCABULARY - 1, (1 + i % 6,), generator=drawn).tolist() for i in range(40)]
    return BatchStream(sources, [[word + 1 for word in reversed(source)] for source in sources], 60, 0, 1, 2, seed)


def training(dropout: float = 0.1, **changes) -> Training:
    config = TrainingConfig(**{**dict(steps=14, warmup_steps=3, ema_decay=0.9), **changes})
    torch.manual_seed(config.seed)
    model = Transformer(
        tiny_config(source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, dropout=dropout), generator(config.seed)
    )
    average = WeightAverage(model, config.ema_decay) if config.ema_decay else None
    loss = MeanLoss(0, config.label_smoothing)
    return Training(model, build_optimizer(model, config), stream(), config, loss, average)


def losses(run: Training, stop_after: int | None = None) -> list[float]:
    """Return the loss of each step; Ctrl-C is pressed after `stop_after` of them."""
    seen = []

    def watch(progress):
        torch.rand(3)  # what a callback draws changes nothing
        seen.append(progress.loss)
        if len(seen) == stop_after:
            raise KeyboardInterrupt

    try:
        fit(run, watch)
    except KeyboardInterrupt:
        pass
    return seen


class Spy:
    """An optimizer that records its calls and the gradients."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.calls, self.norm = model, [], math.nan

    def zero_grad(self) -> None:
        self.calls.append("zero_grad")
        for parameter in self.model.parameters():
            parameter.grad = None

    def step(self) -> None:
        self.calls.append("step")
        self.norm = (
            torch.cat([each.grad.flatten() for each in self.model.parameters() if each.grad is not None]).norm().item()
        )


def test_a_step_clears_then_clips_then_moves():
    run = training()
    run.model.eval()
    for parameter in run.model.parameters():
        parameter.grad = torch.full_like(parameter, 100.0)
    spy = Spy(run.model)
    result = train_step(run.model, next(iter(run.stream)), spy, MeanLoss(0), max_grad_norm=0.25)
    assert spy.calls == ["zero_grad", "step"] and run.model.training
    assert 0.25 < result.gradient_norm < 50
    assert spy.norm == pytest.approx(0.25, rel=1e-4)


def test_a_step_tells_loss_and_real_tokens():
    run = training(dropout=0.0)
    batch = next(iter(run.stream))
    expected = masked_cross_entropy(run.model(batch.source, batch.target_input), batch.target_labels, 0).item()
    result = train_step(run.model, batch, Spy(run.model), MeanLoss(0), max_grad_norm=1.0)
    assert result.loss == pytest.approx(expected) and result.tokens == (batch.target_labels != 0).sum()
    assert isinstance(result.loss, float)


def test_without_padding_and_piece_by_piece_the_step_is_the_same():
    run, twin = training(dropout=0.0), training(dropout=0.0)
    batch = next(iter(run.stream))
    results = [
        train_step(each.model, batch, Spy(each.model), loss(0, 0.1), max_grad_norm=1.0)
        for each, loss in ((run, PackedLoss), (twin, MeanLoss))
    ]
    assert results[0].loss == pytest.approx(results[1].loss)
    for mine, other in zip(run.model.parameters(), twin.model.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-6)


def test_a_loss_that_is_no_number_stops_the_training_before_the_weights_move():
    run = training()
    with torch.no_grad():
        next(run.model.parameters())[5:] = math.nan
    spy = Spy(run.model)
    with pytest.raises(DivergedError, match="loss: expected a finite number, got nan"):
        train_step(run.model, next(iter(run.stream)), spy, MeanLoss(0), max_grad_norm=1.0)
    assert "step" not in spy.calls


def test_a_gradient_that_is_no_number_stops_the_training_before_the_weights_move(monkeypatch):
    run = training()
    spy = Spy(run.model)
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda parameters, clip: torch.tensor(math.inf))
    with pytest.raises(DivergedError, match="gradient: expected a finite number, got inf"):
        train_step(run.model, next(iter(run.stream)), spy, MeanLoss(0), max_grad_norm=1.0)
    assert "step" not in spy.calls


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
    ],
)
def test_too_little_memory_names_the_batch_and_the_way_out_and_leaves_the_training_whole(words, monkeypatch):
    run = training()
    before = [parameter.clone() for parameter in run.model.parameters()]

    def too_little(*arguments):
        raise RuntimeError(words)

    monkeypatch.setattr(run.model, "hidden", too_little)
    with pytest.raises(TrainingError, match=r"memory: expected room for \d+ sentences of \d+ .* accumulation"):
        fit(run)
    assert (run.step, run.stream.epoch, run.stream.position) == (0, 0, 0)
    assert all(old.equal(new) for old, new in zip(before, run.model.parameters(), strict=True))


def test_another_failure_is_not_called_a_lack_of_memory(monkeypatch):
    run = training()

    def broken(*arguments):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(run.model, "hidden", broken)
    with pytest.raises(RuntimeError) as caught:
        fit(run)
    assert caught.type is RuntimeError


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4))
def test_processes_and_parts_share_the_rows_of_a_batch_and_nothing_is_lost_or_read_twice(rows, parts, count):
    batch = stream().batch(range(rows))
    pieces = list(itertools.chain(*(Processes(rank, count).rows(batch, parts) for rank in range(count))))
    assert len(pieces) <= parts * count and all(len(piece.source) for piece in pieces)
    for whole, cut in zip(batch, zip(*pieces, strict=True), strict=True):
        assert sorted(torch.cat(cut).tolist()) == sorted(whole.tolist())


@pytest.mark.parametrize("parts", [2, 5, 100])
def test_a_batch_read_in_parts_makes_the_same_step(parts):
    whole, cut = training(dropout=0.0), training(dropout=0.0)
    batch = whole.stream.batch([5, 0, 3, 11, 8, 2, 7])  # of different lengths, so that parts weigh differently
    results = [
        train_step(run.model, batch, run.optimizer, MeanLoss(0, 0.1), 1.0, Gradients(parts=each))
        for run, each in ((whole, 1), (cut, parts))
    ]
    assert results[0].loss == pytest.approx(results[1].loss, rel=1e-6)
    assert results[0].gradient_norm == pytest.approx(results[1].gradient_norm, rel=1e-5)
    assert results[0].tokens == results[1].tokens
    for one, other in zip(whole.model.parameters(), cut.model.parameters(), strict=True):
        # AdamW and Muon divide by the gradient's size, which lifts rounding in gradients near zero
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-7)


def test_training_never_imports_decoding():
    folder = Path(trainer.__file__).parent
    assert not [path.name for path in folder.glob("*.py") if "decoding" in path.read_text(encoding="utf-8")]


def test_fit_needs_no_transformer():
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(VOCABULARY, VOCABULARY)

        def forward(self, source, target_input):
            return self.table(target_input)

    model, config = Counts(), TrainingConfig(steps=5, muon_rate=0.0)
    before = model.table.weight.detach().clone()
    run = Training(model, build_optimizer(model, config), stream(), config, MeanLoss(0))
    fit(run)
    assert run.step == 5 and not model.table.weight.equal(before)


def test_an_overfitted_model_says_every_sentence_right_greedily():
    run = training(dropout=0.0, steps=220, warmup_steps=20, ema_decay=0.0, label_smoothing=0.0)
    run.stream.sources, run.stream.targets, run.stream.lengths = (
        part[:8] for part in (run.stream.sources, run.stream.targets, run.stream.lengths)
    )
    fit(run)
    run.model.eval()
    batch = run.stream.batch(range(8))
    decoded = greedy_decode(run.model, batch.source, 9)
    right = sum(
        row[1 : 1 + len(target)].tolist() == target and row[1 + len(target)] == 2
        for row, target in zip(decoded, run.stream.targets, strict=True)
    )
    assert right == 8


def test_equal_seeds_train_alike_and_other_seeds_do_not():
    assert losses(training()) == losses(training()) != losses(training(seed=2))


@pytest.mark.parametrize("stop_after", [1, 5, 9])
@pytest.mark.parametrize("settings", [{"muon_rate": 0.0}, {"muon_rate": 6e-3}, {"precision": "bf16"}])
def test_a_resumed_training_has_the_losses_of_an_uninterrupted_one(tmp_path, stop_after, settings):
    whole = training(**settings)
    expected = losses(whole)
    stopped = training(**settings)
    first = losses(stopped, stop_after)
    save_training(tmp_path, stopped)
    torch.manual_seed(12345)
    resumed = training(**settings)
    load_training(tmp_path, resumed)
    torch.rand(0)
    assert first + losses(resumed) == expected == resumed.losses and len(expected) == 14
    assert resumed.tokens == whole.tokens > 0
    assert all(a.equal(b) for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True))
    assert all(whole.average.means[name].equal(mean) for name, mean in resumed.average.means.items())


def test_a_callback_that_says_so_ends_the_training():
    run = training()
    fit(run, lambda progress: progress.step == 4)
    assert run.step == 4 and len(run.losses) == 4


@pytest.mark.parametrize(
    ("schedule", "shares"),
    [
        ("inverse_sqrt", [0.5, *((2 / step) ** 0.5 for step in range(2, 9))]),
        ("linear", [0.5, *((9 - step) / 8 for step in range(2, 9))]),
    ],
)
def test_the_schedule_is_the_one_that_the_config_names(schedule, shares):
    run = training(schedule=schedule, steps=8, warmup_steps=2)
    rates = []
    fit(run, lambda progress: rates.append(run.optimizer.optimizers[0].param_groups[0]["lr"] / 4e-3))
    assert rates == pytest.approx(shares)


@pytest.fixture
def ctrl_c_is_heard():
    """A shell lets what it starts in the background ignore Ctrl-C; these tests press it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_within_a_step_is_heard_after_it_and_its_callback(number):
    expected = losses(training())
    run, heard = training(), []

    def press(*arguments):
        if run.step == 2:
            os.kill(os.getpid(), number)

    hook = run.model.encoder.register_forward_pre_hook(press)
    with pytest.raises(KeyboardInterrupt):
        fit(run, lambda progress: heard.append(progress.step))
    assert heard == [1, 2, 3] and run.step == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    hook.remove()
    losses(run)
    assert run.losses == expected


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_a_second_ctrl_c_is_not_held_back():
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("chosen", "name"), [(torch.bfloat16, "bf16"), (torch.float32, "fp32")])
def test_auto_is_decided_once_and_written_down(chosen, name, monkeypatch):
    monkeypatch.setattr(trainer, "choose_precision", lambda request, device: chosen)
    run = training(precision="auto", steps=1)
    fit(run)
    assert run.config.precision == name


@pytest.mark.parametrize("faster", ["bf16", "fp32"])
def test_muon_s_precision_is_decided_once_and_a_resumed_training_keeps_it(faster, tmp_path, monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, f"muon={faster}")
    run = training(steps=3)
    fit(run)
    assert run.config.muon_precision == run.optimizer.optimizers[1].precision == faster
    save_training(tmp_path, run)
    monkeypatch.setenv(machine.VARIABLE, "muon=" + {"bf16": "fp32", "fp32": "bf16"}[faster])
    resumed = training(steps=6)
    load_training(tmp_path, resumed)
    fit(resumed)
    assert resumed.config.muon_precision == resumed.optimizer.optimizers[1].precision == faster


def test_without_muon_its_precision_is_not_measured(monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, "muon=bf16")
    run = training(steps=1, muon_rate=0.0)
    fit(run)
    assert run.config.muon_precision == "auto"


def test_minutes_end_a_training_and_set_its_schedule():
    run = training(minutes=1e-4)  # six thousandths of a second
    shares = []
    fit(run, lambda progress: shares.append(progress.share))
    assert shares[-1] == 1 and shares == sorted(shares)
    rate = run.optimizer.optimizers[0].param_groups[0]["lr"]
    assert rate <= run.config.learning_rate


def test_validation_loss_is_averaged_over_tokens_without_dropout_or_smoothing():
    run = training(dropout=0.5)
    batches = list(run.stream.one_epoch())
    together = validation_loss(run.model, batches, 0)
    run.model.eval()
    sums = [
        masked_cross_entropy(run.model(batch.source, batch.target_input), batch.target_labels, 0).item()
        * int((batch.target_labels != 0).sum())
        for batch in batches
    ]
    tokens = sum(int((batch.target_labels != 0).sum()) for batch in batches)
    assert together == pytest.approx(sum(sums) / tokens, rel=1e-5) and len(batches) > 2


def test_the_average_of_weights_that_stand_still_is_the_weights():
    model = training().model
    average = WeightAverage(model, 0.9)
    for _ in range(5):
        average.update(model)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(average.means[name], parameter.detach())


def test_the_averaged_model_is_another_one():
    run = training()
    fit(run)
    before = {name: parameter.detach().clone() for name, parameter in run.model.named_parameters()}
    averaged = run.average.of(run.model)
    assert any(not parameter.equal(before[name]) for name, parameter in averaged.named_parameters())
    assert all(parameter.equal(run.average.means[name]) for name, parameter in averaged.named_parameters())
    assert all(parameter.equal(before[name]) for name, parameter in run.model.named_parameters())


def test_a_batch_goes_to_a_device_whole():
    batch = next(iter(stream())).to(torch.device("cpu"))
    assert isinstance(batch, Batch) and all(tensor.device.type == "cpu" for tensor in batch)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "inverse_sqrt"])
@pytest.mark.parametrize(("stop", "length"), [(6, 8), (6, 40), (14, 20), (14, 200), (6, 7)])
def test_a_resumed_training_of_another_length_goes_on_at_its_rate_and_never_rises(tmp_path, schedule, stop, length):
    def rates(run, stop=None):
        seen = []

        def watch(progress):
            seen.append(run.optimizer.optimizers[0].param_groups[0]["lr"])
            return len(seen) == stop

        fit(run, watch)
        return seen

    stopped = training(schedule=schedule)  # 14 steps
    before = rates(stopped, stop)
    save_training(tmp_path, stopped)
    longer = training(schedule=schedule, steps=length)
    (note,) = load_training(tmp_path, longer)
    assert "14 steps" in note and f"goes on to {length:,} steps" in note and ("was finished" in note) == (stop == 14)
    after = rates(longer, 1)
    save_training(tmp_path, longer)  # and resumed once more, at the same length
    again = training(schedule=schedule, steps=length)
    assert load_training(tmp_path, again) == []
    after += rates(again)
    assert len(before + after) == length
    falling = (before + after)[2:]  # after the warm-up
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(falling))
    assert all(rate > 0 for rate in after)


def test_minutes_after_a_finished_training_do_not_raise_the_rate(tmp_path):
    stopped = training(steps=6)
    fit(stopped)
    last = stopped.optimizer.optimizers[0].param_groups[0]["lr"]
    save_training(tmp_path, stopped)
    longer = training(minutes=10.0)
    (note,) = load_training(tmp_path, longer)
    assert "the training of 6 steps, which was finished goes on to 10 minutes" in note
    fit(longer, lambda progress: True)
    assert 0 < longer.optimizer.optimizers[0].param_groups[0]["lr"] <= last


@pytest.mark.parametrize("error", [RuntimeError("sizes do not match"), OwnCodeError("stopped"), MemoryError()])
def test_whatever_stops_a_step_the_batch_is_read_again(error):
    expected = losses(training())
    run = training()

    def stop(*arguments):
        if run.step == 5:
            raise error

    hook = run.model.encoder.register_forward_pre_hook(stop)
    with pytest.raises(type(error)):
        fit(run)
    hook.remove()
    fit(run)
    assert run.losses == expected
