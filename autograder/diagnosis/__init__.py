"""Why an answer fails: known mistakes, behavior, patterns of the output, counterfactual inputs, conditions; in a
learner's own check also the smallest failing input, and the line where one change repairs the answer.

`explain` tries them in this order. Points never depend on anything here.
"""
