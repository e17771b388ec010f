"""The progress of a training run: step, loss, speed and time left, on one line of stderr."""

import sys
import time

from transformer_ref.training.trainer import Progress

MEMORY = 0.95  # share of the running mean that each new loss leaves of it
SECONDS_BETWEEN_LINES = 10.0  # in a log
LINES_WITHOUT_TERMINAL = 20  # in a log, this many lines in all instead of one that is rewritten


class ProgressLine:
    """Called after each step; rewrites one line in a terminal, and writes a line now and then to a log."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._loss: float | None = None
        self._tokens = 0
        self._first_seconds: float | None = None
        self._written = 0

    def __call__(self, progress: Progress) -> None:
        before = progress.loss if self._loss is None else self._loss
        self._loss = MEMORY * before + (1 - MEMORY) * progress.loss
        if self._first_seconds is None:  # speed is measured from here on: the first step is a slow one
            self._first_seconds = progress.seconds
        else:
            self._tokens += progress.tokens
        line = self.line(progress)
        if self._stream.isatty():
            self._stream.write(f"\r{line}\x1b[K" + ("\n" if progress.share >= 1 else ""))
        elif (self._tokens or progress.share >= 1) and progress.share * LINES_WITHOUT_TERMINAL >= self._written:
            self._written = int(progress.share * LINES_WITHOUT_TERMINAL) + 1
            self._stream.write(line + "\n")
        self._stream.flush()

    def validated(self, progress: Progress, loss: float) -> None:
        """Write a validation's loss on a line of its own."""
        self.interrupt(f"validation loss {loss:.3f} after {progress.step:,} steps")

    def line(self, progress: Progress) -> str:
        """Return "step 120 (13 %)  loss 1.84  9,800 tokens/s  0:48 left"; after the first step without the speed."""
        done = f"step {progress.step:,} ({progress.share:.0%})  loss {self._loss:.3f}"
        seconds = progress.seconds - (self._first_seconds or 0.0)
        if not self._tokens or seconds <= 0:
            return done
        left = progress.seconds / progress.share * (1 - progress.share) if progress.share else 0.0
        return f"{done}  {self._tokens / seconds:,.0f} tokens/s  {clock(left)} left"

    def interrupt(self, text: str) -> None:
        """Write a line of its own between two updates."""
        self._stream.write(f"\r{text}\x1b[K\n" if self._stream.isatty() else f"{text}\n")


class LinesDone:
    """Called with the number of lines that are done; rewrites one line of stderr, or writes a log.

    what: the word for the items, such as "lines".
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._stream = sys.stderr
        self._start = self._written = time.monotonic()
        self._last = ""
        self._count = 0

    def add(self, more: int) -> None:
        """Add this many lines."""
        self._count += more
        self(self._count)

    def __call__(self, lines: int) -> None:
        now = time.monotonic()
        self._last = f"{lines:,} {self._what}  {lines / max(now - self._start, 1e-3):,.1f} a second"
        if self._stream.isatty():
            self._stream.write(f"\r{self._last}\x1b[K")
            self._stream.flush()
        elif now - self._written >= SECONDS_BETWEEN_LINES:
            self._written = now
            self._stream.write(self._last + "\n")
            self._stream.flush()

    def end(self) -> None:
        """End the line with the last count."""
        if self._last:
            self._stream.write("\n" if self._stream.isatty() else self._last + "\n")
            self._stream.flush()


def clock(seconds: float) -> str:
    """Return 75 as "1:15" and 3700 as "1:01:40"."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
