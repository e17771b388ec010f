"""Turns a submission into one notebook that can be graded.

- Submissions are never graded as they are: `rebuild` puts their sources into the released notebook. Damaged files
  yield every cell that is complete. The result is in `classroom/received/`; `classroom/submitted/` stays as it is.
- Any file that decodes to cells is a notebook, whatever its name, archive or encoding. Of a merge conflict the first
  side counts, and the second where the first has no answer.
- If a file cannot be read for a reason that is not the student's, it is "not checked" and the teacher is informed. What
  nobody could read is blank, with the reason in the feedback.
- New work is recognized by its digest. A submission's own timestamp is not believed unless the course sets
  `c.Intake.trust_timestamps`; see `policy.receipts`.
- nbgrader's pre-convert hook runs too late and does not know the student, so `nbgrader_config.py` wraps the method
  that looks for notebooks.
"""
