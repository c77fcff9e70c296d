"""Keeps one IPAddress object for each cluster IP of each Service.

If a client deletes an IPAddress that a Service still uses, the reconciler creates the IPAddress
again. The reconciler never updates an existing IPAddress, even if its parent is not the Service
that uses the address. Upstream writes the IPAddress before the Service; Fairlead creates the
IPAddress after the Service.

upstream: pkg/registry/core/service/ipallocator/ipallocator.go:createIPAddress, release,
ipallocator/controller/repairip.go:syncService
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.bootstrap import create_as_apiserver
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.strategies.core.service_cidr import IP_ADDRESS, addresses_of
from fairlead.apiserver.storage.storage import ChangeType, StoredChange

FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
_NO_SERVICE: Final[Json] = {}
_RESOURCES: Final = frozenset((SERVICE.resource, IP_ADDRESS.resource))


class IpAddressReconciler:
    """Records changes of Services and IPAddresses; `reconcile` handles the changes."""

    def __init__(self, store: Store) -> None:
        """Subscribe to `store`, and record all existing Services as changed."""
        self._store = store
        # Addresses to examine, each with the Service that has the address; {} if no Service has
        # it.
        self._changed: dict[str, Json] = {}
        for service in store.storage.unsorted(SERVICE):
            self._note_addresses(service, service)
        store.storage.subscribe(self._note, _RESOURCES.__contains__)

    @property
    def waits(self) -> bool:
        """True if an address is to be examined."""
        return bool(self._changed)

    def reconcile(self, now: int) -> None:
        """Create missing IPAddresses and delete unused ones; `now` is in ns since 1970.

        Only the addresses of changed Services and of deleted IPAddresses are examined.
        """
        changed, self._changed = self._changed, {}
        for address, service in changed.items():
            found = self._store.find(IP_ADDRESS, "", address)
            with suppress(ApiError):  # the clusterIP may be malformed
                if service and found is None:
                    create_as_apiserver(self._store, (_manifest(address, service),), now)
                elif found is not None and not service:
                    self._store.delete(IP_ADDRESS, "", address, now)
        self._changed = {}  # ignore the writes above

    def _note(self, change: StoredChange) -> None:
        if change.kind is SERVICE:
            is_gone = change.type is ChangeType.DELETED
            if change.previous is not None:
                self._note_addresses(change.previous, _NO_SERVICE)
            if not is_gone:
                self._note_addresses(change.object, change.object)
        elif change.kind is IP_ADDRESS and change.type is ChangeType.DELETED:
            address = change.object["metadata"]["name"]
            for service in self._store.storage.unsorted(SERVICE):
                if address in addresses_of(service):
                    self._changed[address] = service

    def _note_addresses(self, service: Json, owner: Json) -> None:
        for address in sorted(addresses_of(service)):
            self._changed[address] = owner


def _manifest(address: str, service: Json) -> Json:
    meta = service["metadata"]
    family = "IPv6" if ":" in address else "IPv4"
    parent = {"resource": "services", "namespace": meta["namespace"], "name": meta["name"]}
    return {
        "apiVersion": IP_ADDRESS.api_version,
        "kind": IP_ADDRESS.kind,
        "metadata": {"name": address, "labels": {FAMILY: family, MANAGED_BY: ALLOCATOR}},
        "spec": {"parentRef": parent},
    }
