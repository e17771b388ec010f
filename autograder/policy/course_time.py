"""The course's time zone, and how nbgrader is configured for it.

One setting names the zone, `c.CourseTime.zone` in nbgrader_config.py, else the environment variable
ATTENTION_BY_HAND_ZONE; without either it is UTC. nbgrader's own reader takes `+0100` for 100 seconds and `CET` for UTC,
and its display is an hour off near the nights in which clocks change. `install` replaces both.
"""

from __future__ import annotations

import functools
import os
import sys
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from traitlets import Unicode
from traitlets.config import Config, Configurable

from autograder.course import MARKER, CourseError
from autograder.policy.times import REVERSED, NoMoment, in_zone, parse

SETTING = "ATTENTION_BY_HAND_ZONE"


class CourseTime(Configurable):
    """What a course decides about time, in nbgrader_config.py."""

    zone = Unicode("", config=True, help="the course's time zone, such as Europe/Berlin; empty: UTC")


def zone_of(settings: Config) -> ZoneInfo:
    """The course's zone, by its configuration, then the environment. Raises CourseError for one that nobody knows."""
    name = settings.get("CourseTime", {}).get("zone", "") or os.environ.get(SETTING, "") or "UTC"
    try:
        if REVERSED.fullmatch(name):
            raise NoMoment
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError, TypeError) as error:
        where = f"{MARKER}, c.CourseTime.zone (or {SETTING})"
        raise CourseError(f"{where}: expected a time zone such as 'Europe/Berlin', got {name!r}.") from error


def install(settings: Config) -> None:
    """Let nbgrader read and show times as this module does, in the zone of these settings, which are read when a time
    is: what follows in nbgrader_config.py still counts."""
    from nbgrader import utils

    _current[:] = [settings]
    plain = getattr(utils.parse_utc, "plain", utils.parse_utc)
    ours = {"as_timezone": _as_timezone, "to_numeric_tz": _named_zone}
    for module in [module for name, module in sys.modules.items() if name.startswith("nbgrader.")]:
        for name, replacement in {**ours, "parse_utc": _reader(plain, is_strict=module is utils)}.items():
            if hasattr(module, name):
                setattr(module, name, replacement)
    _refuse_in_words()


_current: list[Config] = []


def _current_zone() -> ZoneInfo:
    return zone_of(_current[0]) if _current else ZoneInfo("UTC")


def _reader(plain: Any, is_strict: bool) -> Any:
    """nbgrader's `parse_utc`. Due dates are read strictly; a name that a program gave to what it collected may have a
    form of its own, which stays nbgrader's to read."""

    @functools.wraps(plain)
    def parse_utc(ts: Any) -> Any:
        if not isinstance(ts, str):
            return plain(ts)
        try:
            return parse(ts, _current_zone())
        except NoMoment:
            if is_strict:
                raise
            return plain(ts)

    parse_utc.plain = plain
    return parse_utc


def _as_timezone(ts: datetime, name: str) -> datetime:
    """A moment (UTC) in a zone. nbgrader's own takes the offset that the zone has when *it* shows that time."""
    zone = _current_zone() if name in ("", "UTC") else ZoneInfo(name)
    return in_zone(ts, zone)


def _named_zone(name: str) -> str:
    """What formgrader puts into its field for the zone: the name, not the offset of today, which a due date on the
    other side of a clock change would be saved with."""
    return _current_zone().key if name in ("", "UTC") else name


def _refuse_in_words() -> None:
    """Let formgrader answer a due date that it cannot read with the sentence, and with no error of the server's."""
    handlers = sys.modules.get("nbgrader.server_extensions.formgrader.apihandlers")
    if handlers is None or hasattr(handlers.AssignmentHandler.put, "refuses"):
        return
    put, web = handlers.AssignmentHandler.put, handlers.web

    @functools.wraps(put)
    def refusing(handler: Any, assignment_id: str) -> Any:
        try:
            return put(handler, assignment_id)
        except (NoMoment, CourseError) as error:
            handler.log.error(f"{assignment_id}: the due date is not changed: {error}")
            sentence = str(error).encode("ascii", "replace").decode()
            raise web.HTTPError(400, reason=f"Due date: {sentence}") from error

    refusing.refuses = True
    handlers.AssignmentHandler.put = refusing
