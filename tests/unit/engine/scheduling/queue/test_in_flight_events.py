"""InFlightEvents: each pod in flight gets the events since the start of its attempt."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.scheduling.queue.in_flight_events import _TRIMMED_FROM, InFlightEvents

NODE, POD, OWN = (
    ClusterEvent(kind, None, None)
    for kind in (EventKind.NODE_ADD, EventKind.ASSIGNED_POD_ADD, EventKind.POD_GATES_GONE)
)


@pytest.fixture
def queued(waiting):
    """Two pods in the queue."""
    for name in ("a", "b"):
        waiting.add(name)
    return waiting.find("a"), waiting.find("b")


def test_overlapping_attempts_get_their_own_events(queued):
    """Also after an event of another pod."""
    first, second = queued
    events = InFlightEvents()
    events.begin(first)
    events.note(NODE)
    events.begin(second)
    events.note(POD)
    events.note_own(second, [OWN])
    assert events.end(first) == [NODE, POD]
    assert events.end(second) == [POD, OWN]


def test_no_events_are_kept_for_a_pod_that_is_not_in_flight(queued):
    first, second = queued
    events = InFlightEvents()
    events.note(NODE)
    events.begin(first)
    events.note_own(second, [OWN])
    assert events._events == []
    assert events.end(second) == []
    assert events.end(first) == []
    assert not events


def test_old_events_are_dropped_during_a_later_attempt(queued):
    """The later attempt still gets all of its events."""
    first, second = queued
    events = InFlightEvents()
    events.begin(first)
    for _ in range(_TRIMMED_FROM + 1):
        events.note(NODE)
    events.begin(second)
    events.note(POD)
    assert len(events.end(first)) == _TRIMMED_FROM + 2
    assert len(events._events) == 1
    assert events.end(second) == [POD]
