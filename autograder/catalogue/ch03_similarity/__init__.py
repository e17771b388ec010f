"""Chapter 03, dot products and similarity."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "dot cosine score-std scaled-scores nearest",
)
