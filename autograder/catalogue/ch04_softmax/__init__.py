"""Chapter 04, softmax."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "linear-weights softmax log-softmax temperature softmax-jacobian",
    visible_modules=("transformer_ref.model.similarity",),
)
