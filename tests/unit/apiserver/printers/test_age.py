"""Durations and ages as kubectl prints them."""

from __future__ import annotations

import pytest

from fairlead.apiserver.printers.age import age, human_duration

S = 1_000_000_000
M, H, D = 60 * S, 3600 * S, 86400 * S


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (-2 * S, "<invalid>"),
        (-1 * S, "0s"),
        (-2 * S + 1, "0s"),
        (0, "0s"),
        (S, "1s"),
        (70 * S, "70s"),
        (119 * S, "119s"),
        (2 * M, "2m"),
        (190 * S, "3m10s"),
        (10 * M, "10m"),
        (70 * M, "70m"),
        (179 * M, "179m"),
        (3 * H, "3h"),
        (3 * H + 10 * M, "3h10m"),
        (8 * H, "8h"),
        (47 * H, "47h"),
        (49 * H, "2d1h"),
        (7 * D, "7d"),
        (8 * D, "8d"),
        (729 * D, "729d"),
        (730 * D, "2y"),
        (735 * D, "2y5d"),
        (8 * 365 * D + D, "8y"),
    ],
)
def test_a_duration_is_printed_with_few_digits(duration, expected):
    assert human_duration(duration) == expected


def test_an_object_without_a_timestamp_has_an_unknown_age():
    assert age(None, 5) == "<unknown>"
    assert age("", 5) == "<unknown>"


def test_an_age_is_counted_from_now():
    assert age("1970-01-01T00:00:05Z", 65 * S) == "60s"
