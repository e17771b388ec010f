"""A sentence becomes a translated sentence: the reference Transformer of the course."""
