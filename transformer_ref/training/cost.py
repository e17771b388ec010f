"""An estimate of what a training run will take, before it begins (chapter 12)."""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.device import choose_precision
from transformer_ref.faster import linear
from transformer_ref.machine import DTYPES, faster_muon_precision

FORWARD_AND_BACKWARD = 3  # the backward pass multiplies each matrix twice: Kaplan et al. 2020, section 2.1
# The share of the rate of a large product that a training run reaches. The rest goes into what is not a product, which
# takes as long whatever multiplies. Measured on one core, Muon included: the built-in recipe (d_model 128) reaches 0.42
# in bf16 and 0.60 in fp32 with AVX2, that of Multi30k (d_model 256) 0.73 and 0.83. So an estimate is right to a third.
REACHED = 0.6
SIDE_OF_PRODUCT = {"cpu": 1_024, "cuda": 8_192, "mps": 4_096}  # large enough to reach the device's best rate
REPEATS, ENOUGH = 5, 0.3  # products at most, and seconds after which no further one begins
NEWTON_SCHULZ_STEPS = 5  # of Muon, as `torch.optim.Muon` takes by default


class Cost(NamedTuple):
    """An estimate of the number of steps, floating-point operations and seconds."""

    steps: float
    operations: float
    seconds: float


def operations_per_pair(config: ModelConfig, source: float, target: float) -> float:
    """Return the operations of a forward and a backward pass over a pair of `source` and `target` tokens.

    A multiplication and its addition are two operations; only matrix products are counted.
    """
    d, d_ff = config.d_model, config.d_ff
    encoder = (4 * d * d + 2 * d * d_ff) * source + 2 * d * source * source
    decoder = (6 * d * d + 2 * d * d_ff) * target + 2 * d * d * source + 2 * d * target * (target + source)
    output = d * config.target_vocabulary * target
    products = config.encoder_layers * encoder + config.decoder_layers * decoder + output
    return 2 * FORWARD_AND_BACKWARD * products


def muon_operations(config: ModelConfig) -> float:
    """Return the operations of one step of Muon: its products, for every matrix between hidden layers.

    A step of its Newton-Schulz iteration multiplies, for a matrix of m rows and n >= m columns, an (m, n) matrix by its
    transpose, an (m, m) matrix by itself and that by the (m, n) matrix.
    """
    d, d_ff = config.d_model, config.d_ff
    square, other = 4 * config.encoder_layers + 8 * config.decoder_layers, config.encoder_layers + config.decoder_layers
    matrices = [(d, d, square), (min(d, d_ff), max(d, d_ff), 2 * other)]  # m, n, how many there are
    products = sum(count * (2 * m * m * n + m**3) for m, n, count in matrices)
    return 2 * NEWTON_SCHULZ_STEPS * products


def training_cost(
    model: ModelConfig, config: TrainingConfig, stream: BatchStream, rate: float, muon_rate: float | None = None
) -> Cost:
    """Return the estimated cost of a training run.

    stream: its batches; rate: operations per second of large matrix products; muon_rate: the same in Muon's precision,
    if that differs.
    """
    pairs = len(stream.sources)
    source = sum(map(len, stream.sources)) / pairs + 1  # eos follows
    target = sum(map(len, stream.targets)) / pairs + 1
    longer = sum(stream.lengths) / pairs
    operations_per_step = operations_per_pair(model, source, target) * config.tokens_per_batch / longer
    seconds_per_step = operations_per_step / (rate * REACHED)
    if config.muon_rate:
        operations_per_step += muon_operations(model)
        seconds_per_step += muon_operations(model) / ((muon_rate or rate) * REACHED)
    steps = config.steps if config.minutes is None else 60 * config.minutes / seconds_per_step
    return Cost(steps, steps * operations_per_step, steps * seconds_per_step)


def product_rate(config: TrainingConfig, device: torch.device) -> float:
    """Return the operations per second that the device reaches in a large matrix product, in the config's precision."""
    return _product_rate(choose_precision(config.precision, device), device, linear)


def muon_product_rate(config: TrainingConfig, device: torch.device) -> float:
    """Return the same in the precision of Muon's products."""
    precision = config.muon_precision
    dtype = DTYPES[faster_muon_precision(device).value if precision == "auto" else precision]
    return _product_rate(dtype, device, torch.matmul)


def _product_rate(
    dtype: torch.dtype, device: torch.device, multiply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> float:
    side = SIDE_OF_PRODUCT.get(device.type, SIDE_OF_PRODUCT["cpu"])
    matrix = torch.ones(side, side, dtype=dtype, device=device)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        multiply(matrix, matrix)[0, 0].item()  # .item() waits for a GPU
        times.append(time.perf_counter() - start)
        if sum(times) > ENOUGH:
            break
    return 2 * side**3 / min(times)


def about(seconds: float) -> str:
    """Return 100 as "2 minutes", 5,000 as "83 minutes" and 400,000 as "5 days"."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
