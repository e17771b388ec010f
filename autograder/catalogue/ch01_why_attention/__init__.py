"""Chapter 01, why attention."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(
    __name__,
    "path-length gradient-norms layer-cost last-state additive-context",
)
