"""Chapter 07, order: positional encoding."""

from autograder.catalogue.chapters import chapter

ASSIGNMENT = chapter(__name__, "sinusoidal-pe add-positions check-criteria shift-matrix")
