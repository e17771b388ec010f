"""Downloads from Moodle, Canvas and Gradescope, who is who there, and feedback on its way back.

- The folder or prefix that a platform gives a file says whose it is; no name that a student chose does. A Canvas name
  with two readings is accepted only if the roster confirms it.
- Moodle's number belongs to a student in one assignment, so each assignment needs its own worksheet. Canvas names a
  group's work after the group; only its table of groups lists the members.
- Canvas shows feedback under the name of the submitted file, so a notebook comes back as a notebook.
- Gradescope imports no scores, so its export is an autograder that runs nothing and returns the grades it contains.
"""
