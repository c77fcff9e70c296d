"""EventRecorder: converts the events of controllers to API requests.

Schedulers write events of events.k8s.io, where equal events within six minutes form a series. Node
controllers write events of the core group, where an equal event increments `count`.

upstream: client-go/tools/events/event_broadcaster.go, client-go/tools/record/event.go
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.client.rest_client import ApiRequest
from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.worlds.cluster.perform import MERGE, Resources
from fairlead.worlds.local.events.correlator import EventCorrelator, series_key
from fairlead.worlds.simulation.event_list import cut_note

SERIES_WITHIN: Final[DurationNs] = seconds(360)
KNOWN_MAX: Final = 10_000
_SCHEDULERS_ACTIONS: Final = ("Binding", "Preempting", "Scheduling")
_Key = tuple[str, ...]


class _Written(Struct):
    """The API path, the count and the times (ns) of an event that was written."""

    path: str
    count: int
    seen_at: Instant
    written_at: Instant


class EventRequest(Struct, frozen=True):
    """A request that creates or updates the event at `path`."""

    path: str
    request: ApiRequest


class EventRecorder:
    """Converts RecordEvents to API requests, which the caller sends."""

    def __init__(self, host: str, resources: Resources) -> None:
        """`host` is the name of this machine; `resources` are keyed by kind."""
        self._host = host
        self._resources = resources
        self._correlator = EventCorrelator()
        self._written: OrderedDict[_Key, _Written] = OrderedDict()
        self._created = 0

    def request(self, event: RecordEvent, now: Instant) -> EventRequest | None:
        """Return the request that writes `event`.

        Returns None if the event is only counted in its series, or if the spam filter drops it.
        """
        if event.action in _SCHEDULERS_ACTIONS:
            return self._in_series(event, now)
        return self._counted(event, now)

    def forget(self, path: str) -> None:
        """Forget the event at `path`, because the server did not store it or has deleted it."""
        for key, written in self._written.items():
            if written.path == path:
                del self._written[key]
                return

    def _in_series(self, event: RecordEvent, now: Instant) -> EventRequest | None:
        key = series_key(event)
        known = self._written.get(key)
        stamp = format_micro_time(now)
        if known is not None and now - known.seen_at < SERIES_WITHIN:
            known.count += 1
            known.seen_at = now
            if known.count > 2 and now - known.written_at < SERIES_WITHIN:
                return None
            known.written_at = now
            series = {"series": {"count": known.count, "lastObservedTime": stamp}}
            return _patch(known.path, series)
        fields = {
            "apiVersion": "events.k8s.io/v1",
            "eventTime": stamp,
            "reportingController": event.reporting_controller,
            "reportingInstance": f"{event.reporting_controller}-{self._host}",
            "action": event.action,
            "regarding": self._reference(event.regarding),
            "note": cut_note(event.note),
        }
        if event.related is not None:
            fields["related"] = self._reference(event.related)
        return self._create(event, key, fields, "/apis/events.k8s.io/v1", now)

    def _counted(self, event: RecordEvent, now: Instant) -> EventRequest | None:
        correlated = self._correlator.of(event, now)
        if correlated is None:
            return None
        stamp, note = format_timestamp(now), cut_note(correlated.note)
        known = self._written.get(correlated.key)
        if known is not None:
            known.count += 1
            patch = {"count": known.count, "lastTimestamp": stamp, "message": note}
            return _patch(known.path, patch)
        fields = {
            "apiVersion": "v1",
            "involvedObject": self._reference(event.regarding),
            "message": note,
            "source": {"component": event.reporting_controller},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "reportingComponent": event.reporting_controller,
        }
        return self._create(event, correlated.key, fields, "/api/v1", now)

    def _create(
        self, event: RecordEvent, key: _Key, fields: dict[str, Any], root: str, now: Instant
    ) -> EventRequest:
        ref = event.regarding
        namespace = ref.namespace or "default"
        self._created += 1
        name = f"{ref.name}.{now + self._created:x}"
        collection = f"{root}/namespaces/{namespace}/events"
        self._written[key] = _Written(f"{collection}/{name}", 1, now, now)
        if len(self._written) > KNOWN_MAX:
            self._written.popitem(last=False)
        manifest = {
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "reason": event.reason,
            "type": event.type,
            **fields,
        }
        request = ApiRequest("POST", collection, msgspec.json.encode(manifest))
        return EventRequest(f"{collection}/{name}", request)

    def _reference(self, ref: ObjectRef) -> dict[str, str]:
        resource = self._resources.get(ref.kind)
        reference = {
            "apiVersion": resource.api_version if resource is not None else "",
            "kind": ref.kind.partition(".")[0],
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": ref.uid,
        }
        return {key: value for key, value in reference.items() if value}


def _patch(path: str, body: dict[str, Any]) -> EventRequest:
    return EventRequest(path, ApiRequest("PATCH", path, msgspec.json.encode(body), MERGE))
