"""A training goes on a CUDA device as on the CPU, and may move from one to the other."""

from dataclasses import replace

import pytest
import torch

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream, NextBatch
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.gradients import Gradients
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.resume import load_training, save_training
from transformer_ref.training.trainer import Training, fit, train_step

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]
CONFIG = TrainingConfig(steps=6, tokens_per_batch=60, warmup_steps=2, ema_decay=0.9)


def training(device: str, config: TrainingConfig = CONFIG) -> Training:
    """Return a training run without dropout, whose draws differ between devices."""
    drawn = torch.Generator().manual_seed(9)
    sources = [torch.randint(4, 17, (1 + i % 6,), generator=drawn).tolist() for i in range(40)]
    stream = BatchStream(sources, [source[::-1] for source in sources], config.tokens_per_batch, 0, 1, 2, config.seed)
    sizes = ModelConfig(17, 17, d_model=12, heads=3, encoder_layers=2, decoder_layers=2, d_ff=20, dropout=0.0)
    model = Transformer(sizes, torch.Generator().manual_seed(1)).to(device)
    average = WeightAverage(model, config.ema_decay)
    return Training(model, build_optimizer(model, config), stream, config, MeanLoss(0, config.label_smoothing), average)


def test_the_losses_are_those_on_the_cpu():
    on_cpu, on_gpu = training("cpu"), training("cuda")
    for each in (on_cpu, on_gpu):
        fit(each)
    # products may be rounded to TF32's 10 bits, and Muon's own are in bf16, with 7
    assert on_gpu.losses == pytest.approx(on_cpu.losses, rel=2e-2)


def test_bf16_learns_as_fp32_does():
    precise, fast = (training("cuda", replace(CONFIG, precision=precision)) for precision in ("fp32", "bf16"))
    for each in (precise, fast):
        fit(each)
    assert fast.losses == pytest.approx(precise.losses, rel=5e-2) and fast.losses != precise.losses


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_step_reads_from_the_gpu_in_one_place_only(precision, accumulation, monkeypatch):
    run = training("cuda", replace(CONFIG, precision=precision, grad_accumulation_steps=accumulation))
    fit(run, lambda progress: progress.step == 2)  # what the first steps measure and make is not counted
    read, reads = torch.Tensor.tolist, []

    def allowed(tensor):
        if tensor.is_cuda:
            reads.append(tensor.shape)
        torch.cuda.set_sync_debug_mode("default")
        values = read(tensor)
        torch.cuda.set_sync_debug_mode("error")
        return values

    monkeypatch.setattr(torch.Tensor, "tolist", allowed)
    batches = NextBatch(run.stream)
    gradients = Gradients(BF16Copy(run.model) if precision == "bf16" else None, accumulation)
    batches.build()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            train_step(run.model, batches.take(), run.optimizer, run.loss, 1.0, gradients, batches.build)
            run.average.update(run.model)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert reads == [(accumulation + 1,)] * 3  # the losses of the parts, and the norm of the gradients


def test_a_training_saved_on_the_cpu_goes_on_on_the_gpu(tmp_path):
    first = training("cpu")
    fit(first, lambda progress: progress.step == 3)
    save_training(tmp_path, first)
    second = training("cuda")
    load_training(tmp_path, second)
    fit(second)
    assert second.losses[:3] == first.losses and len(second.losses) == 6
    assert all(parameter.is_cuda for parameter in second.model.parameters())
