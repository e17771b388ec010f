"""The estimate counts the matrix products that torch counts."""

import pytest
import torch
from drawn import generator, ids, tiny_config
from torch.utils.flop_counter import FlopCounterMode

from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.cost import (
    about,
    muon_operations,
    muon_product_rate,
    operations_per_pair,
    product_rate,
    training_cost,
)
from transformer_ref.training.optimizer import build_optimizer

CPU = torch.device("cpu")


def test_operations_are_those_that_torch_counts_in_a_forward_and_backward_pass():
    config = tiny_config(source_vocabulary=31, target_vocabulary=37, dropout=0.0)
    model, batch, source, target = Transformer(config, generator(1)), 3, 7, 5
    with FlopCounterMode(display=False) as counter:
        encoded = model.encode(ids(1, batch, source, low=4), need_weights=True)  # torch counts no fused attention
        decoded = model.decode(ids(2, batch, target, low=4), encoded, need_weights=True)
        model.logits(decoded.hidden).sum().backward()
    assert counter.get_total_flops() == batch * operations_per_pair(config, source, target)


@pytest.mark.parametrize("sizes", [{}, {"d_ff": 12}, {"d_ff": 7}, {"encoder_layers": 3, "decoder_layers": 1}])
def test_muon_s_operations_are_those_that_torch_counts_in_its_step(sizes):
    config = tiny_config(**sizes)
    optimizer = build_optimizer(Transformer(config, generator(1)), TrainingConfig(muon_precision="fp32"))
    for matrix in optimizer.optimizers[1].param_groups[0]["params"]:
        matrix.grad = torch.ones_like(matrix)
    with FlopCounterMode(display=False) as counter:
        optimizer.step()
    assert counter.get_total_flops() == muon_operations(config)


def test_muon_counts_where_it_is_used_and_by_the_rate_of_its_own_precision():
    config = tiny_config()
    without, with_it = (
        training_cost(config, TrainingConfig(steps=10, muon_rate=rate), stream(), rate=1e9) for rate in (0.0, 0.01)
    )
    assert with_it.operations == without.operations + 10 * muon_operations(config)
    slower = training_cost(config, TrainingConfig(steps=10), stream(), rate=1e9, muon_rate=5e8)
    assert slower.operations == with_it.operations
    assert slower.seconds - without.seconds == pytest.approx(2 * (with_it.seconds - without.seconds))


def stream() -> BatchStream:
    return BatchStream([[5] * 9] * 20, [[6] * 7] * 20, 40, 0, 1, 2, 1)


def test_twice_the_steps_or_half_the_rate_takes_twice_as_long():
    config = tiny_config()
    one = training_cost(config, TrainingConfig(steps=10, tokens_per_batch=40, muon_rate=0.0), stream(), rate=1e9)
    longer = training_cost(config, TrainingConfig(steps=20, tokens_per_batch=40, muon_rate=0.0), stream(), rate=1e9)
    slower = training_cost(config, TrainingConfig(steps=10, tokens_per_batch=40, muon_rate=0.0), stream(), rate=5e8)
    assert one.operations == pytest.approx(10 * 4 * operations_per_pair(config, 10, 8))  # 4 pairs of 10 cells in 40
    assert longer.seconds == pytest.approx(2 * one.seconds) == slower.seconds
    assert slower.operations == one.operations


def test_a_training_by_the_clock_takes_as_long_as_it_says_and_tells_its_steps():
    timed = training_cost(tiny_config(), TrainingConfig(minutes=3.0, tokens_per_batch=40), stream(), rate=1e9)
    counted = training_cost(tiny_config(), TrainingConfig(steps=int(timed.steps), tokens_per_batch=40), stream(), 1e9)
    assert timed.seconds == pytest.approx(180) and counted.seconds == pytest.approx(180, rel=1e-3)


def test_the_rate_of_this_machine_is_a_number_of_operations_a_second():
    assert 1e8 < product_rate(TrainingConfig(), CPU) < 1e15
    assert 1e8 < muon_product_rate(TrainingConfig(muon_precision="fp32"), CPU) < 1e15


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 seconds"),
        (89, "89 seconds"),
        (100, "2 minutes"),
        (5_000, "83 minutes"),
        (6_000, "2 hours"),
        (400_000, "5 days"),
        (1e9, "11,574 days"),
    ],
)
def test_a_duration_is_said_in_the_unit_that_suits_it(seconds, words):
    assert about(seconds) == words
