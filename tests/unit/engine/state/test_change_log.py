"""ChangeLog: the changes since a reader's position, or that the reader must read everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.state.change_log import _LENGTH_MAX, ChangeLog


def filled(count):
    log = ChangeLog()
    for number in range(count):
        log.append(number)
    return log


def test_there_are_no_changes_for_a_current_reader():
    """This also holds for an empty log."""
    assert ChangeLog().since(0) == []
    assert filled(3).since(3) == []


@given(st.integers(0, 50), st.integers(0, 50))
def test_the_changes_since_a_position(before, after):
    """From the oldest to the newest, with repetitions."""
    log = filled(before)
    position = log.position
    for number in range(after):
        log.append(number % 3)
    assert log.since(position) == [number % 3 for number in range(after)]


def test_a_full_log_drops_its_older_half():
    """Positions continue to count; a reader that is too far behind gets None."""
    log = filled(_LENGTH_MAX + 1)
    start = _LENGTH_MAX // 2
    assert log.position == _LENGTH_MAX + 1
    assert log.since(start - 1) is None
    assert log.since(0) is None
    assert log.since(start) == list(range(start, _LENGTH_MAX + 1))
    assert log.since(_LENGTH_MAX) == [_LENGTH_MAX]


def test_a_log_never_exceeds_its_maximum_length():
    """After any number of writes."""
    log = filled(3 * _LENGTH_MAX)
    kept = log.since(log.position - _LENGTH_MAX // 2)
    assert kept is not None
    assert len(log._items) <= _LENGTH_MAX
