"""Makes SQLite wait, up to two minutes, for a gradebook that a different program has locked.

SQLite lets one program write at a time, and Python gives up on it after five seconds, which a backup, formgrader or a
network disk can take. `install` is called in nbgrader_config.py, so that every nbgrader command waits.
"""

import sqlite3

from sqlalchemy import event
from sqlalchemy.engine import Engine

SECONDS = 120.0


def install(seconds: float = SECONDS) -> None:
    """Set how long every new connection to an SQLite file waits for other programs; the last call counts."""
    _Wait.seconds = seconds
    if not event.contains(Engine, "connect", _Wait.set):
        event.listen(Engine, "connect", _Wait.set)


class _Wait:
    seconds = SECONDS

    @staticmethod
    def set(connection: object, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute(f"PRAGMA busy_timeout = {round(_Wait.seconds * 1000)}")
