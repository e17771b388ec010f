"""Chapter 10, training an encoder-decoder."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "shift-right masked-ce smooth-targets noam-lr token-batches train-step overfit-one-batch",
    visible_modules=("transformer_ref.config", "transformer_ref.model.transformer", "transformer_ref.data.eight_pairs"),
)
