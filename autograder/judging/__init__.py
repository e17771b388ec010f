"""An answer is asked, compared with the right one, explained, and decided about."""
