"""How many floating-point operations a training step needs: the numerator of the share of peak.

Counted are the matrix products that the task needs, in the model and in Muon. Padding and everything elementwise do not
count, so the share says how much of the machine is put to use.
"""

from collections.abc import Iterator

from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import Batch
from transformer_ref.training.cost import operations_per_pair
from transformer_ref.training.optimizer import OptimizerGroup

MEASURED_BATCHES = 20  # to know the mean number of operations a token


def operations_per_token(config: ModelConfig, batches: Iterator[Batch], per_step: float = 0.0) -> float:
    """Return the mean number of operations per real target token of these batches.

    per_step: operations of a step that do not depend on its batch, such as Muon's.
    """
    operations, tokens = 0.0, 0
    for _ in range(MEASURED_BATCHES):
        batch = next(batches)
        real = batch.target_labels != config.pad
        for source, target in zip((batch.source != config.pad).sum(1).tolist(), real.sum(1).tolist(), strict=True):
            operations += operations_per_pair(config, source, target)
        operations += per_step
        tokens += int(real.sum())
    return operations / tokens


def muon_operations(optimizer: OptimizerGroup) -> float:
    """Return the operations of Muon's Newton-Schulz iterations in one step; 0 without Muon.

    For a matrix X with r <= c sides, an iteration computes X X^T (2 r r c), its square (2 r r r) and the product of
    their sum with X (2 r r c).
    """
    operations = 0
    for group in (group for each in optimizer.optimizers for group in each.param_groups if "ns_steps" in group):
        for matrix in group["params"]:
            shorter, longer = sorted(matrix.shape)
            operations += group["ns_steps"] * (4 * shorter**2 * longer + 2 * shorter**3)
    return float(operations)
