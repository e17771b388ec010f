"""How nbgrader and formgrader read a time under the course's configuration."""

import sys
from datetime import datetime
from types import SimpleNamespace

import pytest
from nbgrader import utils
from nbgrader.server_extensions.formgrader import apihandlers
from traitlets.config import Config

from autograder.policy import course_time


@pytest.fixture(autouse=True)
def patched():
    """Restore nbgrader for other tests."""
    names = ("parse_utc", "as_timezone", "to_numeric_tz")
    modules = [module for name, module in sys.modules.items() if name.startswith("nbgrader.")]
    before = [(module, name, getattr(module, name)) for module in modules for name in names if hasattr(module, name)]
    put, current = apihandlers.AssignmentHandler.put, list(course_time._current)
    yield
    for module, name, value in before:
        setattr(module, name, value)
    apihandlers.AssignmentHandler.put, course_time._current[:] = put, current


def in_zone(zone):
    course_time.install(Config(CourseTime={"zone": zone}))


@pytest.mark.parametrize(
    ("zone", "typed", "moment"),
    [
        ("Europe/Berlin", "2026-11-02T23:59", "2026-11-02 22:59"),
        ("Europe/Berlin", "2026-11-02T23:59 Europe/Berlin", "2026-11-02 22:59"),  # was an error of the server's
        ("Europe/Berlin", "2026-11-02T23:59 CET", "2026-11-02 22:59"),  # was taken for UTC
        ("Europe/Berlin", "2026-11-02T23:59 UTC+1", "2026-11-02 22:59"),  # moved an hour the wrong way
        ("Europe/Berlin", "2026-11-02T23:59 +0100", "2026-11-02 22:59"),
        ("America/Los_Angeles", "2026-11-02T23:59", "2026-11-03 07:59"),
        ("", "2026-11-02T23:59", "2026-11-02 23:59"),
    ],
)
def test_a_due_date_typed_into_formgrader_is_the_moment_that_it_says(zone, typed, moment):
    in_zone(zone)
    assert utils.parse_utc(typed) == datetime.fromisoformat(moment)


@pytest.mark.parametrize("month", [3, 7, 11])
def test_saving_formgrader_s_field_unchanged_changes_no_due_date(month):
    in_zone("Europe/Berlin")
    due = datetime(2026, month, 2, 21, 59)
    shown = utils.as_timezone(due, "UTC").replace(tzinfo=None).isoformat()
    assert utils.parse_utc(f"{shown} {utils.to_numeric_tz('UTC')}") == due


def test_near_the_night_of_the_change_nbgrader_shows_what_clocks_show():
    in_zone("Europe/Berlin")
    shown = [f"{utils.as_timezone(datetime(2026, 10, 25, hour, 30), 'UTC'):%H:%M %Z}" for hour in (0, 1)]
    assert shown == ["02:30 CEST", "02:30 CET"]


@pytest.mark.parametrize("zone", ["Nowhere", "PST", "+99", "CET"])
def test_a_zone_that_nobody_can_mean_is_answered_with_a_sentence(zone):
    in_zone("America/Los_Angeles")

    def refuse(_, **given):
        utils.parse_utc(given["duedate"])

    handler = SimpleNamespace(
        get_json_body=lambda: {"duedate_notimezone": "2026-07-02T23:59", "duedate_timezone": zone},
        gradebook=SimpleNamespace(update_or_create_assignment=refuse),
        log=SimpleNamespace(error=lambda _: None),
        current_user="teacher",
        check_xsrf_cookie=lambda: None,
        settings={"nbgrader_formgrader": SimpleNamespace(url_prefix="", load_config=dict)},
    )
    put = apihandlers.AssignmentHandler.put
    inner = put.__wrapped__
    while hasattr(inner, "__wrapped__"):  # past the checks of who asks
        inner = inner.__wrapped__
    apihandlers.AssignmentHandler.put = inner
    course_time._refuse_in_words()
    with pytest.raises(apihandlers.web.HTTPError) as raised:
        apihandlers.AssignmentHandler.put(handler, "a1")
    assert raised.value.status_code == 400
    assert "expected an offset such as +01:00" in raised.value.reason and zone in raised.value.reason
