"""Text becomes ids, and ids become text."""
