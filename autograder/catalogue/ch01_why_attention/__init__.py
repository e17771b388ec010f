"""Chapter 01, why attention."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "last-state gradient-norms path-length layer-cost additive-context",
)
