"""The instants of periodic work, computed by arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.nodelifecycle.period import Period


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
def test_the_periodic_instants_before_and_after_an_instant(instant, before, at_or_after, after):
    period = Period(7, 5)
    found = (period.before(instant), period.at_or_after(instant), period.after(instant))
    assert found == (before, at_or_after, after)


@given(st.integers(-50, 50), st.integers(1, 9), st.integers(-100, 200))
def test_the_instants_equal_a_generated_list(first, length, instant):
    period, instants = Period(first, length), range(first, 400, length)
    assert period.at_or_after(instant) == next(one for one in instants if one >= instant)
    assert period.after(instant) == next(one for one in instants if one > instant)
    assert period.before(instant) == max(
        (one for one in instants if one < instant), default=first - length
    )
