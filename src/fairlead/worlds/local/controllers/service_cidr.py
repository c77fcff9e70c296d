"""ServiceCIDRs: each one is said to be ready, and is held while there are IPAddresses out of it.

Who deletes one waits until no Service needs it, and ten seconds more.

upstream: pkg/controller/servicecidrs/servicecidrs_controller.go:sync, canDeleteCIDR
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.endpoints.field_manager import tracking_of
from fairlead.apiserver.endpoints.ip_address_reconciler import ALLOCATOR, MANAGED_BY
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.managedfields.server_side_apply import ApplyRequest, server_side_apply
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.strategies.core.service_cidr import IP_ADDRESS, SERVICE_CIDR
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.worlds.local.field_manager import controllers_write

FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
MANAGER: Final = "service-cidr-controller"
GRACE: Final[DurationNs] = seconds(10)
# Its only condition.
_READY: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "",
    "message": "Kubernetes Service CIDR is ready",
}
_HELD: Final = {
    "type": "Ready",
    "status": "False",
    "reason": "Terminating",
    "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or "
    "create a new ServiceCIDR",
}


class ServiceCidrs:
    """A TimedAttendant."""

    def __init__(self) -> None:
        """Nothing is to go."""
        self._due: TimerQueue[str] = TimerQueue()

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        is_gone = change.type is ChangeType.DELETED
        if change.kind is SERVICE_CIDR and not is_gone:
            self._look_at(change.object["metadata"]["name"], store, now)
        if change.kind in (SERVICE_CIDR, IP_ADDRESS):
            for one in _ending(store):
                self._look_at(one, store, now)

    def next_due(self) -> Instant | None:
        """See TimedAttendant."""
        return self._due.next_due()

    def act(self, store: Store, now: Instant) -> None:
        """Let go what has waited long enough."""
        for name in self._due.pop_due(now):
            self._look_at(name, store, now)

    def _look_at(self, name: str, store: Store, now: Instant) -> None:
        obj = store.find(SERVICE_CIDR, "", name)
        if obj is None:
            return
        ending = obj["metadata"].get("deletionTimestamp", "")
        if not ending:
            _hold(store, obj, now)
            _say(store, name, _READY, now)
        elif FINALIZER in obj["metadata"].get("finalizers", ()):
            if _is_needed(store, obj):
                _say(store, name, _HELD, now)
            elif (due := parse_timestamp(ending) + GRACE) > now:
                self._due.add(due, name)
            else:
                held = [one for one in obj["metadata"]["finalizers"] if one != FINALIZER]
                _write(store, name, held, now)


def _ending(store: Store) -> list[str]:
    metas = (one["metadata"] for one in store.list(SERVICE_CIDR))
    return [meta["name"] for meta in metas if meta.get("deletionTimestamp")]


def _hold(store: Store, obj: Json, now: Instant) -> None:
    held = obj["metadata"].get("finalizers") or []
    if FINALIZER not in held:
        _write(store, obj["metadata"]["name"], [FINALIZER, *held], now)


def _write(store: Store, name: str, finalizers: list[str], now: Instant) -> None:
    patch = {"metadata": {"finalizers": finalizers or None}}
    write = controllers_write(SERVICE_CIDR, "", now)
    with suppress(ApiError):  # a policy may be in the way
        store.patch(SERVICE_CIDR, "", name, patch, now, write=write)


def _say(store: Store, name: str, condition: Json, now: Instant) -> None:
    """Write a condition, unless it is said already."""
    obj, tracking = store.find(SERVICE_CIDR, "", name), tracking_of(SERVICE_CIDR, "status")
    if obj is None or tracking is None:
        return
    said: Json = next(iter((obj.get("status") or {}).get("conditions") or ()), {})
    if all(said.get(key, "") == text for key, text in condition.items()):
        return
    at = format_timestamp(now)
    told = {**condition, "lastTransitionTime": at}
    config = {
        "apiVersion": SERVICE_CIDR.api_version,
        "kind": SERVICE_CIDR.kind,
        "metadata": {"name": name},
        "status": {"conditions": [told]},
    }
    application = ApplyRequest(config=config, manager=MANAGER, force=True, subresource="status")
    store.write(SERVICE_CIDR, obj, server_side_apply(tracking, obj, application, at))


def _is_needed(store: Store, obj: Json) -> bool:
    """Whether a Service has an address of it that is in no other one."""
    others = [
        ip_network(text)
        for one in store.list(SERVICE_CIDR)
        if one["metadata"]["name"] != obj["metadata"]["name"]
        for text in one["spec"]["cidrs"]
    ]
    own = [ip_network(text) for text in obj["spec"]["cidrs"]]
    return any(
        any(address in network for network in own)
        and not any(address in network for network in others)
        for address in map(ip_address, _addresses(store))
    )


def _addresses(store: Store) -> Iterator[str]:
    for obj in store.storage.unsorted(IP_ADDRESS):
        meta = obj["metadata"]
        if (meta.get("labels") or {}).get(MANAGED_BY) == ALLOCATOR:
            yield meta["name"]
