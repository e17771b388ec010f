"""A learner's desk: their own copy of the notebooks, and JupyterLab on it.

The road, from `open.run`: `notebooks` copies what is new → `quiet` leaves teachers' tools and the news out of this
only the server → `open` starts it, with the book next to it if there is one, and waits.
"""
