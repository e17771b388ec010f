"""A student notebook becomes a grade."""
