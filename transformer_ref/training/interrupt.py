"""Ctrl-C between two steps and never within one, so that what it leaves can be resumed exactly."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held_back() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back while the block lasts; calling what is yielded raises it, if it was pressed meanwhile.

    A second Ctrl-C is not held back. Where Python's usual handling of Ctrl-C is not in force (another thread,
    another handler), nothing is changed.
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

    usual = (threading.current_thread() is threading.main_thread()
             and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    if usual:
        signal.signal(signal.SIGINT, press)
    try:
        yield raise_if_pressed
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
