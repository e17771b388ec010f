"""Turns a verdict into sentences, the report's parts, and the text or HTML made of them."""
