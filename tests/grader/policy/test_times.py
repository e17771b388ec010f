"""Time zones: what a written time means, in both nights in which clocks change, and what nobody can mean."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from traitlets.config import Config

from autograder.course import CourseError
from autograder.policy import course_time, times
from autograder.policy.times import NoMoment

UTC, BERLIN, ANGELES = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin"), ZoneInfo("America/Los_Angeles")


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2026-03-04 18:00", UTC, "2026-03-04 18:00"),
        ("2026-03-04 18:00", BERLIN, "2026-03-04 17:00"),
        ("2026-07-04 18:00", BERLIN, "2026-07-04 16:00"),
        ("2026-03-04", BERLIN, "2026-03-04 22:59:59"),
        ("2026-03-04T18:00:30.5", ANGELES, "2026-03-05 02:00:30.500000"),
        ("2026-03-04 18:00 +0100", UTC, "2026-03-04 17:00"),  # nbgrader: 100 seconds
        ("2026-03-04 18:00 +01:00", UTC, "2026-03-04 17:00"),
        ("2026-03-04 18:00+01:00", UTC, "2026-03-04 17:00"),
        ("2026-03-04 18:00 -8", UTC, "2026-03-05 02:00"),  # nbgrader: 8 seconds
        ("2026-03-04 18:00 −08", UTC, "2026-03-05 02:00"),
        ("2026-03-04 18:00 UTC+1", UTC, "2026-03-04 17:00"),  # nbgrader: 19:00
        ("2026-03-04 18:00 UTC", BERLIN, "2026-03-04 18:00"),
        ("2026-03-04T18:00Z", BERLIN, "2026-03-04 18:00"),
        ("2026-03-04 18:00 Asia/Kolkata", BERLIN, "2026-03-04 12:30"),
        ("2026-03-04 18:00 CET", BERLIN, "2026-03-04 17:00"),  # the course's own clocks say CET
        ("2026-07-04 18:00 PDT", ANGELES, "2026-07-05 01:00"),
        # the hour that exists twice: the later one, or the one that is named
        ("2026-10-25 02:30", BERLIN, "2026-10-25 01:30"),
        ("2026-10-25 02:30 CEST", BERLIN, "2026-10-25 00:30"),
        ("2026-10-25 02:30 CET", BERLIN, "2026-10-25 01:30"),
        ("2026-11-01 01:30", ANGELES, "2026-11-01 09:30"),
        ("2026-11-01", ANGELES, "2026-11-02 07:59:59"),  # a day of 25 hours
        ("2026-03-29", BERLIN, "2026-03-29 21:59:59"),  # of 23
    ],
)
def test_a_written_time_means_one_moment(text, zone, moment):
    assert times.parse(text, zone) == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        ("2026-03-29 02:30", BERLIN, "there is no 02:30 on that day in Europe/Berlin"),
        ("2026-03-08 02:30", ANGELES, "there is no 02:30 on that day in America/Los_Angeles"),
        ("2026-03-04 18:00 CET", UTC, "expected an offset such as +01:00 or a zone such as Europe/Berlin, got 'CET'"),
        ("2026-07-04 18:00 CET", BERLIN, "got 'CET'"),  # in summer nobody's clock there says so
        ("2026-03-04 18:00 Etc/GMT+8", UTC, "got 'Etc/GMT+8'"),
        ("2026-03-04 18:00 Nowhere", UTC, "got 'Nowhere'"),
        ("2026-03-04 18:00 +100", UTC, "got '+100'"),
        ("2026-03-04 18:00 +15", UTC, "expected an offset such as +01:00, got '+15'"),
        ("2026-03-04 18:00 +01:75", UTC, "got '+01:75'"),
        ("04.03.2026", UTC, "expected a time such as 2026-03-04"),
        ("3/4/2026 18:00", UTC, "expected a time such as"),
        ("2026-02-30", UTC, "expected a time such as"),
        ("2026-03-04 25:00", UTC, "expected a time such as"),
        ("tomorrow", UTC, "expected a time such as"),
        ("", UTC, "expected a time such as"),
    ],
)
def test_what_names_no_moment_is_refused_in_a_sentence(text, zone, words):
    with pytest.raises(NoMoment) as raised:
        times.parse(text, zone)
    assert words in str(raised.value)


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Los_Angeles", "America/Sao_Paulo", "Asia/Kathmandu"])
def test_what_is_shown_is_read_as_the_same_moment_in_every_hour_around_the_nights(name):
    zone = ZoneInfo(name)
    for night in ("2026-03-27", "2026-10-23", "2026-03-06", "2026-10-30"):
        for hour in range(72):
            moment = datetime.fromisoformat(night) + timedelta(hours=hour)
            assert times.parse(times.short(moment, zone).partition(" (")[0], zone) == moment


def test_a_moment_is_shown_in_local_time_and_in_utc():
    moment = datetime(2026, 11, 2, 22, 30)
    assert times.shown(moment, BERLIN) == "Monday 2 November 2026, 23:30 CET (22:30 UTC)"
    assert times.shown(moment, ANGELES) == "Monday 2 November 2026, 14:30 PST (22:30 UTC)"
    assert times.shown(moment, UTC) == "Monday 2 November 2026, 22:30 UTC"
    assert times.shown(datetime(2026, 11, 3, 5), ANGELES).endswith("21:00 PST (3 November, 05:00 UTC)")
    assert times.short(datetime(2026, 11, 3, 5), ANGELES) == "2026-11-02 21:00 PST (2026-11-03 05:00 UTC)"


def test_whole_days_keep_the_time_of_day_over_the_nights_in_which_clocks_change():
    due = times.parse("2026-10-24 23:59", BERLIN)
    assert times.plus_days(due, 1, BERLIN) == times.parse("2026-10-25 23:59", BERLIN)
    assert times.plus_days(times.parse("2026-03-07 23:59", ANGELES), 2, ANGELES) == times.parse(
        "2026-03-09 23:59", ANGELES
    )
    assert times.plus_days(times.parse("2026-03-28 02:30", BERLIN), 1, BERLIN) == datetime(2026, 3, 29, 1, 30)


@pytest.mark.parametrize("name", ["Berlin", "CEST", "UTC+1", "Etc/GMT+1", "../etc/passwd"])
def test_a_course_s_zone_that_nobody_knows_is_named(name):
    with pytest.raises(CourseError, match="expected a time zone such as 'Europe/Berlin', got"):
        course_time.zone_of(Config(CourseTime={"zone": name}))


def test_the_zone_is_the_setting_s_then_the_environment_s_then_utc(monkeypatch):
    monkeypatch.delenv(course_time.SETTING, raising=False)
    assert course_time.zone_of(Config()).key == "UTC"
    monkeypatch.setenv(course_time.SETTING, "Asia/Tokyo")
    assert course_time.zone_of(Config()).key == "Asia/Tokyo"
    assert course_time.zone_of(Config(CourseTime={"zone": "Europe/Berlin"})).key == "Europe/Berlin"
