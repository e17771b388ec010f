"""The estimate counts the matrix products that torch counts."""

import pytest
import torch
from drawn import generator, ids, tiny_config
from torch.utils.flop_counter import FlopCounterMode

from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.cost import about, operations_per_pair, product_rate, training_cost

CPU = torch.device("cpu")


def test_operations_are_those_that_torch_counts_in_a_forward_and_backward_pass():
    config = tiny_config(source_vocabulary=31, target_vocabulary=37, dropout=0.0)
    model, batch, source, target = Transformer(config, generator(1)), 3, 7, 5
    with FlopCounterMode(display=False) as counter:
        encoded = model.encode(ids(1, batch, source, low=4), need_weights=True)  # torch counts no fused attention
        decoded = model.decode(ids(2, batch, target, low=4), encoded, need_weights=True)
        model.logits(decoded.hidden).sum().backward()
    assert counter.get_total_flops() == batch * operations_per_pair(config, source, target)


def stream() -> BatchStream:
    return BatchStream([[5] * 9] * 20, [[6] * 7] * 20, 40, 0, 1, 2, 1)


def test_twice_the_steps_or_half_the_rate_takes_twice_as_long():
    config = tiny_config()
    one = training_cost(config, TrainingConfig(steps=10, tokens_per_batch=40), stream(), rate=1e9)
    longer = training_cost(config, TrainingConfig(steps=20, tokens_per_batch=40), stream(), rate=1e9)
    slower = training_cost(config, TrainingConfig(steps=10, tokens_per_batch=40), stream(), rate=5e8)
    assert one.operations == pytest.approx(10 * 4 * operations_per_pair(config, 10, 8))  # 4 pairs of 10 cells in 40
    assert longer.seconds == pytest.approx(2 * one.seconds) == slower.seconds
    assert slower.operations == one.operations


def test_a_training_by_the_clock_takes_as_long_as_it_says_and_tells_its_steps():
    timed = training_cost(tiny_config(), TrainingConfig(minutes=3.0, tokens_per_batch=40), stream(), rate=1e9)
    counted = training_cost(tiny_config(), TrainingConfig(steps=int(timed.steps), tokens_per_batch=40), stream(), 1e9)
    assert timed.seconds == pytest.approx(180) and counted.seconds == pytest.approx(180, rel=1e-3)


def test_the_rate_of_this_machine_is_a_number_of_operations_a_second():
    assert 1e8 < product_rate(TrainingConfig(), CPU) < 1e15


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
