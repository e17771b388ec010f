"""In bf16 the arithmetic is fast and coarse; the weights that are kept are not."""

import copy

import pytest
import torch
from drawn import generator, tiny_config

from transformer_ref import machine
from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import Batch
from transformer_ref.device import choose_precision
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.gradients import Gradients
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.trainer import train_step

CPU = torch.device("cpu")


def model() -> Transformer:
    return Transformer(tiny_config(dropout=0.0), generator(1))


def batch() -> Batch:
    ids = torch.randint(3, 11, (3, 4, 5), generator=generator(2))
    return Batch(*ids)


def step(network: Transformer, bf16_copy: BF16Copy | None, rate: float = 4e-3) -> float:
    optimizer = build_optimizer(network, TrainingConfig(learning_rate=rate, muon_rate=0.0))
    return train_step(network, batch(), optimizer, MeanLoss(0, 0.1), 1.0, Gradients(bf16_copy)).loss


def test_weights_move_by_less_than_a_bf16_number_can_tell_apart():
    network = model()
    before = copy.deepcopy(network)
    step(network, BF16Copy(network), rate=1e-6)
    for (name, moved), old in zip(network.named_parameters(), before.parameters(), strict=True):
        assert moved.dtype == torch.float32
        if not name.endswith("key.bias"):  # whose gradient is zero up to rounding
            assert not moved.equal(old), name
            assert (moved - old).abs().max() <= 2e-6


def test_gradients_in_bf16_are_those_in_fp32_up_to_its_rounding():
    network, twin = model(), model()
    losses = step(network, None), step(twin, BF16Copy(twin))
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert losses[0] != losses[1]  # or nothing was computed in bf16
    ours, theirs = (torch.cat([each.grad.flatten() for each in one.parameters()]) for one in (network, twin))
    assert theirs.dtype == torch.float32
    assert torch.cosine_similarity(ours, theirs, dim=0) > 0.999  # 8 bits: each number is off by 0.4 % at most


def test_each_step_computes_with_the_newest_weights():
    network = model()
    bf16_copy = BF16Copy(network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)
    for fast, kept in zip(bf16_copy.refreshed().parameters(), network.parameters(), strict=True):
        assert fast.dtype == torch.bfloat16 and fast.equal(kept.bfloat16())


def test_gradients_handed_over_twice_add_up_in_fp32():
    network = model()
    bf16_copy = BF16Copy(network)
    for size in (1.0, 2**-12):  # in bf16 the second would round away
        for parameter in bf16_copy.refreshed().parameters():
            parameter.grad = torch.full_like(parameter, size)
        bf16_copy.hand_over_gradients()
        assert all(parameter.grad is None for parameter in bf16_copy.refreshed().parameters())
    assert all((parameter.grad == 1 + 2**-12).all() for parameter in network.parameters())


def test_tied_tables_stay_one_table_in_the_copy():
    network = Transformer(tiny_config(source_vocabulary=13, tie_embeddings=True), generator(1))
    fast = BF16Copy(network).refreshed()
    assert fast.output.weight is fast.source_embedding.weight is fast.target_embedding.weight


def test_a_precision_asked_for_by_name_is_not_measured(monkeypatch):
    monkeypatch.delattr(machine, "speedup")
    assert (choose_precision("fp32", CPU), choose_precision("bf16", CPU)) == (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("refusing", [lambda: choose_precision("fp8", CPU), lambda: TrainingConfig(precision="fp8")])
def test_another_precision_is_refused_by_name(refusing):
    with pytest.raises(ValueError, match="precision: expected one of fp32, bf16, auto, got 'fp8'"):
        refusing()
