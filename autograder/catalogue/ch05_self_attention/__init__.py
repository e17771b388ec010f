"""Chapter 05, self-attention."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "attend attention-weights soft-lookup project self-attention equivariance-gap",
    visible_modules=("transformer_ref.model.softmax",),
)
