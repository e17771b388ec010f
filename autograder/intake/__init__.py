"""What was handed in becomes one notebook fit for grading."""
