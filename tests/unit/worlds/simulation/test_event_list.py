"""Recorded events, with notes cut to the length that the API allows."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.worlds.simulation.event_list import EventList, RecordedEvent, cut_note


def event(note):
    return RecordEvent(ObjectRef("Pod", "n", "a"), "Normal", "R", "A", note, "c")


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("short", "short"),
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("é" * 512, "é" * 512),
        ("é" * 513, "é" * 510 + " ..."),
        ("x" + "é" * 512, "x" + "é" * 509 + " ..."),
    ],
    ids=[
        "short",
        "just fits",
        "too long",
        "bytes count",
        "bytes too long",
        "no truncated character",
    ],
)
def test_long_notes_are_cut_to_1024_bytes(note, expected):
    assert cut_note(note) == expected
    assert len(expected.encode()) <= 1024


def test_events_are_kept_in_order():
    events = EventList()
    events.record(event("a"), 1)
    events.record(event("b" * 2000), 2)
    assert events.to_list() == [
        RecordedEvent(1, event("a")),
        RecordedEvent(2, event("b" * 1020 + " ...")),
    ]


@pytest.mark.parametrize(("events_max", "notes"), [(2, ["b", "c"]), (0, []), (None, list("abc"))])
def test_only_the_newest_events_are_kept(events_max, notes):
    events = EventList(events_max)
    for note in "abc":
        events.record(event(note), 0)
    assert [recorded.event.note for recorded in events.to_list()] == notes
    assert len(events) == len(notes)
