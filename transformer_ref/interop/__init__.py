"""Weights that come from other libraries, and weights that go to them (chapter 15)."""
