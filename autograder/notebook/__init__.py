"""What a learner's own notebook uses: its checks, the record of what they earned, the overview of it."""
