"""Ctrl-C, or a machine's notice to end, between two steps and never within one: what is left is resumed exactly."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}  # what we take the place of


@contextmanager
def interrupts_held_back() -> Iterator[Callable[[], bool]]:
    """Defer Ctrl-C and SIGTERM while the block runs; yields a function that returns whether there was one.

    A second one is not deferred. If Python's default handler is not installed, or in another thread, nothing is
    changed.
    """
    pressed = False

    def press(number: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def was_pressed() -> bool:
        return pressed

    in_main = threading.current_thread() is threading.main_thread()
    ours = [number for number, usual in USUAL.items() if in_main and signal.getsignal(number) == usual]
    for number in ours:
        signal.signal(number, press)
    try:
        yield was_pressed
    finally:
        for number in ours:
            signal.signal(number, USUAL[number])
