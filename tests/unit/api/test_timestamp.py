"""Timestamps and durations as texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.timestamp import (
    format_duration,
    format_micro_time,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)

SECOND = 1_000_000_000
NEW_YEAR_2026 = 1_767_225_600 * SECOND


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00Z", NEW_YEAR_2026),
        ("2026-01-01T02:00:00+02:00", NEW_YEAR_2026),
        ("2025-12-31T18:30:00-05:30", NEW_YEAR_2026),
        ("2026-01-01T00:00:00.5Z", NEW_YEAR_2026 + SECOND // 2),
        ("2026-01-01T00:00:00.000001Z", NEW_YEAR_2026 + 1000),
        ("2026-01-01T00:00:00.1234567899Z", NEW_YEAR_2026 + 123_456_789),
        ("1969-12-31T23:59:59.9Z", -100_000_000),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND),
    ],
)
def test_a_timestamp_is_parsed_to_ns_since_1970(text, instant):
    """Offsets and fractions are supported; digits below a nanosecond are dropped."""
    assert parse_timestamp(text) == instant


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-01-01", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00z",
     "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-01-01T24:00:01Z", "2026-01-01T00:00:60Z",
     "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+0200", "2026-1-1T00:00:00Z",
     "2026-01-01T00:00:00Z\n", "٢٠٢٦-01-01T00:00:00Z"],
)  # fmt: skip
def test_an_invalid_timestamp_is_refused(text):
    """The message contains the text."""
    with pytest.raises(ValueError, match="timestamp"):
        parse_timestamp(text)


def test_formats_truncate_to_their_precision():
    """metav1.Time has seconds, MicroTime has microseconds; both are in UTC."""
    instant = NEW_YEAR_2026 + 123_456_789
    assert format_timestamp(instant) == "2026-01-01T00:00:00Z"
    assert format_micro_time(instant) == "2026-01-01T00:00:00.123456Z"
    assert format_timestamp(-1) == "1969-12-31T23:59:59Z"
    assert format_micro_time(-1) == "1969-12-31T23:59:59.999999Z"


@given(st.integers(-(2**62), 2**62))
def test_timestamps_round_trip(instant):
    """Each format is parsed to the instant, truncated to the format's precision."""
    assert parse_timestamp(format_timestamp(instant)) == instant - instant % SECOND
    assert parse_timestamp(format_micro_time(instant)) == instant - instant % 1000


@pytest.mark.parametrize(
    ("text", "duration", "written"),
    [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("1ns", 1, "1ns"),
        ("100us", 100_000, "100µs"),
        ("1.5\u00b5s", 1500, "1.5µs"),
        ("2\u03bcs", 2000, "2µs"),
        ("500ms", SECOND // 2, "500ms"),
        ("1.5s", 3 * SECOND // 2, "1.5s"),
        (".5s", SECOND // 2, "500ms"),
        ("1.s", SECOND, "1s"),
        ("90s", 90 * SECOND, "1m30s"),
        ("20m", 1200 * SECOND, "20m0s"),
        ("1h30m", 5400 * SECOND, "1h30m0s"),
        ("1h0.001s", 3600 * SECOND + 1_000_000, "1h0m0.001s"),
        ("-1h", -3600 * SECOND, "-1h0m0s"),
        ("+5s", 5 * SECOND, "5s"),
        ("30s1h", 3630 * SECOND, "1h0m30s"),
        ("0.1ns", 0, "0s"),
    ],
)
def test_durations_are_parsed_and_formatted_as_in_go(text, duration, written):
    """The texts have every unit, fractions, signs and any order."""
    assert parse_duration(text) == duration
    assert format_duration(duration) == written


@pytest.mark.parametrize(
    "text",
    ["", "-", "5", "1d", "h", ".s", "1h 30m", "1h-30m", "--1s", "1e3s", "1hh", "s1", "300y",
     "3000000h", "9" * 5000 + "s"],
)  # fmt: skip
def test_an_invalid_duration_is_refused(text):
    """A number needs a unit, except 0."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_durations_round_trip(duration):
    """No precision is lost, down to the nanosecond."""
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])
def test_a_year_outside_1_to_9999_in_utc_is_refused(text):
    """So every parsed instant can be formatted."""
    with pytest.raises(ValueError, match="in UTC, its year is not from 1 to 9999"):
        parse_timestamp(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_the_first_and_the_last_timestamp_round_trip(text):
    assert format_timestamp(parse_timestamp(text)) == text


def test_an_instant_after_the_year_9999_cannot_be_formatted():
    with pytest.raises(ValueError, match="is not from 1 to 9999"):
        format_timestamp(2**80)
