"""EventWriter: writes an Event object for each event that a controller records.

Schedulers write events of the group events.k8s.io. Most other components write events of the core
group. Both groups serve all Event objects, but events of the two groups set different fields. A
repeated event is not stored again: it increments the count of the stored event. For events of the
core group, `EventCorrelator` decides which events are repeated. `EventExpiry` deletes events later.

upstream: client-go/tools/events/event_recorder.go, event_broadcaster.go, tools/record/event.go
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.issuer import Component
from fairlead.worlds.local.events.correlator import EventCorrelator, Key, series_key
from fairlead.worlds.local.events.template import EVENT, EventStrings, EventTemplates
from fairlead.worlds.local.field_manager import FieldManagers
from fairlead.worlds.perform import kind_in
from fairlead.worlds.simulation.event_list import cut_note

HOST: Final = "fairlead"
EVENTS_MAX: Final = 20_000
SERIES_WITHIN: Final[DurationNs] = seconds(360)
# Events with these actions come from schedulers, and are written in events.k8s.io.
_SCHEDULERS_ACTIONS: Final = ("Binding", "Preempting", "Scheduling")
_NOTHING: Final[Mapping[str, str]] = {}


class EventWriter:
    """Writes events into `store`; `host` is the host name that controllers report."""

    def __init__(self, store: Store, signatures: FieldManagers, host: str = HOST) -> None:
        """`signatures` adds managed fields to new events before they are stored."""
        self._store = store
        self._forms = EventTemplates(store, signatures)
        self._host = host
        self._correlation = EventCorrelator()
        self._names: dict[Key, tuple[str, str]] = {}
        self._written: deque[tuple[Key, str, str]] = deque()
        self._count = 0  # of all events that were created

    def record(self, event: RecordEvent, component: Component, now: Instant) -> None:
        """Write `event`, or increment the count of an equal stored event.

        `component` is the component that recorded the event.
        """
        self._remove_oldest()
        if event.action in _SCHEDULERS_ACTIONS:
            self._record_in_series(event, component, now)
        else:
            self._record_counted(event, component, now)

    def _record_counted(self, event: RecordEvent, component: Component, now: Instant) -> None:
        """Write an event of the core group, or increment the `count` of an equal stored event."""
        correlated = self._correlation.of(event, now)
        if correlated is None:
            return
        found, stamp = self._find(correlated.key), format_timestamp(now)
        if found is not None:
            counted = {"count": found.get("count", 1) + 1, "lastTimestamp": stamp}
            self._store.storage.put(
                EVENT, {**found, **counted, "message": cut_note(correlated.note)}
            )
            return
        self._create(event, correlated.key, (correlated.note, stamp), component, now)

    def _record_in_series(self, event: RecordEvent, component: Component, now: Instant) -> None:
        """Count `event` in its series; if there is no series, or if it is over, write an Event."""
        key, stamp = series_key(event), format_micro_time(now)
        found = self._find(key)
        if found is not None and not _is_over(found, now):
            count = (found.get("series") or {"count": 1})["count"] + 1
            series = {"count": count, "lastObservedTime": stamp}
            self._store.storage.put(EVENT, {**found, "series": series})
            return
        self._create(event, key, (event.note, stamp), component, now)

    def _find(self, key: Key) -> Json | None:
        place = self._names.get(key)
        return self._store.find(EVENT, *place) if place else None

    def _create(
        self,
        event: RecordEvent,
        key: Key,
        note_and_stamp: tuple[str, str],
        component: Component,
        now: Instant,
    ) -> None:
        """Write a new event; remember its name under `key`, so that `_find` finds the event."""
        ref, (note, stamp) = event.regarding, note_and_stamp
        kind = kind_in(self._store, ref.kind)
        found = self._store.find(kind, ref.namespace, ref.name) if kind else None
        known = found["metadata"] if found else _NOTHING
        # Kubelets put the node's name in place of its uid.
        uid = ref.name if component is Component.KUBELET and ref.kind == "Node" else ref.uid
        name, namespace = f"{ref.name}.{now + self._count:x}", ref.namespace or "default"
        strings = EventStrings(
            (
                kind.kind if kind else ref.kind.partition(".")[0],
                kind.api_version if kind else "",
                event.reason,
                event.type,
                event.action,
                event.reporting_controller,
            ),
            (
                name,
                namespace,
                ref.namespace,
                ref.name,
                uid or known.get("uid", ""),
                known.get("resourceVersion", ""),
                event.field_path or "",
                cut_note(note),
                stamp,
                _node(ref, found) if component is Component.KUBELET else "",
            ),
        )
        try:
            self._forms.create(strings, self._manifest, component, now)
        except ApiError:
            return  # The namespace was deleted, so the event is dropped.
        self._names[key] = (namespace, name)
        self._written.append((key, namespace, name))
        self._count += 1

    def _manifest(self, strings: EventStrings) -> Json:
        kind, api_version, reason, type_, action, controller = strings.fixed
        name, namespace, near, subject, uid, version, part, message, stamp, node = strings.own
        reference = {
            "kind": kind,
            "namespace": near,
            "name": subject,
            "uid": uid,
            "apiVersion": api_version,
            "resourceVersion": version,
            "fieldPath": part,
        }
        manifest: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in reference.items() if value},
            "reason": reason,
            "type": type_,
            "reportingComponent": controller,
            "message": message,
        }
        if action in _SCHEDULERS_ACTIONS:
            return manifest | {
                "source": {},
                "firstTimestamp": None,
                "lastTimestamp": None,
                "eventTime": stamp,
                "action": action,
                "reportingInstance": f"{controller}-{self._host}",
            }
        return manifest | {
            "source": {"component": controller} | ({"host": node} if node else {}),
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "eventTime": None,
            "reportingInstance": node,
        }

    def _remove_oldest(self) -> None:
        """Remove the events that were created first, until at most EVENTS_MAX are left."""
        while len(self._written) > EVENTS_MAX:
            key, namespace, name = self._written.popleft()
            if self._names.get(key) == (namespace, name):
                del self._names[key]
            if self._store.storage.find_stored(EVENT, namespace, name) is not None:
                self._store.storage.remove(EVENT, namespace, name)


def _node(ref: ObjectRef, found: Json | None) -> str:
    """Return the name of the node whose kubelet reports an event about `ref`."""
    if ref.kind != POD.kind:
        return ref.name
    return str((found or {}).get("spec", {}).get("nodeName", ""))


def _is_over(found: Json, now: Instant) -> bool:
    """Return whether the event series has been idle so long that a new series must start."""
    series = found.get("series")
    last = series["lastObservedTime"] if series else found["eventTime"]
    return bool(last < format_micro_time(now - SERIES_WITHIN))
