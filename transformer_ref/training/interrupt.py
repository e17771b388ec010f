"""Ctrl-C, or a machine's notice to end, between two steps and never within one: what is left is resumed exactly."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}  # what we take the place of


@contextmanager
def interrupts_held_back() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C and SIGTERM back while the block lasts; calling what is yielded raises KeyboardInterrupt for them.

    A second one is not held back. Where Python's usual handling is not in force (another thread, another handler),
    nothing is changed.
    """
    pressed = False

    def press(number: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def raise_if_pressed() -> None:
        if pressed:
            raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    ours = [number for number, usual in USUAL.items() if in_main and signal.getsignal(number) == usual]
    for number in ours:
        signal.signal(number, press)
    try:
        yield raise_if_pressed
    finally:
        for number in ours:
            signal.signal(number, USUAL[number])
