"""Which of a learner's parameters play which role, so that the reference's weights can be put into them."""
