"""Ctrl-C, a request to end and a lost terminal, all treated alike: the run stops where a later one can go on."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """The run must end. `code`: the exit code of a program that this signal ended."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """In this context the first such signal raises Interrupted; later ones are deferred, since cleaning up takes only
    seconds.

    A signal that was ignored before, as `nohup` ignores SIGHUP, stays ignored.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def stop(number: int, frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    try:
        for number, handler in before.items():
            if handler not in (signal.SIG_IGN, None):  # None: set by something else than Python
                signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
