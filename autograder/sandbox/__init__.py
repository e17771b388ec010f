"""Where code that nobody has to trust runs: backends, what a child does to confine itself, and the warm process."""
