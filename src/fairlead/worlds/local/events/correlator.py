"""EventCorrelator: counts repeated events, aggregates similar events and drops spam.

Events are similar if they have the same component, object, type and reason. Similar events with the
same field path and message are equal: the later event increments the count of the earlier event.

Up to nine different messages of similar events are remembered. If nine messages are remembered, an
event with another message is written as "(combined from similar events)". Then the oldest
remembered message is forgotten, and the new message is remembered. If no similar event occurs for
more than ten minutes, all messages are forgotten.

A component may send a burst of 25 events about an object, then one event every five minutes.
Further events are dropped.

upstream: client-go/tools/record/events_cache.go
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds

Value = TypeVar("Value")
Key = tuple[str, ...]

ENTRIES_MAX: Final = 4096
SIMILAR_MAX: Final = 10
SIMILAR_WITHIN: Final[DurationNs] = seconds(600)
BURST: Final = 25
REFILL: Final[DurationNs] = seconds(300)
COMBINED: Final = "(combined from similar events): "


class _LruCache(Generic[Value]):
    """An LRU cache of ENTRIES_MAX entries."""

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


class _Similar(Struct):
    """The distinct messages (`notes`) of similar events; the last event occurred at `at`."""

    at: Instant
    notes: dict[str, None] = field(default_factory=dict)


class _SpamFilter(Struct):
    """The token bucket of one component and object: it contained `left` tokens at the time `at`."""

    left: float
    at: Instant


class CorrelatedEvent(Struct, frozen=True):
    """The message `note` and the `key` of an event to write.

    If the store has an event with the same key, the writer increments the count of the stored
    event. Otherwise, the writer creates an event.
    """

    key: Key
    note: str


class EventCorrelator:
    """Aggregates similar events and limits their rate, based on earlier events."""

    def __init__(self) -> None:
        self._similar: _LruCache[_Similar] = _LruCache()
        self._spam_filters: _LruCache[_SpamFilter] = _LruCache()

    def of(self, event: RecordEvent, now: Instant) -> CorrelatedEvent | None:
        """Return the key and message to write for `event`; None if the event is dropped."""
        source = (event.reporting_controller, *_identity(event.regarding))
        correlated = self._aggregated(event, source, now)
        return correlated if self._is_allowed(source, now) else None

    def _aggregated(self, event: RecordEvent, source: Key, now: Instant) -> CorrelatedEvent:
        key = (*source, event.type, event.reason)
        similar = self._similar.get(key)
        if similar is None or now - similar.at > SIMILAR_WITHIN:
            similar = _Similar(now)
            self._similar.put(key, similar)
        similar.at = now
        similar.notes[event.note] = None
        if len(similar.notes) < SIMILAR_MAX:
            # upstream: client-go/tools/record/events_cache.go:getEventKey
            return CorrelatedEvent((*key, event.field_path or "", event.note), event.note)
        similar.notes.pop(next(iter(similar.notes)))
        return CorrelatedEvent(key, COMBINED + event.note)

    def _is_allowed(self, source: Key, now: Instant) -> bool:
        bucket = self._spam_filters.get(source)
        if bucket is None:
            bucket = _SpamFilter(BURST, now)
            self._spam_filters.put(source, bucket)
        left = min(BURST, bucket.left + (now - bucket.at) / REFILL)
        is_allowed = left >= 1
        bucket.left, bucket.at = left - is_allowed, now
        return is_allowed


def _identity(ref: ObjectRef) -> Key:
    return ref.kind, ref.namespace, ref.name, ref.uid


def series_key(event: RecordEvent) -> Key:
    """Return the key of the series that `event` belongs to; the note is not part of the key.

    Only events of events.k8s.io form series.
    """
    # upstream: client-go/tools/events/event_broadcaster.go:getKey
    who = (event.reporting_controller, event.action, event.reason, event.type)
    related = () if event.related is None else _identity(event.related)
    return (*who, *_identity(event.regarding), *related)
