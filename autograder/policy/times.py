"""Reads and shows moments in time.

The gradebook stores moments in UTC without saying so. People write and read local time. A moment is read strictly: a
date in ISO order, and an offset or a zone that the time zone database knows. Anything else is refused with a sentence,
because a guess moves a deadline by hours.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

EXAMPLES = (
    "2026-03-04 (the end of that day), 2026-03-04 18:00, 2026-03-04 18:00 +01:00 or 2026-03-04 18:00 Europe/Berlin"
)
MOST_HOURS = 14  # no zone on earth is farther from UTC

_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})(?:(?:T|\s+)(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?\s*(?P<zone>\S.*)?"
)
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*(?P<sign>[+\-−])(?P<hours>\d{1,2}(?=:|$)|\d{2})(?::?(?P<minutes>\d{2}))?")
REVERSED = re.compile(r"Etc/GMT[+-]\d+", re.IGNORECASE)


class NoMoment(ValueError):
    """A text that names no time, or more than one; the message says what was expected."""


def parse(text: str, zone: tzinfo) -> datetime:
    """The time that a text names, in UTC and without a zone, as the gradebook stores it.

    zone: of texts without one. A day without a time means its last second. In an hour that exists twice, when clocks
    are set back, the later time counts. Raises NoMoment for a text in another form, an offset or zone that does not
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
    """The UTC time at which clocks of a zone show a time; the later one if they show it twice. A time with a fold
    (`fold=1`, the later one) keeps it. Raises NoMoment for a time that clocks skip."""
    earlier, later = (local.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    back = later.astimezone(zone).replace(tzinfo=None, fold=0)
    if back != local.replace(fold=0):
        name = getattr(zone, "key", str(zone))
        after = earlier.astimezone(zone)
        raise NoMoment(f"there is no {local:%H:%M} on that day in {name}: clocks are set forward, past {after:%H:%M}")
    return max(earlier, later).replace(tzinfo=None)


def earliest(local: datetime, zone: tzinfo) -> datetime:
    """Like `in_utc`, but the earlier time if clocks show a time twice, and no error for one that they skip."""
    return local.replace(tzinfo=zone, fold=0).astimezone(timezone.utc).replace(tzinfo=None)


def plus_days(moment: datetime, days: float, zone: tzinfo) -> datetime:
    """A time (UTC), this number of days later by the clocks of a zone: the same time of day for whole days."""
    local = in_zone(moment, zone).replace(tzinfo=None, fold=0) + timedelta(days=days)
    try:
        return in_utc(local, zone)
    except NoMoment:  # that day skips the time: an hour later by the clock
        return earliest(local, zone)


def shown(moment: datetime, zone: tzinfo) -> str:
    """A time (UTC) in words: "Monday 2 November 2026, 21:41 CET (20:41 UTC)"; without the parentheses in UTC itself."""
    local, plain = in_zone(moment, zone), in_zone(moment, timezone.utc)
    text = f"{local:%A} {local.day} {local:%B %Y, %H:%M} {_name(local, zone)}"
    if not local.utcoffset():
        return text
    day = "" if local.date() == plain.date() else f"{plain.day} {plain:%B}, "
    return f"{text} ({day}{plain:%H:%M} UTC)"


def short(moment: datetime, zone: tzinfo) -> str:
    """The same for a table: "2026-11-02 21:41 CET (20:41 UTC)"."""
    local, plain = in_zone(moment, zone), in_zone(moment, timezone.utc)
    text = f"{local:%Y-%m-%d %H:%M} {_name(local, zone)}"
    if not local.utcoffset():
        return text
    return f"{text} ({plain:%H:%M} UTC)" if local.date() == plain.date() else f"{text} ({plain:%Y-%m-%d %H:%M} UTC)"


def is_twice(moment: datetime, zone: tzinfo) -> bool:
    """Whether clocks of the zone show the local time of this UTC time twice."""
    local = in_zone(moment, zone)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """A time (UTC, without a zone) as clocks of a zone show it."""
    return moment.replace(tzinfo=timezone.utc).astimezone(zone)


def _name(local: datetime, zone: tzinfo) -> str:
    name = local.tzname() or ""
    return name if name.isalpha() else getattr(zone, "key", name)


def _clock(text: str) -> time:
    hours, minutes, seconds = [*text.split(":"), "0"][:3]
    whole, _, part = seconds.partition(".")
    return time(int(hours), int(minutes), int(whole), int(part.ljust(6, "0")))


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
        if REVERSED.fullmatch(name) or (name.upper() == name and "/" not in name):  # EST, CET: of which summer?
            raise NoMoment
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise NoMoment(
            f"expected an offset such as +01:00 or a zone such as Europe/Berlin, got {name!r} in {text!r}"
        ) from None
