"""Lines of progress while the book is built."""


def say(line: str) -> None:
    """Show a line of progress."""
    print(f"  {line}", flush=True)


def clock(seconds: float) -> str:
    """Return 75 as "1:15"."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"
