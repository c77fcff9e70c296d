"""Correlation: what a component has told before is counted, and much of a kind is told together.

An event that says the same as an earlier one counts it up. The tenth of a kind about one object,
and all after it, within ten minutes are told as one "(combined from similar events)". Who talks
too much about one object, more than 25 times at once and then every five minutes, is not heard.

upstream: client-go/tools/record/events_cache.go
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds

Value = TypeVar("Value")
Key = tuple[str, ...]

ENTRIES_MAX: Final = 4096
SIMILAR_MAX: Final = 10
SIMILAR_WITHIN: Final[DurationNs] = seconds(600)
BURST: Final = 25
REFILL: Final[DurationNs] = seconds(300)
COMBINED: Final = "(combined from similar events): "


class _Newest(Generic[Value]):
    """As many entries as are kept; the one that was not used for longest goes first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Key, value: Value) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > ENTRIES_MAX:
            self._entries.popitem(last=False)


@dataclass(slots=True)
class _Similar:
    """What was said of late, but for the numbers and names in it."""

    at: Instant
    notes: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Allowance:
    """How many more times a component may speak of an object, `left` as of `at`."""

    left: float
    at: Instant


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be told: `note`, as one more of those known by `key`."""

    key: Key
    note: str


class Correlation:
    """What has been told of late."""

    def __init__(self) -> None:
        """Nothing was told."""
        self._similar: _Newest[_Similar] = _Newest()
        self._allowances: _Newest[_Allowance] = _Newest()

    def of(self, event: RecordEvent, part: str, now: Instant) -> Told | None:
        """How `event` about `part` of its object is to be told, None when nobody listens."""
        told = self._aggregated(event, part, now)
        return told if self._is_allowed(event, now) else None

    def _aggregated(self, event: RecordEvent, part: str, now: Instant) -> Told:
        kind = (*_kind_of_event(event), part)
        similar = self._similar.get(kind)
        if similar is None or now - similar.at > SIMILAR_WITHIN:
            similar = _Similar(now)
        similar.at = now
        similar.notes[event.note] = None
        self._similar.put(kind, similar)
        if len(similar.notes) < SIMILAR_MAX:
            return Told((*kind, event.note), event.note)
        similar.notes.pop(next(iter(similar.notes)))
        return Told(kind, COMBINED + event.note)

    def _is_allowed(self, event: RecordEvent, now: Instant) -> bool:
        speaker = (event.reporting_controller, *_subject(event))
        known = self._allowances.get(speaker) or _Allowance(BURST, now)
        left = min(BURST, known.left + (now - known.at) / REFILL)
        is_allowed = left >= 1
        self._allowances.put(speaker, _Allowance(left - is_allowed, now))
        return is_allowed


def _kind_of_event(event: RecordEvent) -> Key:
    return (event.reporting_controller, *_subject(event), event.type, event.reason)


def _subject(event: RecordEvent) -> Key:
    ref = event.regarding
    return ref.kind, ref.namespace, ref.name, ref.uid
