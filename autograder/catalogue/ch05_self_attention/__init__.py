"""Chapter 05, self-attention."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "project attention-weights attend self-attention soft-lookup equivariance-gap",
    visible_modules=("transformer_ref.model.softmax",),
)
