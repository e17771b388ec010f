"""Chapter 14, vision and attention beyond text."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "patchify vit sagan-attention conv-as-attention",
    visible_modules=("transformer_ref.model.tokens_alone", "transformer_ref.model.softmax"),
)
