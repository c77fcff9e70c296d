"""Event correlation: repeated events are counted, and too frequent events are dropped."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.worlds.local.events.correlator import (
    BURST,
    COMBINED,
    EventCorrelator,
    series_key,
)

T0 = seconds(1_000_000)


@pytest.fixture
def correlation():
    return EventCorrelator()


def event(note, *, uid="u", reason="SuccessfulCreate", field_path=None, related=None):
    return RecordEvent(
        regarding=ObjectRef("ReplicaSet", "ns", "web", uid),
        type="Normal",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller="replicaset-controller",
        field_path=field_path,
        related=related,
    )


def test_equal_events_have_the_same_key(correlation):
    one, other = (correlation.of(event("a"), T0) for _ in range(2))
    assert one == other
    assert correlation.of(event("a", uid="v"), T0).key != one.key


def test_the_tenth_similar_event_and_later_ones_are_combined(correlation):
    correlated = [correlation.of(event(f"pod {number}"), T0) for number in range(12)]
    assert [one.note for one in correlated[7:10]] == ["pod 7", "pod 8", f"{COMBINED}pod 9"]
    assert correlated[9].key == correlated[10].key != correlated[8].key


def test_events_about_different_containers_are_combined(correlation):
    paths = [f"spec.containers{{c{number}}}" for number in range(10)]
    written = [correlation.of(event(f"pulled {path}", field_path=path), T0) for path in paths]
    assert written[0].note == f"pulled {paths[0]}"
    assert written[9].note == f"{COMBINED}pulled {paths[9]}"


def test_equal_events_about_different_containers_have_different_keys(correlation):
    one, other = (correlation.of(event("a", field_path=path), T0).key for path in ("x", "y"))
    assert one != other


def test_a_series_has_one_related_object():
    """Two pods may preempt the same victim."""
    first, second = (ObjectRef("Pod", "ns", name, name) for name in ("p1", "p2"))
    assert series_key(event("a", related=first)) == series_key(event("b", related=first))
    assert series_key(event("a", related=first)) != series_key(event("a", related=second))


def test_after_ten_minutes_events_are_no_longer_combined(correlation):
    for number in range(12):
        correlation.of(event(f"pod {number}"), T0)
    assert correlation.of(event("another"), T0 + seconds(601)).note == "another"


def test_events_above_the_burst_are_dropped_until_tokens_are_refilled(correlation):
    correlated = [correlation.of(event("a"), T0) for _ in range(BURST + 1)]
    assert correlated[-1] is None
    assert None not in correlated[:-1]
    assert correlation.of(event("a", uid="another"), T0) is not None
    later = [correlation.of(event("a"), T0 + seconds(300)) for _ in range(2)]
    assert [one is None for one in later] == [False, True]
