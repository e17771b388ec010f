"""Training, decoding, evaluation and exports on a pretended CUDA device: nothing is left on the CPU, and the CPU waits
for the device at most twice a training step and once a decoded token."""

import copy
import itertools
from dataclasses import replace
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from drawn import generator, tiny_config
from own_transformer import own_file
from pretended_device import DEVICE, pretended_device

from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.sampling import sample_decode
from transformer_ref.faster import TrainingLoss, accelerate, top_k
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.learner.own_search import own_beam, own_greedy
from transformer_ref.learner.own_training import OwnLoss, new_own_model, own_hidden_matrices, rehearse
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.processes import Processes
from transformer_ref.training.resume import load_training, save_training
from transformer_ref.training.trainer import Training, fit, validation_loss

CPU = torch.device("cpu")
SIZES = tiny_config(source_vocabulary=23, target_vocabulary=23, tie_embeddings=True, decoder_layers=2, dropout=0.0)
SETTINGS = TrainingConfig(steps=3, tokens_per_batch=60, warmup_steps=2, ema_decay=0.9, precision="fp32")
WAITS_OF_A_STEP, WAITS_OF_A_TOKEN = 2, 1
WAITS_OF_A_SEARCH = 6  # to check its source, and to read what was found


@pytest.fixture
def log():
    with pretended_device() as log:
        yield log


def stream(settings: TrainingConfig = SETTINGS) -> BatchStream:
    drawn = generator(9)
    sources = [torch.randint(4, 23, (2 + i % 9,), generator=drawn).tolist() for i in range(60)]
    return BatchStream(sources, [each[::-1] for each in sources], settings.tokens_per_batch, 0, 1, 2, settings.seed)


def training(
    device: torch.device, settings: TrainingConfig = SETTINGS, loss: type[MeanLoss] = TrainingLoss
) -> Training:
    model = accelerate(Transformer(SIZES, generator(1)).to(device))
    average = WeightAverage(model, settings.ema_decay)
    return Training(
        model, build_optimizer(model, settings), stream(settings), settings, loss(0, settings.label_smoothing), average
    )


def waits_of_each_step(run: Training, log) -> list[int]:
    """Train to the end; the first step, in which "auto" is measured and memory is made, is left out."""
    counts = []

    def watch(progress):
        counts.append(log.waits())
        log.clear()

    fit(run, watch)
    return counts[1:]


@pytest.mark.parametrize(
    ("precision", "accumulation", "muon_rate", "loss"),
    [("fp32", 1, 6e-3, TrainingLoss), ("bf16", 2, 6e-3, TrainingLoss), ("fp32", 2, 0.0, MeanLoss)],
)
def test_a_training_step_waits_twice_at_most_and_learns_what_it_learns_on_the_cpu(
    log, precision, accumulation, muon_rate, loss
):
    settings = replace(SETTINGS, precision=precision, grad_accumulation_steps=accumulation, muon_rate=muon_rate)
    on_cpu, run = training(CPU, settings, loss), training(DEVICE, settings, loss)
    fit(on_cpu)
    waits = waits_of_each_step(run, log)
    assert len(waits) == 2 and max(waits) <= WAITS_OF_A_STEP
    # the batch is packed on the CPU only, and Muon may multiply in bf16
    assert run.losses == pytest.approx(on_cpu.losses, rel=2e-2)
    assert run.tokens == on_cpu.tokens
    assert all(each.device == DEVICE for each in [*run.model.parameters(), *run.average.means.values()])


@pytest.fixture
def two_processes(monkeypatch):
    """The first of two processes whose sums are its own numbers, as if the second had none."""

    def gather(everyones, share, async_op):
        everyones.copy_(share.repeat(2, 1, 1))
        return mock.Mock()

    monkeypatch.setattr(torch.distributed, "all_reduce", lambda total: None)
    monkeypatch.setattr(torch.distributed, "all_gather_into_tensor", gather)
    return Processes(0, 2)


def test_one_of_several_processes_waits_no_more_often_than_one_alone(log, two_processes):
    run = training(DEVICE)
    run.processes = two_processes
    run.optimizer = build_optimizer(run.model, SETTINGS, two_processes)
    waits = waits_of_each_step(run, log)
    assert len(waits) == 2 and max(waits) <= WAITS_OF_A_STEP


def test_what_is_done_for_all_parameters_takes_the_same_number_of_kernels_for_many(log):
    def kernels(layers: int) -> list[int]:
        model = Transformer(replace(SIZES, encoder_layers=layers), generator(1)).to(DEVICE)
        average, counts = WeightAverage(model, 0.9), []
        bf16_copy = BF16Copy(model)
        actions = bf16_copy.refreshed, lambda: bf16_copy.hand_over_gradients(), lambda: average.update(model)
        for action in actions:
            for parameter in bf16_copy.refreshed().parameters():
                parameter.grad = torch.zeros_like(parameter)
            log.clear()
            action()
            counts.append(sum(log.kernels.values()))
        return counts

    assert kernels(1) == kernels(4)


def test_the_next_batch_is_built_before_the_cpu_waits(log, monkeypatch):
    run, order, build = training(DEVICE, replace(SETTINGS, muon_rate=0.0)), [], BatchStream.batch
    monkeypatch.setattr(BatchStream, "batch", lambda *arguments: order.append("build") or build(*arguments))
    monkeypatch.setattr(type(log), "add", lambda self, kind, what: kind != "mask" and order.append("wait"))
    fit(run)
    assert order == ["build", "build", "wait", "build", "wait", "build", "wait"]


def test_only_attention_to_a_source_needs_a_mask_in_training(log):
    run = training(DEVICE, replace(SETTINGS, steps=1))
    fit(run)
    assert log.count("mask") == SIZES.encoder_layers + SIZES.decoder_layers  # none in the decoder's self-attention


def test_training_never_builds_a_plan_of_attention_for_each_shape(log, monkeypatch):
    allowed, kernel = [], F.scaled_dot_product_attention

    def seen(*arguments, **named):
        allowed.append(torch.backends.cuda.cudnn_sdp_enabled())
        return kernel(*arguments, **named)

    monkeypatch.setattr(F, "scaled_dot_product_attention", seen)
    run = training(DEVICE, replace(SETTINGS, steps=1))
    accelerate(run.model)
    fit(run)
    assert allowed and not any(allowed)
    assert torch.backends.cuda.cudnn_sdp_enabled()  # for the rest of a program it stays as it was


def test_validation_waits_once_a_batch_to_check_its_source_and_once_at_the_end(log):
    run = training(DEVICE)
    batches = list(run.stream.one_epoch())
    expected = validation_loss(training(CPU).model, batches, 0)
    log.clear()
    assert validation_loss(run.model, batches, 0) == pytest.approx(expected, rel=1e-5)
    assert log.waits() == len(batches) + 1


def test_a_training_saved_on_the_device_goes_on_on_the_cpu_and_the_other_way_round(log, tmp_path):
    whole = training(CPU, replace(SETTINGS, muon_rate=0.0))
    fit(whole)
    for first, second in itertools.permutations((CPU, DEVICE)):
        stopped, resumed = (training(device, replace(SETTINGS, muon_rate=0.0)) for device in (first, second))
        fit(stopped, lambda progress: progress.step == 2)
        save_training(tmp_path, stopped)
        load_training(tmp_path, resumed)
        fit(resumed)
        assert resumed.losses == pytest.approx(whole.losses, rel=1e-4)
        assert all(each.device == second for each in resumed.model.parameters())


# ---- decoding -----------------------------------------------------------------------------------------------------


def models() -> tuple[Transformer, Transformer]:
    """Return one model on the CPU and on the device."""
    model = Transformer(SIZES, generator(1)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator(parameter.numel()))
    return model, accelerate(copy.deepcopy(model).to(DEVICE))


def sources() -> torch.Tensor:
    ids = torch.randint(4, 23, (5, 6), generator=generator(4))
    ids[1, 4:] = ids[3, 2:] = 0
    return ids


@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_decoding_waits_once_a_token(log, use_cache):
    on_cpu, on_device = models()
    expected, given = greedy_decode(on_cpu, sources(), 14, use_cache), sources().to(DEVICE)
    log.clear()
    found = greedy_decode(on_device, given, 14, use_cache)
    assert log.waits() <= (found.shape[1] - 1) * WAITS_OF_A_TOKEN + WAITS_OF_A_SEARCH
    assert found.cpu().equal(expected)


@pytest.mark.parametrize("length", [4, 14])
def test_cached_beam_search_waits_once_a_token(log, length):
    on_cpu, on_device = models()
    expected, given = beam_search(on_cpu, sources(), 4, length, 1.0), sources().to(DEVICE)
    log.clear()
    found = beam_search(on_device, given, 4, length, 1.0, top_k)
    assert log.waits() <= length * WAITS_OF_A_TOKEN + WAITS_OF_A_SEARCH
    assert [[one.ids for one in row] for row in found] == [[one.ids for one in row] for row in expected]


def test_sampling_waits_once_a_token_and_draws_on_the_device(log):
    on_device, given = models()[1], sources().to(DEVICE)
    log.clear()
    found = sample_decode(on_device, given, 14, torch.Generator("cuda").manual_seed(3), top_k=9, top_p=0.9)
    assert log.waits() <= (found.shape[1] - 1) * WAITS_OF_A_TOKEN + WAITS_OF_A_SEARCH
    with pytest.raises(RuntimeError, match="generator"):
        sample_decode(on_device, given, 14, generator(3))


# ---- a learner's own model ------------------------------------------------------------------------------------------


def own_training(device: torch.device) -> Training:
    code, settings = OwnCode.of_text("my_transformer.py", own_file()), replace(SETTINGS, muon_rate=6e-3)
    model = new_own_model(code, replace(SIZES, tie_embeddings=False, norm_first=True), seed=3).to(device)
    optimizer = build_optimizer(model, settings, hidden_of=own_hidden_matrices)
    return Training(model, optimizer, stream(), settings, OwnLoss(code, 0, 0.1), WeightAverage(model, 0.9))


def test_a_learner_s_own_model_trains_and_decodes_on_the_device(log):
    on_cpu, run = own_training(CPU), own_training(DEVICE)
    assert rehearse(run.model, next(run.stream.one_epoch()).to(DEVICE), run.loss) == []
    for each in (on_cpu, run):
        fit(each)
    assert run.losses == pytest.approx(on_cpu.losses, rel=2e-2)
    model, given = run.average.of(run.model).eval(), sources().to(DEVICE)
    assert isinstance(model, OwnTransformer) and own_greedy(model, given, 9).device == DEVICE
    assert len(own_beam(model, given, 3, 9, 1.0, top_k)) == len(given)
    on_cpu = copy.deepcopy(model).to("cpu")
    assert [[one.ids for one in row] for row in beam_search(model, given, 3, 9, 1.0)] == [
        [one.ids for one in row] for row in beam_search(on_cpu, sources(), 3, 9, 1.0)
    ]


def test_the_searches_of_the_package_wait_for_a_learner_s_model_no_more_than_for_its_own(log):
    model, given = own_training(DEVICE).model.eval(), sources().to(DEVICE)
    log.clear()
    model(given, given)
    of_forward = log.waits()
    log.clear()
    found = beam_search(model, given, 3, 9, 1.0)
    assert log.waits() <= 9 * (WAITS_OF_A_TOKEN + of_forward) + WAITS_OF_A_SEARCH and found
