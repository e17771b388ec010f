"""How many floating-point operations a training step needs: the numerator of the share of peak.

Counted are the matrix products that the task needs, in the model and in Muon. Padding and everything elementwise do not
count, so the share says how much of the machine is put to use.
"""

from collections.abc import Iterator

from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import Batch
from transformer_ref.training.cost import operations_per_pair

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
