"""EventExpiry: deletes Events an hour after they were last written, by a client or a controller.

The hour starts again with each write of the Event. The hour also starts again when the server
restarts, because a stored object does not contain the time of its last write. (etcd extends its
leases in the same way when it restarts.)

upstream: cmd/kube-apiserver --event-ttl; pkg/registry/core/event/storage/storage.go (TTLFunc)
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.worlds.local.events.template import EVENT

TTL: Final[DurationNs] = seconds(3_600)


class EventExpiry:
    """Deletes the expired Events of a store, but only when `run` is called.

    Each call of `run` treats all writes since the previous call as made at the time of the call.
    """

    def __init__(self, store: Store) -> None:
        """Observe all later writes of Events in `store`."""
        self._storage = store.storage
        self._changes: list[StoredChange] = []
        # Keys are namespaces and names. The order is that of the last writes, so the first Event
        # expires first. In a plain dict, finding the first key would get slower with each removal.
        self._due: OrderedDict[tuple[str, str], Instant] = OrderedDict()
        self._storage.subscribe(self._changes.append, EVENT.resource.__eq__)

    def restart(self, now: Instant) -> None:
        """Treat every Event in the store as written at `now`."""
        for event in self._storage.items(EVENT):
            meta = event["metadata"]
            self._due[meta["namespace"], meta["name"]] = now + TTL

    def next_due(self) -> Instant | None:
        """Return the time at which the next Event expires; None if there are no Events.

        Writes since the last call of `run` are left out.
        """
        return next(iter(self._due.values()), None)

    def run(self, now: Instant) -> None:
        """Give the writes since the last call the time `now`; delete the expired Events."""
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
