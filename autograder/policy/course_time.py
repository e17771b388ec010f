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
    """The time settings of a course, in nbgrader_config.py."""

    zone = Unicode("", config=True, help="the course's time zone, such as Europe/Berlin; empty: UTC")


def zone_of(settings: Config) -> ZoneInfo:
    """The course's time zone, from its configuration, else the environment. Raises CourseError for an unknown one."""
    name = settings.get("CourseTime", {}).get("zone", "") or os.environ.get(SETTING, "") or "UTC"
    try:
        if REVERSED.fullmatch(name):
            raise NoMoment
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError, TypeError) as error:
        where = f"{MARKER}, c.CourseTime.zone (or {SETTING})"
        raise CourseError(f"{where}: expected a time zone such as 'Europe/Berlin', got {name!r}.") from error


def install(settings: Config) -> None:
    """Let nbgrader read and show times as this module does, in the zone of these settings. They are read at each use,
    so that later lines in nbgrader_config.py count."""
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
    """Replaces nbgrader's `parse_utc`. Due dates are parsed strictly; other forms, as in the names of collected files,
    are left to nbgrader."""

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
    """A time (UTC) in a zone, with the offset of that time; nbgrader uses the current offset."""
    zone = _current_zone() if name in ("", "UTC") else ZoneInfo(name)
    return in_zone(ts, zone)


def _named_zone(name: str) -> str:
    """The value of formgrader's field for the zone: its name, since today's offset is wrong for a due date after a
    clock change."""
    return _current_zone().key if name in ("", "UTC") else name


def _refuse_in_words() -> None:
    """Let formgrader show the sentence for a due date that cannot be parsed, instead of a server error."""
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
