"""HighestTotals gives the same positions as a search of all totals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.framework.plan.highest_totals import HighestTotals
from fairlead.engine.state.change_log import ChangeLog

WIDTH = 2_000  # few enough changes of so many totals are followed one by one
CHANGES = st.lists(st.tuples(st.integers(0, WIDTH - 1), st.integers(-1, 4)), max_size=9)


def search(totals) -> list[int]:
    return np.flatnonzero(totals == totals.max()).tolist()


@given(start=st.integers(-1, 4), spikes=CHANGES, rounds=st.lists(CHANGES, max_size=8))
def test_positions_after_changes_equal_those_of_a_search(start, spikes, rounds) -> None:
    """After few or many changes, the positions are those of the highest total."""
    log: ChangeLog[int] = ChangeLog()
    totals = np.full(WIDTH, start, np.int64)
    for row, total in spikes:
        totals[row] = total
    highest = HighestTotals(log)
    assert list(highest.find(totals)) == search(totals)
    for changes in rounds:
        for row, total in changes:
            totals[row] = total
            log.append(row)
        assert list(highest.find(totals)) == search(totals)


@given(start=st.integers(0, 4), spikes=CHANGES, rounds=st.lists(CHANGES, max_size=8))
def test_only_masked_positions_count(start, spikes, rounds) -> None:
    """With a mask, the positions are those that a search of the masked totals finds."""
    log: ChangeLog[int] = ChangeLog()
    totals = np.full(WIDTH, start, np.int64)
    mask = np.arange(WIDTH) % 3 > 0
    highest = HighestTotals(log, mask)
    for changes in (spikes, *rounds):
        for row, total in changes:
            totals[row] = total
            log.append(row)
        assert list(highest.find(totals)) == search(np.where(mask, totals, -1))


def test_a_change_outside_the_log_counts_after_a_reset() -> None:
    """A total that changed without an entry in the log is found after `reset`."""
    totals = np.array([5, 7, 7, 3])
    highest = HighestTotals(ChangeLog())
    assert list(highest.find(totals)) == [1, 2]
    totals[3] = 9
    highest.reset()
    assert list(highest.find(totals)) == [3]
