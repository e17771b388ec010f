"""Runs a file that a learner wrote: their model in training, in decoding, with other weights, compared with known
mistakes."""
