"""Instants: integers of nanoseconds, and conversions to seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import floor_second, seconds, to_seconds


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (1, 10**9), (0.647, 647_000_000), (1e-9, 1), (4e-10, 0), (-1.5, -1_500_000_000)],
)
def test_seconds_round_to_the_nearest_nanosecond(value, expected):
    """A float that is inexact in binary is converted to the decimal number as written."""
    assert seconds(value) == expected


@given(st.integers(-(10**12), 10**12))
def test_whole_milliseconds_survive_the_round_trip(milliseconds):
    """Times in files have a resolution of milliseconds."""
    assert round(to_seconds(seconds(milliseconds / 1000)) * 1000) == milliseconds


@given(st.integers(-(10**18), 10**18))
def test_floor_second_is_the_last_whole_second(instant):
    """The result is at most a second earlier, also before the epoch."""
    floor = floor_second(instant)
    assert floor % NANOSECONDS_PER_SECOND == 0
    assert floor <= instant < floor + NANOSECONDS_PER_SECOND
