"""TimerQueue: entries that are due at an instant, in a total order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.timer_queue import TimerQueue


class Unordered:
    """A payload that cannot be compared with others."""


def test_an_empty_queue_has_no_due_entry():
    """No entry is due at any time."""
    timers = TimerQueue()
    assert (len(timers), timers.next_due(), timers.pop_due(10**18)) == (0, None, [])


def test_entries_of_one_instant_are_returned_in_insertion_order():
    """Payloads are never compared."""
    timers, items = TimerQueue(), [Unordered() for _ in range(5)]
    for item in items:
        timers.add(7, item)
    assert timers.next_due() == 7
    assert timers.pop_due(7) == items


def test_pop_due_returns_only_due_entries():
    """An entry is due from its instant on."""
    timers = TimerQueue()
    for due in (30, 10, 20):
        timers.add(due, due)
    assert timers.pop_due(9) == []
    assert timers.pop_due(20) == [10, 20]
    assert (len(timers), timers.next_due()) == (1, 30)


@given(st.lists(st.integers(0, 20)), st.integers(0, 20))
def test_pop_due_is_a_stable_sort(instants, now):
    """The order of insertion does not matter."""
    timers = TimerQueue()
    for number, due in enumerate(instants):
        timers.add(due, (due, number))
    expected = sorted((due, number) for number, due in enumerate(instants) if due <= now)
    assert timers.pop_due(now) == expected
    assert len(timers) == len(instants) - len(expected)
