"""Chapter 11, inference."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "greedy-decode sample beam-search decode-step corpus-bleu",
    visible_modules=("transformer_ref.model.softmax", "transformer_ref.model.masks"),
)
