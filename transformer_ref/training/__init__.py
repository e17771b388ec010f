"""From batches to a trained model: loss, schedule, optimizer, trainer, an unfinished run.

- Each step seeds torch's generator from the seed, its own number and its process, so no generator state needs saving
  and a resumed run equals an uninterrupted one. It refuses other data than it began with.
- Several processes sum their gradients once a step in one visible call instead of using `DistributedDataParallel`, so
  gradient accumulation and bf16 need no special case.
- bf16 computes with a copy of the model; optimizer, running mean, clipping and checkpoints only see fp32 weights.
- The model is saved before the larger file that a resumed run needs. The mean of the weights is a copy of the model,
  so an interrupted validation changes nothing.
"""
