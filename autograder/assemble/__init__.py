"""A learner's own code, from their notebooks into one file that they can import."""
