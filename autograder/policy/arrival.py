"""When a submission arrived, how reliable that time is, and what lateness may cost.

A platform knows the submission times, but a download may not contain them. So each time has a source, and a
student pays only for lateness that a source vouches for: the time of a download is the *latest* possible one, and
counts as in time; Canvas's LATE without a time counts as just late.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

STAMP = "timestamp.txt"  # written by a collector that is trusted
PLATFORM = "platform"  # the platform's own time of submission
IN_TIME = "in time on the platform"  # it says so, and gives no time
LATE = "late on the platform"  # likewise
DOWNLOAD = "download"  # no later than this
ARRIVAL = "arrival"  # when it was first seen here
TRUST = {ARRIVAL: 0, DOWNLOAD: 1, IN_TIME: 2, LATE: 2, PLATFORM: 3, STAMP: 4}
JUST_LATE = timedelta(minutes=1)  # as late as something is that is late by nobody knows how much


class Arrival(NamedTuple):
    """A time (UTC, without a zone), and its source."""

    moment: datetime
    by: str


def source(by: str) -> str:
    """The source of a time, without a record's suffix."""
    return by.partition(", ")[0]


def counts_as(moment: datetime, by: str, due: datetime | None, extended: datetime | None) -> datetime:
    """The time (UTC) that counts as the submission time.

    due: for everyone; extended: for this student. A submission that the platform marks as in time is never late; one
    that is only known from a download counts as not later than its due date; one that the platform marks as late
    without a time counts as just after the due date for everyone.
    """
    if due is None or extended is None:
        return moment
    if source(by) in (IN_TIME, DOWNLOAD):
        return min(moment, extended)
    return min(moment, due + JUST_LATE) if source(by) == LATE else moment


def doubt(moment: datetime, by: str, extended: datetime | None) -> str:
    """A remark for the teacher about this time, or ""."""
    if extended is None or moment <= extended:
        return ""
    if source(by) == DOWNLOAD:
        return (
            "downloaded after the due date, and the download has no submission time: counted as in time. "
            "Collect again with the platform's times (--worksheet with Moodle's grading worksheet, or --times)"
        )
    if source(by) == LATE:
        return (
            "Canvas says LATE, and not by how much: counted as just late. Collect again with --times, a table of "
            "Canvas's submissions with their submitted_at"
        )
    if source(by) == ARRIVAL:
        return "first seen here after the due date, and counted as late from then: there is no submission time"
    return ""
