"""What pyright reads in the place of the package transformers, whose imports take it longer than all of our code."""

from typing import Any

def __getattr__(name: str) -> Any: ...
