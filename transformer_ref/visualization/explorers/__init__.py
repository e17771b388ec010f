"""One explorer for each notebook: a control is moved, the learner's own function answers, a picture changes."""
