"""Compares the events of a watch: for each object, the types and contents of its events in order.

Events of different objects may interleave differently, and bookmarks that report progress may
arrive at any time. Bookmarks that end the initial events are compared like the events of an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.api.comparison.agreement import Agreement
from fairlead.conformance.api.transport import WatchEnd
from fairlead.conformance.comparison import Mismatch

_INITIAL_END: Final = "k8s.io/initial-events-end"


def mismatch(recorded: Json, found: WatchEnd, agreement: Agreement) -> Mismatch | None:
    """Return the first mismatch between a watch's events and the recorded events, or None.

    Recorded protobuf events are not compared.
    """
    if recorded.get("end") == "server-closed" and not found.ended:
        return Mismatch("end", "server-closed", "open")
    expected = [_event(entry["event"]) for entry in recorded.get("events", ())]
    if any("$protobuf" in event["object"] for event in expected):
        return None
    return _of_events(expected, [_event(event) for event in found.events], agreement)


def _event(shown: Json) -> Json:
    """Return `shown` if it is an event; if it is a bare object, return an event with the object.

    The API server answers a watch request for a single name with the bare object. The event that is
    made from a bare object has the type "".
    """
    return shown if "type" in shown else {"type": "", "object": shown}


def _of_events(
    recorded: Sequence[Json], found: Sequence[Json], agreement: Agreement
) -> Mismatch | None:
    """Compare the events object by object; return the first mismatch, None if there is none."""
    expected, shown = _by_object(recorded), _by_object(found)
    for key, events in expected.items():
        same = (name for name in shown if agreement.bindings.matches(key, name))
        others = shown.pop(next(same, key), [])
        if _types(events) != _types(others):
            return Mismatch(f"events of {key}", _types(events), _types(others))
        for i, (event, other) in enumerate(zip(events, others, strict=True)):
            path = "bookmark" if event["type"] == "BOOKMARK" else f"{key}[{i}]"
            inner = agreement.mismatch(event["object"], other["object"], path)
            if inner is not None:
                return inner
    for key, others in shown.items():
        return Mismatch(f"events of {key}", [], _types(others))
    return None


def _types(events: Sequence[Json]) -> list[str]:
    return [event["type"] for event in events]


def _by_object(events: Sequence[Json]) -> dict[str, list[Json]]:
    grouped: dict[str, list[Json]] = {}
    for event in events:
        key = _key(event)
        if key:
            grouped.setdefault(key, []).append(event)
    return grouped


def _key(event: Json) -> str:
    """Return a key that groups the events of one object.

    The key is "" for a bookmark that reports progress.
    """
    obj = event["object"]
    if event["type"] == "BOOKMARK":
        return "the initial-events-end bookmark" if _INITIAL_END in str(obj) else ""
    if event["type"] == "ERROR":
        return "the failed watch"
    if obj.get("kind") == "Table":
        rows = obj.get("rows") or [{}]
        cells = rows[0].get("cells") or [""]
        return str(cells[0])
    meta = obj.get("metadata", {})
    return f"{meta.get('namespace', '')}/{meta.get('name', '')}"
