"""Figures from arrays and token lists, in the colors of the course; nothing here knows a model."""
