"""Chapter 00, start here."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "batch-matmul row-normalize swap-batch-time first-true predict-shapes",
)
