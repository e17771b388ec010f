"""What a small GPT would write next if it ended earlier: how its letters and its depths are named in a figure."""

SIGNS = {" ": "␣", "\n": "↵"}


def sign(letter: str) -> str:
    """Return a letter as it is shown."""
    return SIGNS.get(letter, letter)


def depth_names(blocks: int) -> list[str]:
    """Return the names of the depths, the shallowest first."""
    return ["start", *(f"block {number}" for number in range(1, blocks + 1))]
