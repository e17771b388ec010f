"""Chapter 15, pretrained models."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "mlm-mask pool freeze-except load-mapped",
    visible_modules=("transformer_ref.beyond.small_encoder",),
)
