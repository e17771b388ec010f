"""What the pages draw: a page-wide figure for each chapter, diagrams, pictures of which the reader chooses one.

A module holds one figure. Its function takes the numbers that the page's cell computes, checks that they fit, and
draws with the kit of `transformer_ref/visualization`, so that a role has one look. A page-wide figure is drawn twice
(`hero.PAGE` pixels wide, and `hero.PHONE`) and returned as a `hero.Hero` with the numbers as text; its matrices and
maps come from `matrix.py`.
"""
