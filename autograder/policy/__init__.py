"""Course rules that the intake, the grader and the reports all read. Imports nothing of ours but `course`."""
