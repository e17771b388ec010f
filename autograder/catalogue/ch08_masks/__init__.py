"""Chapter 08, masks."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "padding-mask causal-mask decoder-mask masked-attention leaks to-torch-mha",
    visible_modules=("transformer_ref.model.softmax",),
)
