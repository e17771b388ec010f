"""A source's ids become a target's ids, one word at a time."""
