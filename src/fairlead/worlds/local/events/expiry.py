"""EventExpiry: deletes Events an hour after they were last written, by a client or a controller.

A write of an Event starts the hour anew. So does a restart of the server, because no object says
when it was last written. (etcd extends its leases in the same way when it restarts.)

upstream: cmd/kube-apiserver --event-ttl; pkg/registry/core/event/storage/storage.go (TTLFunc)
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.worlds.informer import is_watched_resource
from fairlead.worlds.local.events.template import EVENT

TTL: Final[DurationNs] = seconds(3_600)


class EventExpiry:
    """Knows when each Event in `store` expires, and deletes expired Events."""

    def __init__(self, store: Store) -> None:
        self._storage = store.storage
        self._changes: list[StoredChange] = []
        # Keys are namespaces and names. The order is that of the last writes, so the first Event
        # expires first. In a plain dict, finding the first key would get slower with each removal.
        self._due: OrderedDict[tuple[str, str], Instant] = OrderedDict()
        self._storage.subscribe(self._changes.append, _is_of_events)

    def show_all(self, now: Instant) -> None:
        """Treat every Event in the store as written at `now`."""
        for event in self._storage.items(EVENT):
            meta = event["metadata"]
            self._due[meta["namespace"], meta["name"]] = now + TTL

    def next_due(self) -> Instant | None:
        """Return the time at which the next Event expires; None if there are no Events."""
        return next(iter(self._due.values()), None)

    def run(self, now: Instant) -> None:
        """Record the writes since the last call as made at `now`; delete the expired Events."""
        self._record_writes(now)
        while (due := self.next_due()) is not None and due <= now:
            namespace, name = next(iter(self._due))
            self._storage.remove(EVENT, namespace, name)
            self._record_writes(now)  # takes the removed Event out of `_due`

    def _record_writes(self, now: Instant) -> None:
        for change in self._changes:
            self._due.pop(change.key, None)
            if change.type is not ChangeType.DELETED:
                self._due[change.key] = now + TTL
        self._changes.clear()


def _is_of_events(resource: str) -> bool:
    """Return whether `resource` is that of Events, which controllers do not receive."""
    return not is_watched_resource(resource)
