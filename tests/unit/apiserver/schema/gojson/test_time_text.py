"""Timestamps as upstream parses them; all are recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.apiserver.schema.gojson.time_text import InstantError, read_micro_time, read_time

AS_TIME = 'as "2006-01-02T15:04:05Z07:00": cannot parse'
AS_MICRO = 'as "2006-01-02T15:04:05.000000Z07:00": cannot parse'


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T0:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:50+24:00", "2023-12-31T00:00:50Z"),
        ("2024-01-01T00:00:00+23:60", "2023-12-31T00:00:00Z"),
    ],
)
def test_unusual_timestamps_are_accepted(text, kept):
    assert format_timestamp(read_time(text)) == kept


def test_a_micro_time_is_read_and_written():
    assert format_micro_time(read_micro_time("1999-01-01T0:00:00,000001+00:00")) == (
        "1999-01-01T00:00:00.000001Z"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2024-13-01T00:00:00Z", "month out of range"),
        ("2024-00-10T00:00:00Z", "month out of range"),
        ("2023-02-29T00:00:00Z", "day out of range"),
        ("2024-01-01T24:00:m0Z", "hour out of range"),
        ("2024-01-01T00:60:00Z", "minute out of range"),
        ("2024-01-09T00:00:60Z", "second out of range"),
        ("0001-01-01T00:00:00+41:00", "time zone offset hour out of range"),
        ("2024-01-01T00:00:00Z7", 'extra text: "7"'),
        ("2024-01-01T00:00:00Zµ", r'extra text: "\xc2\xb5"'),
    ],
)
def test_an_invalid_timestamp_is_refused_with_its_problem(text, problem):
    with pytest.raises(InstantError) as refused:
        read_time(text)
    assert str(refused.value).endswith(f'": {problem}')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"', rf'parsing time "\"" {AS_TIME} "\"" as "2006"'),
        ("é", rf'parsing time "\xc3\xa9" {AS_TIME} "\xc3\xa9" as "2006"'),
        ("2024-01-01", f'parsing time "2024-01-01" {AS_TIME} "" as "T"'),
        (
            "2024-01-01T00:00:00",
            f'parsing time "2024-01-01T00:00:00" {AS_TIME} "" as "Z07:00"',
        ),
    ],
)
def test_a_text_that_is_not_a_timestamp_is_refused(text, problem):
    with pytest.raises(InstantError) as refused:
        read_time(text)
    assert str(refused.value) == problem


def test_a_micro_time_without_six_decimals_is_refused():
    with pytest.raises(InstantError) as refused:
        read_micro_time("2024-01-01T00:00:00.123Z")
    assert str(refused.value) == (
        f'parsing time "2024-01-01T00:00:00.123Z" {AS_MICRO} ".123Z" as ".000000"'
    )


def test_timestamps_outside_the_years_1_to_9999_are_refused():
    for text in ("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"):
        with pytest.raises(InstantError):
            read_time(text)
