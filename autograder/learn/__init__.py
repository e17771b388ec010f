"""A learner's desk: their own copy of the notebooks, and JupyterLab on it.

The road, from `open.run`: `notebooks` copies what is new → `quiet` leaves teachers' tools and the news out of this
server alone → `open` starts it, with the book beside it where that is here, and waits.
"""
