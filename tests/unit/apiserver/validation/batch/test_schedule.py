"""Schedules and time zones of CronJobs."""

from __future__ import annotations

import pytest

from fairlead.apiserver.validation.batch.schedule import schedule_problem, time_zone_problem


@pytest.mark.parametrize(
    "text",
    ["*/5 * * * *", "0 0 1 jan *", "0 9-17/2 * * mon-fri", "1,2,3 * * * ?", "@daily", "@every 1h"],
)
def test_a_valid_schedule_is_accepted(text):
    """A schedule that upstream's cron library parses is accepted."""
    assert schedule_problem(text) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("every day", "expected exactly 5 fields, found 2: [every day]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("99 * * * *", "end of range (99) above maximum (59): 99"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("*/2/3 * * * *", "too many slashes: */2/3"),
        ("@never", "unrecognized descriptor: @never"),
        (
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
        ),
    ],
)
def test_an_invalid_schedule_is_refused_with_upstreams_message(text, problem):
    """The message is that of upstream's cron library."""
    assert schedule_problem(text) == problem


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Europe/Berlin", ""),
        ("Etc/UTC", ""),
        ("", "timeZone must be nil or non-empty string"),
        ("Mars/X", "unknown time zone Mars/X"),
        ("Europe", "unknown time zone Europe"),
        ("x" * 300, f"unknown time zone {'x' * 300}"),
        ("../etc/passwd", "unknown time zone ../etc/passwd"),
        (
            "local",
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ),
    ],
)
def test_only_iana_time_zones_are_accepted(name, problem):
    """Other names are not known on every machine."""
    assert time_zone_problem(name) == problem
