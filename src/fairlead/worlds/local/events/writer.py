"""EventWriter: stores the events that controllers record as Event objects.

Schedulers write events of the group events.k8s.io, most other components events of the core group.
Both groups serve the same objects, with different fields set. A repeated event increments the
stored event (for the core group, `EventCorrelator` finds it). Events are deleted after an hour, the
default of a real API server.

upstream: client-go/tools/events/event_recorder.go, event_broadcaster.go, tools/record/event.go,
cmd/kube-apiserver --event-ttl
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, Kind, find_kind
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.issuer import Component
from fairlead.worlds.local.events.correlator import EventCorrelator, Key
from fairlead.worlds.local.events.template import EVENT, EventTemplates
from fairlead.worlds.local.field_manager import FieldManagers
from fairlead.worlds.simulation.event_list import cut_note

HOST: Final = "fairlead"
TTL: Final[DurationNs] = seconds(3_600)
EVENTS_MAX: Final = 20_000
SERIES_WITHIN: Final[DurationNs] = seconds(360)
# actions of schedulers' events, which are written in events.k8s.io
_SCHEDULERS_ACTIONS: Final = ("Binding", "Preempting", "Scheduling")


class EventWriter:
    """Writes events into `store`; `host` is the host name that controllers report."""

    def __init__(self, store: Store, signatures: FieldManagers, host: str = HOST) -> None:
        """Write to `store`, with `signatures` as field managers."""
        self._store = store
        self._forms = EventTemplates(store, signatures)
        self._host = host
        self._correlation = EventCorrelator()
        self._names: dict[Key, tuple[str, str]] = {}
        self._written: deque[tuple[Instant, Key, str, str]] = deque()

    def record(self, event: RecordEvent, component: Component, now: Instant) -> None:
        """Write `event`, recorded by `component`, or increment the stored event that equals it."""
        self._forget(now)
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
        source = {"component": event.reporting_controller}
        instance = self._node(event) if component is Component.KUBELET else ""
        fields = {
            "message": cut_note(correlated.note),
            "source": source | ({"host": instance} if instance else {}),
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "eventTime": None,
            "reportingInstance": instance,
        }
        self._create(event, correlated.key, fields, component, now)

    def _record_in_series(self, event: RecordEvent, component: Component, now: Instant) -> None:
        """Write an event of events.k8s.io, or add it to a series with the same reason."""
        key, stamp = _series_of(event), format_micro_time(now)
        found = self._find(key)
        if found is not None and not _is_over(found, now):
            count = (found.get("series") or {"count": 1})["count"] + 1
            series = {"count": count, "lastObservedTime": stamp}
            self._store.storage.put(EVENT, {**found, "series": series})
            return
        fields: Json = {
            "message": cut_note(event.note),
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": stamp,
            "action": event.action,
            "reportingInstance": f"{event.reporting_controller}-{self._host}",
        }
        self._create(event, key, fields, component, now)

    def _find(self, key: Key) -> Json | None:
        place = self._names.get(key)
        return self._store.find(EVENT, *place) if place else None

    def _create(
        self, event: RecordEvent, key: Key, fields: Json, component: Component, now: Instant
    ) -> None:
        ref = event.regarding
        manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{ref.name}.{now + len(self._written):x}",
                "namespace": ref.namespace or "default",
            },
            "involvedObject": self._subject(event, component),
            "reason": event.reason,
            "type": event.type,
            "reportingComponent": event.reporting_controller,
            **fields,
        }
        try:
            stored = self._forms.create(manifest, component, now)
        except ApiError:
            return  # The namespace was deleted, so the event is dropped.
        meta = stored["metadata"]
        self._names[key] = (meta["namespace"], meta["name"])
        self._written.append((now, key, meta["namespace"], meta["name"]))

    def _node(self, event: RecordEvent) -> str:
        """Return the name of the node whose kubelet reports the event."""
        ref = event.regarding
        if ref.kind != POD.kind:
            return ref.name
        pod = self._store.find(POD, ref.namespace, ref.name) or {}
        return str(pod.get("spec", {}).get("nodeName", ""))

    def _subject(self, event: RecordEvent, component: Component) -> Json:
        ref = event.regarding
        kind = find_kind(ref.kind)
        found = self._store.find(kind, ref.namespace, ref.name) if kind else None
        version = found["metadata"]["resourceVersion"] if found else ""
        # Kubelets put the node's name in place of its uid.
        uid = ref.name if component is Component.KUBELET and ref.kind == "Node" else ref.uid
        known = found["metadata"].get("uid", "") if found and not uid else uid
        reference = {
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": known,
            "apiVersion": _api_version(kind),
            "resourceVersion": version,
            "fieldPath": event.field_path or "",
        }
        return {key: value for key, value in reference.items() if value}

    def _forget(self, now: Instant) -> None:
        while self._written and (
            self._written[0][0] + TTL <= now or len(self._written) > EVENTS_MAX
        ):
            _, key, namespace, name = self._written.popleft()
            if self._names.get(key) == (namespace, name):
                del self._names[key]
            if self._store.find(EVENT, namespace, name) is not None:
                self._store.storage.remove(EVENT, namespace, name)


def _api_version(kind: Kind | None) -> str:
    return kind.api_version if kind else ""


def _series_of(event: RecordEvent) -> Key:
    """Return the key of the series that `event` belongs to; the note is not part of the key."""
    # upstream: client-go/tools/events/event_broadcaster.go:getKey
    ref = event.regarding
    who = (event.reporting_controller, event.action, event.reason, event.type)
    return (*who, ref.kind, ref.namespace, ref.name, ref.uid)


def _is_over(found: Json, now: Instant) -> bool:
    """Return whether the event series has been idle so long that a new series must start."""
    series = found.get("series")
    last = series["lastObservedTime"] if series else found["eventTime"]
    return bool(last < format_micro_time(now - SERIES_WITHIN))
