"""Damage that has been seen on submissions, and worse: each kind changes a real notebook the way its name says.

A kind that is honest leaves everything that a student wrote somewhere in the file; after it an answer must still count.
`stored` is about files: the ways to store one, to name one, to lose one.
"""

from damage import harmful, harmless, stored
from damage.kinds import BROKEN, HONEST, changed, damaged, drawn

__all__ = ["BROKEN", "HONEST", "changed", "damaged", "drawn", "harmful", "harmless", "stored"]
