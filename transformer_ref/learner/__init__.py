"""What runs a file that a learner wrote: their model in training, search, weights and faults."""
