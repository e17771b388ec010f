"""All that a submission's process can see of the grader. Nothing here imports ours from outside this folder."""
