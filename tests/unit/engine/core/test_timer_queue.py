"""TimerQueue: what is due when, in a total order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.timer_queue import TimerQueue


class Unordered:
    """A payload that no heap could compare."""


def test_an_empty_queue_has_nothing_due():
    """Neither now nor ever."""
    timers = TimerQueue()
    assert (len(timers), timers.next_due(), timers.pop_due(10**18)) == (0, None, [])


def test_equals_come_in_the_order_they_were_added():
    """Payloads are never compared."""
    timers, items = TimerQueue(), [Unordered() for _ in range(5)]
    for item in items:
        timers.add(7, item)
    assert timers.next_due() == 7
    assert timers.pop_due(7) == items


def test_only_what_is_due_leaves():
    """An instant counts as due when it is reached."""
    timers = TimerQueue()
    for due in (30, 10, 20):
        timers.add(due, due)
    assert timers.pop_due(9) == []
    assert timers.pop_due(20) == [10, 20]
    assert (len(timers), timers.next_due()) == (1, 30)


@given(st.lists(st.integers(0, 20)), st.integers(0, 20))
def test_pop_due_is_a_stable_sort(instants, now):
    """Whatever the order of adding."""
    timers = TimerQueue()
    for number, due in enumerate(instants):
        timers.add(due, (due, number))
    expected = sorted((due, number) for number, due in enumerate(instants) if due <= now)
    assert timers.pop_due(now) == expected
    assert len(timers) == len(instants) - len(expected)
