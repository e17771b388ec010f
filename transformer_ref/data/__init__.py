"""Parallel text and how it becomes batches: the built-in English-Italian corpus, Multi30k, batching."""
