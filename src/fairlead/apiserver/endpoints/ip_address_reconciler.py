"""IPAddresses: one for each address that a Service has in the cluster.

They are written when the Service is, and go with it, or when it has no use for its address any
longer. One that somebody deletes while a Service has its address comes back. Those of others are
left alone.

Differs from upstream: a Service's IPAddress is written after it, not before.

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
from fairlead.apiserver.storage.storage import ChangeType, StorageChange

FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
_NOBODY: Final[Json] = {}


class IpAddressReconciler:
    """Writes IPAddresses; nothing happens but in `settle`."""

    def __init__(self, store: Store) -> None:
        """Hear of Services in `store`; those that are there already count as new."""
        self._store = store
        # Whose each address is that has come or gone: a Service, or nobody's.
        self._heard: dict[str, Json] = {}
        for service in store.storage.unsorted(SERVICE):
            self._hear(service, service)
        store.subscribe(self._note)

    @property
    def waits(self) -> bool:
        """Whether there is something to write."""
        return bool(self._heard)

    def settle(self, now: int) -> None:
        """Write what is to be written, at `now` (ns since 1970)."""
        heard, self._heard = self._heard, {}
        for address, service in heard.items():
            found = self._store.find(IP_ADDRESS, "", address)
            with suppress(ApiError):  # its name may be no address
                if service and found is None:
                    create_as_apiserver(self._store, (_manifest(address, service),), now)
                elif found is not None and not service:
                    self._store.delete(IP_ADDRESS, "", address, now)
        self._heard = {}  # its own writes

    def _note(self, change: StorageChange) -> None:
        if change.kind is SERVICE:
            is_gone = change.type is ChangeType.DELETED
            if change.previous is not None:
                self._hear(change.previous, _NOBODY)
            if not is_gone:
                self._hear(change.object, change.object)
        elif change.kind is IP_ADDRESS and change.type is ChangeType.DELETED:
            address = change.object["metadata"]["name"]
            for service in self._store.storage.unsorted(SERVICE):
                if address in addresses_of(service):
                    self._heard[address] = service

    def _hear(self, service: Json, owner: Json) -> None:
        for address in sorted(addresses_of(service)):
            self._heard[address] = owner


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
