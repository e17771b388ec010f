"""Why an answer fails: known mistakes, behavior, patterns of the output, counterfactual inputs, conditions.

`explain` tries them in this order. Points never depend on anything here.
"""
