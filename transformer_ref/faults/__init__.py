"""A Transformer with one fault in it: what classic mistakes do to a training run (chapter 10's laboratory).

Nothing of the model is changed for this. A fault takes an `Experiment` and puts something wrong in the place of one of
its parts.
"""
