"""A complete little exercise, which `python -m autograder new-exercise` copies under another name."""
