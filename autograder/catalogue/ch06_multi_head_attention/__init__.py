"""Chapter 06, multi-head attention."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "split-heads merge-heads multi-head-attention mha-params head-stats",
    visible_modules=("transformer_ref.model.softmax", "transformer_ref.model.attention"),
)
