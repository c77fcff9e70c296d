"""Durations in scenarios and options."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers, read_duration


@pytest.mark.parametrize(
    ("value", "expected_s"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("500ms", 0.5), (0, 0), (2.5, 2.5), (600, 600)],
)
def test_durations_are_strings_or_seconds(value, expected_s):
    assert read_duration(value) == seconds(expected_s)


@pytest.mark.parametrize(
    "value", ["", "soon", "10", "-5m", -1, float("nan"), float("inf"), 1e300, "999999h"]
)
def test_invalid_durations_are_refused(value):
    with pytest.raises(ValueError):  # noqa: PT011 - the messages are tested where users see them
        read_duration(value)


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0, "0s"),
        (0.000001, "0s"),
        (0.0124, "0.012s"),
        (2.54, "2.5s"),
        (9.96, "10s"),
        (42.025, "42s"),
        (59.9996, "1m00s"),
        (365, "6m05s"),
        (3720, "1h02m"),
    ],
)
def test_durations_are_formatted_with_two_units(duration_s, text):
    assert for_readers(seconds(duration_s)) == text
