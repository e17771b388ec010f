"""Chapter 02, from text to vectors."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "build-vocab encode-decode pad-batch embed bpe-train bpe-encode",
)
