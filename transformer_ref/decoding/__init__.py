"""From source ids to target ids, one token at a time.

The hypotheses about one sentence share a row of the batch and grow as a tree: keys and values stay where they were
written, and a mask says which tokens belong to a hypothesis. Padding is excluded after the softmax, so scores are the
model's own.
"""
