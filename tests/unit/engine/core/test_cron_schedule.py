"""Cron schedules: the next and the most recent scheduled time."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.engine.core.cron_schedule import (
    NoSuchDateError,
    ScheduleError,
    most_recent,
    next_time,
    read_schedule,
)
from fairlead.engine.core.instant import seconds


def after(text, instant, zone=""):
    due = read_schedule(text, zone).after(parse_timestamp(instant))
    return None if due is None else format_timestamp(due)


@pytest.mark.parametrize(
    ("text", "instant", "expected"),
    [
        ("*/5 * * * *", "2027-03-01T12:00:00Z", "2027-03-01T12:05:00Z"),
        ("*/5 * * * *", "2027-03-01T12:04:59Z", "2027-03-01T12:05:00Z"),
        ("0 3 * * *", "2027-03-01T03:00:01Z", "2027-03-02T03:00:00Z"),
        ("@hourly", "2027-03-01T12:30:00Z", "2027-03-01T13:00:00Z"),
        ("@weekly", "2027-03-01T12:30:00Z", "2027-03-07T00:00:00Z"),
        ("@every 90s", "2027-03-01T12:30:00Z", "2027-03-01T12:31:30Z"),
        ("0 0 ? * MON", "2027-03-02T00:00:00Z", "2027-03-08T00:00:00Z"),
        ("0 0 31 * *", "2027-04-01T00:00:00Z", "2027-05-31T00:00:00Z"),
        ("0 0 13 * 5", "2027-03-01T00:00:00Z", "2027-03-05T00:00:00Z"),
        ("0 0 */31 * 5", "2027-03-01T00:00:00Z", "2027-03-05T00:00:00Z"),
        ("0 0 */1 * 5", "2027-03-01T00:00:00Z", "2027-03-05T00:00:00Z"),
        ("0 0 5,* * 5", "2027-03-05T00:00:00Z", "2027-03-12T00:00:00Z"),
        ("0 0 * mar wed", "2027-03-04T00:00:00Z", "2027-03-10T00:00:00Z"),
        ("0 0 * * */7", "2027-03-02T00:00:00Z", "2027-03-07T00:00:00Z"),
    ],
)
def test_the_next_scheduled_time(text, instant, expected):
    assert after(text, instant) == expected


def test_a_schedule_uses_its_time_zone():
    """Three o'clock in Berlin is two o'clock in winter and one o'clock in summer."""
    assert after("0 3 * * *", "2027-01-01T12:00:00Z", "Europe/Berlin") == "2027-01-02T02:00:00Z"
    assert after("0 3 * * *", "2027-07-01T12:00:00Z", "Europe/Berlin") == "2027-07-02T01:00:00Z"


def test_a_time_that_the_clock_skips_is_skipped():
    """On 28 March 2027, clocks in Berlin jump from 02:00 to 03:00."""
    found = after("30 2 * * *", "2027-03-27T12:00:00Z", "Europe/Berlin")
    assert found == "2027-03-29T00:30:00Z"


def test_a_time_that_the_clock_repeats_is_repeated():
    """On 31 October 2027, clocks in Berlin show 02:30 at 00:30 UTC and at 01:30 UTC."""
    first = after("30 2 * * *", "2027-10-30T12:00:00Z", "Europe/Berlin")
    assert first == "2027-10-31T00:30:00Z"
    second = after("30 2 * * *", first, "Europe/Berlin")
    assert second == "2027-10-31T01:30:00Z"
    assert after("30 2 * * *", second, "Europe/Berlin") == "2027-11-01T01:30:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "", "* * * *", "61 * * * *", "@every soon", "@never", "a b c d e",
        "0 0 * * 7", "0 0 L * *", "0 0 LW * *", "0 0 * * 5L", "0 0 * * 5#2", "0 0 30-31 2 x",
    ],
)  # fmt: skip
def test_invalid_schedules_are_refused(text):
    with pytest.raises(ScheduleError) as problem:
        read_schedule(text)
    assert not isinstance(problem.value, NoSuchDateError)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 30-31 feb *"])
def test_the_error_names_a_date_that_does_not_exist(text):
    with pytest.raises(NoSuchDateError):
        read_schedule(text)


@pytest.mark.parametrize("text", ["@hourly", "@every 5m"])
def test_an_unknown_time_zone_is_refused(text):
    with pytest.raises(ScheduleError, match="unknown time zone Moon/Crater"):
        read_schedule(text, "Moon/Crater")


@pytest.mark.parametrize(
    ("since", "now", "expected"),
    [
        ("2027-03-01T12:01:00Z", "2027-03-01T12:04:00Z", None),
        ("2027-03-01T12:01:00Z", "2027-03-01T12:05:00Z", "2027-03-01T12:05:00Z"),
        ("2027-03-01T12:01:00Z", "2027-03-01T12:14:00Z", "2027-03-01T12:10:00Z"),
        ("2017-03-01T12:01:00Z", "2027-03-01T12:14:00Z", "2027-03-01T12:10:00Z"),
    ],
)
def test_the_most_recent_scheduled_time(since, now, expected):
    """The number of scheduled times in between does not matter."""
    schedule = read_schedule("*/5 * * * *")
    found = most_recent(schedule, parse_timestamp(since), parse_timestamp(now))
    assert (None if found is None else format_timestamp(found)) == expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [("2027-03-09T09:30:00Z", "2027-03-09T09:00:00Z"), ("2027-03-09T07:00:00Z", None)],
)
def test_the_most_recent_time_before_a_long_gap_is_not_found(now, expected):
    """Upstream searches from two hours before `now` because the first interval is an hour."""
    schedule = read_schedule("0 8-10 * * *")
    found = most_recent(schedule, parse_timestamp("2027-03-01T00:00:00Z"), parse_timestamp(now))
    assert (None if found is None else format_timestamp(found)) == expected


def test_an_every_schedule_counts_from_the_last_scheduled_time():
    schedule = read_schedule("@every 1h")
    assert most_recent(schedule, 0, seconds(3 * 3600 + 5)) == seconds(3 * 3600)
    assert next_time(schedule, 0, seconds(3 * 3600 + 5)) == seconds(4 * 3600)
