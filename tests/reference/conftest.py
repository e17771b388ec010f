"""How the laws are tried: the same examples on every run, and never against the clock."""

from hypothesis import settings

settings.register_profile("reference", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("reference")
