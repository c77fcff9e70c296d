"""EventWriter: what controllers record becomes Event objects, as clients of the API expect them.

What is recorded again raises the count of the event that is there. Events go after an hour, as
they do behind a real API server.

upstream: client-go/tools/events/event_recorder.go, tools/record/events_cache.go,
cmd/kube-apiserver --event-ttl
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind, find_kind, kind_of
from fairlead.apiserver.store import Store
from fairlead.apiserver.write import Write
from fairlead.core.command import ObjectRef, RecordEvent
from fairlead.core.instant import DurationNs, Instant, seconds
from fairlead.worlds.local.author import program_of
from fairlead.worlds.local.signing import Signatures
from fairlead.worlds.simulation.event_list import cut_note

Json = dict[str, Any]

TTL: Final[DurationNs] = seconds(3_600)
EVENTS_MAX: Final = 20_000
_EVENT: Final = kind_of({"apiVersion": "v1", "kind": "Event"})
# What tells one series of events from another.
_Series = tuple[str, str, str, str, str, str]


class EventWriter:
    """Writes events into `store`."""

    def __init__(self, store: Store, signatures: Signatures) -> None:
        """Nothing is written yet."""
        self._store = store
        self._signatures = signatures
        self._names: dict[_Series, tuple[str, str]] = {}
        self._written: deque[tuple[Instant, str, str]] = deque()

    def record(self, event: RecordEvent, now: Instant) -> None:
        """Write `event`, or count it."""
        self._forget(now)
        series = _series(event)
        place = self._names.get(series)
        found = self._store.find(_EVENT, *place) if place else None
        if found is not None:
            again = {**found, "count": found.get("count", 1) + 1}
            again["lastTimestamp"] = format_timestamp(now)
            self._store.storage.put(_EVENT, again)
            return
        manifest = _manifest(event, self._subject(event.regarding), now, len(self._written))
        try:
            track = self._signatures.of(program_of(event), _EVENT, "", now)
            stored = self._store.create(manifest, now, write=Write(track=track))
        except ApiError:
            return  # its namespace has gone, and nobody will ask for it
        meta = stored["metadata"]
        self._names[series] = (meta["namespace"], meta["name"])
        self._written.append((now, meta["namespace"], meta["name"]))

    def _subject(self, ref: ObjectRef) -> Json:
        kind = find_kind(ref.kind)
        found = self._store.find(kind, ref.namespace, ref.name) if kind else None
        version = found["metadata"]["resourceVersion"] if found else ""
        return {
            key: value
            for key, value in {
                "kind": ref.kind,
                "namespace": ref.namespace,
                "name": ref.name,
                "uid": ref.uid or (ref.name if ref.kind == "Node" else ""),
                "apiVersion": _api_version(kind),
                "resourceVersion": version,
            }.items()
            if value
        }

    def _forget(self, now: Instant) -> None:
        while self._written and (
            self._written[0][0] + TTL <= now or len(self._written) > EVENTS_MAX
        ):
            _, namespace, name = self._written.popleft()
            if self._store.find(_EVENT, namespace, name) is not None:
                self._store.storage.remove(_EVENT, namespace, name)


def _api_version(kind: Kind | None) -> str:
    return kind.api_version if kind else ""


def _series(event: RecordEvent) -> _Series:
    ref = event.regarding
    return (ref.kind, ref.namespace, ref.name, ref.uid, event.reason, event.note)


def _manifest(event: RecordEvent, subject: Json, now: Instant, number: int) -> Json:
    timestamp = format_timestamp(now)
    ref = event.regarding
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{ref.name}.{now + number:016x}",
            "namespace": ref.namespace or "default",
        },
        "involvedObject": subject,
        "reason": event.reason,
        "message": cut_note(event.note),
        "source": {"component": event.reporting_controller},
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": 1,
        "type": event.type,
        "eventTime": None,
        "action": event.action,
        "reportingComponent": event.reporting_controller,
        "reportingInstance": event.reporting_controller,
    }
