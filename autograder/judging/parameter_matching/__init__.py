"""Finds which of a learner's parameters plays which role, so that the reference's weights can be copied into them:
`roles` for one attention, `blocks` for layers and models, `stacks` for a parameter that holds several matrices."""
