"""How far the grading is: one moving line on a terminal, a line now and then anywhere else."""

import os
import shutil
import sys
import time
from typing import TextIO

BAR = 24
QUIET_SECONDS = 15.0


def say(text: str) -> None:
    """Print a line. If the output is closed or the disk is full, the line is lost and the grading continues."""
    try:
        moving = sys.stdout.isatty() and sys.stderr.isatty()  # then the line that moves is in the way
        print(f"\r\x1b[K{text}" if moving else text, flush=True)
    except OSError:
        _give_up(sys.stdout)


class Progress:
    """Shows on stderr how many submissions are done and failed, and the estimated time left."""

    def __init__(self, name: str, total: int, stream: TextIO | None = None) -> None:
        self._name, self._total = name, total
        self._stream = stream or sys.stderr
        self._moving = self._stream.isatty()
        self._done = self._failed = 0
        self._began = self._said = time.monotonic()

    def step(self, failure: str = "") -> None:
        """Count one submission; a failure is shown at once, above the line."""
        self._done += 1
        if failure:
            self._failed += 1
            self._line(failure)
        self.show()

    def show(self) -> None:
        """Draw the line anew."""
        if self._moving:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{self.text()[:width]}")
        elif self._done and (self._done == self._total or time.monotonic() - self._said > QUIET_SECONDS):
            self._said = time.monotonic()
            self._line(self.text())

    def end(self) -> None:
        """Leave the line and go to the next."""
        if self._moving:
            self._write("\n")

    def text(self) -> str:
        """`05_self_attention  ████······  120 of 200  2 failed  290 a minute  16 s left`"""
        filled = BAR * self._done // max(self._total, 1)
        parts = [f"{self._name}  {'█' * filled}{'·' * (BAR - filled)}  {self._done} of {self._total}"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        seconds = time.monotonic() - self._began
        if self._done and self._done < self._total and seconds:
            parts.append(f"{60 * self._done / seconds:.0f} a minute")
            parts.append(f"{duration(seconds / self._done * (self._total - self._done))} left")
        return "  ".join(parts)

    def _line(self, text: str) -> None:
        start = "\r\x1b[K" if self._moving else ""
        self._write(f"{start}{text}\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            _give_up(self._stream)


def duration(seconds: float) -> str:
    """7 s, 3 min 20 s, 2 h 5 min, 3 days."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole / 86400:.1f} days"


def _give_up(stream: TextIO) -> None:
    """Discard everything that is written there from now on, and what is still buffered."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
