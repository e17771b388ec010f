"""Moodle and Canvas: what comes down from them, who is who there, and feedback that goes back up."""
