"""Chapter 09, blocks, encoder, decoder."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "layer-norm feed-forward encoder-layer decoder-layer transformer param-count",
    visible_modules=(
        "transformer_ref.config",
        "transformer_ref.model.keeping_weights",
        "transformer_ref.model.masks",
        "transformer_ref.model.positional_encoding",
    ),
)
