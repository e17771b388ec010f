"""One page-wide figure for each chapter: what the chapter says, in one picture, from the chapter's own numbers.

A module holds one figure. Its function takes the numbers that the page's cell computes, checks that they fit, draws the
same parts twice (`hero.PAGE` pixels wide, and `hero.PHONE`), and returns a `hero.Hero` with the numbers as text.
Matrices and maps come from `visualization/matrix.py`, so that a role has one look.
"""
