"""Grades a whole class: many workers run and judge submissions, one writer keeps the gradebook.

From `run.grade`: `journal` says who is still to be graded → `messages` packs what a worker needs → `pool` (or
`cluster`) gives submissions to workers → `worker` grades each as plain nbgrader would, in a course of its own with
one submission → `gradebook` records the result with nbgrader's own steps → `summary` tells the teacher.

- Each line of a run's log is on disk before the next step begins, and recording a submission twice has the same
  effect as recording it once. So a run that was killed at any moment can be resumed.
- A failure is tried once more in a fresh worker before it counts. A run that is resumed after the rules changed
  grades everyone again.
- `fork_server` imports torch and nbgrader once and forks the workers. It is forked while the command still has a
  single thread, and never runs a submission's code.
- A submission is one transaction of the gradebook: the writer commits at its end, a worker rolls back.
- One SQLAlchemy engine serves each gradebook; with one for each opening, memory grew by 0.25 MB a submission.
- A cluster's worker process ends if nobody has used it for half a minute, because a killed writer tells nobody.
"""

import sys

# nbformat checks notebooks by jsonschema, which compiles a grammar of internationalized addresses where it finds one:
# a second of every start, for a format that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # to import it is an ImportError
