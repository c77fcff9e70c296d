"""Instants of periodic work by arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.nodelifecycle.beat import Beat


@pytest.mark.parametrize(
    ("instant", "before", "at_or_after", "after"),
    [
        (0, 2, 7, 7),
        (6, 2, 7, 7),
        (7, 2, 7, 12),
        (8, 7, 12, 12),
        (12, 7, 12, 17),
        (100, 97, 102, 102),
    ],
)
def test_beats_around_an_instant(instant, before, at_or_after, after):
    beat = Beat(7, 5)
    found = (beat.before(instant), beat.at_or_after(instant), beat.after(instant))
    assert found == (before, at_or_after, after)


@given(st.integers(-50, 50), st.integers(1, 9), st.integers(-100, 200))
def test_beats_are_those_of_a_list(first, period, instant):
    beat, beats = Beat(first, period), range(first, 400, period)
    assert beat.at_or_after(instant) == next(one for one in beats if one >= instant)
    assert beat.after(instant) == next(one for one in beats if one > instant)
    assert beat.before(instant) == max(
        (one for one in beats if one < instant), default=first - period
    )
