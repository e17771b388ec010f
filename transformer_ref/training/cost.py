"""What a training will take, said before it begins (chapter 12)."""

import time
from typing import NamedTuple

import torch

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.device import choose_precision

FORWARD_AND_BACKWARD = 3  # the backward pass multiplies each matrix twice: Kaplan et al. 2020, section 2.1
REACHED = 0.5  # the share of the rate of a large product that a training typically reaches
SIDE_OF_PRODUCT = {"cpu": 1_024, "cuda": 8_192}
REPEATS = 5


class Cost(NamedTuple):
    """An estimate: how many steps, floating-point operations and seconds."""

    steps: float
    operations: float
    seconds: float


def operations_per_pair(config: ModelConfig, source: float, target: float) -> float:
    """Return the operations of a forward and a backward pass over a pair of `source` and `target` tokens.

    A multiplication and its addition are two operations; what is not a matrix product is left out.
    """
    d, d_ff = config.d_model, config.d_ff
    encoder = (4 * d * d + 2 * d * d_ff) * source + 2 * d * source * source
    decoder = (6 * d * d + 2 * d * d_ff) * target + 2 * d * d * source + 2 * d * target * (target + source)
    output = d * config.target_vocabulary * target
    products = config.encoder_layers * encoder + config.decoder_layers * decoder + output
    return 2 * FORWARD_AND_BACKWARD * products


def training_cost(model: ModelConfig, config: TrainingConfig, stream: BatchStream, rate: float) -> Cost:
    """Return what the training will take.

    stream: its batches; rate: operations a second that the machine multiplies large matrices with.
    """
    pairs = len(stream.sources)
    source = sum(map(len, stream.sources)) / pairs + 1  # eos follows
    target = sum(map(len, stream.targets)) / pairs + 1
    longer = (
        sum(max(len(each), len(other)) + 1 for each, other in zip(stream.sources, stream.targets, strict=True)) / pairs
    )
    operations_per_step = operations_per_pair(model, source, target) * config.tokens_per_batch / longer
    seconds_per_step = operations_per_step / (rate * REACHED)
    steps = config.steps if config.minutes is None else 60 * config.minutes / seconds_per_step
    return Cost(steps, steps * operations_per_step, steps * seconds_per_step)


def product_rate(config: TrainingConfig, device: torch.device) -> float:
    """Return how many operations a second the device reaches in one large matrix product, in the config's precision."""
    dtype, side = choose_precision(config.precision, device), SIDE_OF_PRODUCT[device.type]
    matrix = torch.ones(side, side, dtype=dtype, device=device)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        (matrix @ matrix)[0, 0].item()  # .item() waits for a GPU
        times.append(time.perf_counter() - start)
    return 2 * side**3 / min(times)


def about(seconds: float) -> str:
    """Return 100 as "2 minutes", 5,000 as "83 minutes" and 400,000 as "5 days"."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
