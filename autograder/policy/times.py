"""The course's time zone: how a moment is read, how it is shown, and what nbgrader is told about it.

The gradebook stores moments in UTC without saying so. People write and read local time. One setting names the zone,
`c.CourseTime.zone` in nbgrader_config.py, else the environment variable ATTENTION_BY_HAND_ZONE; without either it is
UTC. A moment is read strictly: a date in ISO order, and an offset or a zone that the time zone database knows. Anything
else is refused with a sentence, because a guess moves a deadline by hours.

nbgrader's own reader takes `+0100` for 100 seconds and `CET` for UTC, and its display is an hour off near the nights
when clocks change. `install` replaces both.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from traitlets import Unicode
from traitlets.config import Config, Configurable

from autograder.course import MARKER, CourseError

SETTING = "ATTENTION_BY_HAND_ZONE"
EXAMPLES = (
    "2026-03-04 (the end of that day), 2026-03-04 18:00, 2026-03-04 18:00 +01:00 or 2026-03-04 18:00 Europe/Berlin"
)
MOST_HOURS = 14  # no zone on earth is farther from UTC

_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})(?:(?:T|\s+)(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?\s*(?P<zone>\S.*)?"
)
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*(?P<sign>[+\-−])(?P<hours>\d{1,2}(?=:|$)|\d{2})(?::?(?P<minutes>\d{2}))?")
_REVERSED = re.compile(r"Etc/GMT[+-]\d+", re.IGNORECASE)


class NoMoment(ValueError):
    """A text that names no moment, or more than one; the message says what was expected."""


class CourseTime(Configurable):
    """What a course decides about time, in nbgrader_config.py."""

    zone = Unicode("", config=True, help="the course's time zone, such as Europe/Berlin; empty: UTC")


def zone_of(settings: Config) -> ZoneInfo:
    """The course's zone, by its configuration, then the environment. Raises CourseError for one that nobody knows."""
    name = settings.get("CourseTime", {}).get("zone", "") or os.environ.get(SETTING, "") or "UTC"
    try:
        if _REVERSED.fullmatch(name):
            raise NoMoment
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError, TypeError) as error:
        where = f"{MARKER}, c.CourseTime.zone (or {SETTING})"
        raise CourseError(f"{where}: expected a time zone such as 'Europe/Berlin', got {name!r}.") from error


def parse(text: str, zone: tzinfo) -> datetime:
    """The moment that a text names, in UTC and without a zone, as the gradebook stores it.

    zone: of what does not name its own. A day alone means its last second. Of an hour that exists twice, when clocks
    are set back, the later one counts. Raises NoMoment for a text in another form, an offset or zone that does not
    exist, and a time that clocks skip.
    """
    found = _MOMENT.fullmatch(" ".join(text.split()))
    if found is None:
        raise NoMoment(f"expected a time such as {EXAMPLES}; got {text!r}")
    try:
        local = datetime.fromisoformat(found["day"])
        if found["clock"]:
            local = datetime.combine(local, _clock(found["clock"]))
    except ValueError as error:
        raise NoMoment(f"expected a time such as {EXAMPLES}; got {text!r} ({error})") from None
    if not found["clock"]:
        local += timedelta(days=1, seconds=-1)
    named = _zone(found["zone"] or "", local, zone, text)
    try:
        return in_utc(local, named)
    except NoMoment as error:
        raise NoMoment(f"{text!r}: {error}") from None


def in_utc(local: datetime, zone: tzinfo) -> datetime:
    """The moment at which clocks of a zone show a time; the later one where they show it twice. A time that has a fold
    of its own (`fold=1`, the later one) keeps it. Raises NoMoment for a time that clocks skip."""
    earlier, later = (local.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    back = later.astimezone(zone).replace(tzinfo=None, fold=0)
    if back != local.replace(fold=0):
        name = getattr(zone, "key", str(zone))
        after = earlier.astimezone(zone)
        raise NoMoment(f"there is no {local:%H:%M} on that day in {name}: clocks are set forward, past {after:%H:%M}")
    return max(earlier, later).replace(tzinfo=None)


def earliest(local: datetime, zone: tzinfo) -> datetime:
    """As `in_utc`, but the earlier moment where clocks show a time twice, and no error for one that they skip."""
    return local.replace(tzinfo=zone, fold=0).astimezone(timezone.utc).replace(tzinfo=None)


def plus_days(moment: datetime, days: float, zone: tzinfo) -> datetime:
    """A moment (UTC) so many days later by the clocks of a zone: the same time of day where the days are whole."""
    local = _local(moment, zone).replace(tzinfo=None, fold=0) + timedelta(days=days)
    try:
        return in_utc(local, zone)
    except NoMoment:  # that day skips the time: an hour later by the clock
        return earliest(local, zone)


def shown(moment: datetime, zone: tzinfo) -> str:
    """A moment (UTC) for people: "Monday 2 November 2026, 21:41 CET (20:41 UTC)"; without the second in UTC itself."""
    local, plain = _local(moment, zone), _local(moment, timezone.utc)
    text = f"{local:%A} {local.day} {local:%B %Y, %H:%M} {_name(local, zone)}"
    if not local.utcoffset():
        return text
    day = "" if local.date() == plain.date() else f"{plain.day} {plain:%B}, "
    return f"{text} ({day}{plain:%H:%M} UTC)"


def short(moment: datetime, zone: tzinfo) -> str:
    """The same for a table: "2026-11-02 21:41 CET (20:41 UTC)"."""
    local, plain = _local(moment, zone), _local(moment, timezone.utc)
    text = f"{local:%Y-%m-%d %H:%M} {_name(local, zone)}"
    if not local.utcoffset():
        return text
    return f"{text} ({plain:%H:%M} UTC)" if local.date() == plain.date() else f"{text} ({plain:%Y-%m-%d %H:%M} UTC)"


def is_twice(moment: datetime, zone: tzinfo) -> bool:
    """Whether clocks of the zone show the time of this moment (UTC) twice."""
    local = _local(moment, zone)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


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
    return _local(ts, zone)


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


def _local(moment: datetime, zone: tzinfo) -> datetime:
    return moment.replace(tzinfo=timezone.utc).astimezone(zone)


def _name(local: datetime, zone: tzinfo) -> str:
    name = local.tzname() or ""
    return name if name.isalpha() else getattr(zone, "key", name)


def _clock(text: str) -> Any:
    hours, _, rest = text.partition(":")
    minutes, _, seconds = rest.partition(":")
    whole, _, part = seconds.partition(".")
    micro = int(part.ljust(6, "0")) if part else 0
    return datetime(2000, 1, 1, int(hours), int(minutes), int(whole or 0), micro).time()


def _zone(name: str, local: datetime, zone: tzinfo, text: str) -> tzinfo:
    if not name:
        return zone
    if name.upper() in ("Z", "UTC", "GMT"):
        return timezone.utc
    if found := _OFFSET.fullmatch(name):
        hours, minutes = int(found["hours"]), int(found["minutes"] or 0)
        if hours > MOST_HOURS or minutes > 59:
            raise NoMoment(f"expected an offset such as +01:00, got {name!r} in {text!r}")
        return timezone((1 if found["sign"] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    for fold in (0, 1):  # as the zone's own clocks say it: CET and CEST in Europe/Berlin
        here = local.replace(tzinfo=zone, fold=fold)
        if here.tzname() == name:
            return timezone(here.utcoffset() or timedelta())
    try:
        if _REVERSED.fullmatch(name) or (name.upper() == name and "/" not in name):  # EST, CET: of which summer?
            raise NoMoment
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise NoMoment(
            f"expected an offset such as +01:00 or a zone such as Europe/Berlin, got {name!r} in {text!r}"
        ) from None
