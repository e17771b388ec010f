"""Chapter 16, efficient attention."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "attention-flops linear-attention online-softmax grouped-query",
    visible_modules=("transformer_ref.model.similarity", "transformer_ref.model.softmax"),
)
