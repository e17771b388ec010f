"""A whole class graded: many workers run and judge submissions, one writer keeps the gradebook.

The road, from `run.grade`: `journal` says who is still to be graded → `messages` packs what a worker needs → `pool` (or
`cluster`) hands submissions to workers → `worker` grades each as plain nbgrader would, in a course of its own that
holds one submission → `gradebook` records what comes back with nbgrader's own steps → `summary` tells the teacher.
"""

import sys

# nbformat checks notebooks by jsonschema, which compiles a grammar of internationalized addresses where it finds one:
# a second of every start, for a format that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # to import it is an ImportError
