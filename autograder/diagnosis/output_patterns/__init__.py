"""Transformations of the correct result that a wrong one may be."""
