"""Chapter 13, GPT: decoder only."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "lm-batch gpt-block gpt generate residual-trace",
    visible_modules=(
        "transformer_ref.model.keeping_weights",
        "transformer_ref.model.masks",
        "transformer_ref.model.softmax",
    ),
)
