"""Runs the probes on an answer, compares the results with the reference's, and decides the points.

Nothing here imports what explains or shows a verdict. A class's parameters are matched to roles by the order in which
its forward uses them, then by names and shapes (`parameter_matching`), so their names and layout are free. Where a
probe allows several matches, the following probes narrow down those that agreed.
"""
