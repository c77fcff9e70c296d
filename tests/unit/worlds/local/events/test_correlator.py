"""Correlation: what was told before is counted, and who talks too much is not heard."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.worlds.local.events.correlator import BURST, COMBINED, EventCorrelator

T0 = seconds(1_000_000)


@pytest.fixture
def correlation():
    return EventCorrelator()


def event(note, *, uid="u", reason="SuccessfulCreate"):
    return RecordEvent(
        regarding=ObjectRef("ReplicaSet", "ns", "web", uid),
        type="Normal",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller="replicaset-controller",
    )


def test_the_same_again_has_the_same_key(correlation):
    one, other = (correlation.of(event("a"), T0) for _ in range(2))
    assert one == other
    assert correlation.of(event("a", uid="v"), T0).key != one.key


def test_the_tenth_of_a_kind_and_those_after_it_are_told_as_one(correlation):
    told = [correlation.of(event(f"pod {number}"), T0) for number in range(12)]
    assert [one.note for one in told[7:10]] == ["pod 7", "pod 8", f"{COMBINED}pod 9"]
    assert told[9].key == told[10].key != told[8].key


def test_after_a_while_each_is_told_for_itself_again(correlation):
    for number in range(12):
        correlation.of(event(f"pod {number}"), T0)
    assert correlation.of(event("another"), T0 + seconds(601)).note == "another"


def test_who_talks_too_much_is_heard_every_five_minutes(correlation):
    told = [correlation.of(event("a"), T0) for _ in range(BURST + 1)]
    assert told[-1] is None
    assert None not in told[:-1]
    assert correlation.of(event("a", uid="another"), T0) is not None
    later = [correlation.of(event("a"), T0 + seconds(300)) for _ in range(2)]
    assert [one is None for one in later] == [False, True]
