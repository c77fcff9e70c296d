"""ServiceCidrs: marks ServiceCIDRs as ready, and protects ServiceCIDRs that contain used addresses.

A deleted ServiceCIDR is kept while a Service needs it, and for at least ten seconds. A refused
write is repeated after a second.

upstream: pkg/controller/servicecidrs/servicecidrs_controller.go:sync, canDeleteCIDR
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import Unstructured
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.endpoints.post_start_hook.ip_address_reconciler import ALLOCATOR, MANAGED_BY
from fairlead.apiserver.registry.strategies.core.service_cidr import (
    IP_ADDRESS,
    SERVICE_CIDR,
    networks_of,
)
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import ApplyStatus, Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import CommandFailed, Stimulus
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.worlds.local.controllers.reactive_controller import RETRY_AFTER, changes, kind_name

FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
MANAGER: Final = "service-cidr-controller"
GRACE: Final[DurationNs] = seconds(10)
# the only condition of a ServiceCIDR
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
    """Maintains the finalizer and the Ready condition of every ServiceCIDR."""

    issuer: ClassVar[Issuer] = controller_account("service-cidrs-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Unstructured,),
        deleted=(Unstructured,),
        succeeded=(),
        failed=(ApplyStatus, PatchObject),
    )

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._due: TimerQueue[str] = TimerQueue()

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Reconcile changed ServiceCIDRs.

        If a ServiceCIDR or an IPAddress changes, also reconcile all terminating ServiceCIDRs. If
        `stimulus` reports a refused write, schedule a retry.
        """
        match stimulus:
            case CommandFailed(ApplyStatus(target) | PatchObject(target)):
                if target.kind == SERVICE_CIDR.kind:
                    self._due.add(now + RETRY_AFTER, target.name)
            case _:
                pass
        names: dict[str, None] = {}
        for one, is_deleted in changes(stimulus):
            if kind_name(one) not in (SERVICE_CIDR.kind, IP_ADDRESS.kind):
                continue
            if kind_name(one) == SERVICE_CIDR.kind and not is_deleted:
                names[one.metadata.name] = None
            names |= dict.fromkeys(self._terminating())
        return [command for name in names for command in self._sync(name, now)]

    def next_deadline(self) -> Instant | None:
        """Return the next time at which a ServiceCIDR must be reconciled, or None."""
        return self._due.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Reconcile ServiceCIDRs whose retry is due, or whose deletion was requested GRACE ago."""
        return [command for name in self._due.pop_due(now) for command in self._sync(name, now)]

    def _sync(self, name: str, now: Instant) -> list[Command]:
        obj = self._storage.find(SERVICE_CIDR, "", name)
        if obj is None:
            return []
        meta = obj["metadata"]
        finalizers, deleted_at = meta.get("finalizers") or [], meta.get("deletionTimestamp", "")
        if not deleted_at:
            hold = [] if FINALIZER in finalizers else [_patch(obj, [FINALIZER, *finalizers])]
            return [*hold, *_condition(obj, _READY, now)]
        if FINALIZER not in finalizers:
            return []
        if self._is_needed(obj):
            return _condition(obj, _HELD, now)
        due = parse_timestamp(deleted_at) + GRACE
        if due > now:
            self._due.add(due, name)
            return []
        return [_patch(obj, [one for one in finalizers if one != FINALIZER])]

    def _terminating(self) -> list[str]:
        metas = (one["metadata"] for one in self._storage.items(SERVICE_CIDR))
        return [meta["name"] for meta in metas if meta.get("deletionTimestamp")]

    def _is_needed(self, obj: Json) -> bool:
        """Return whether a Service has an address that only `obj`, a ServiceCIDR, contains."""
        others = [
            network
            for one in self._storage.items(SERVICE_CIDR)
            if one["metadata"]["name"] != obj["metadata"]["name"]
            for network in networks_of(one)
        ]
        own = networks_of(obj)
        return any(
            any(address in network for network in own)
            and not any(address in network for network in others)
            for address in map(ip_address, self._allocated())
        )

    def _allocated(self) -> Iterator[str]:
        """Yield the IP addresses that are allocated to Services."""
        for obj in self._storage.unsorted(IP_ADDRESS):
            meta = obj["metadata"]
            if (meta.get("labels") or {}).get(MANAGED_BY) == ALLOCATOR:
                yield meta["name"]


def _ref(obj: Json) -> ObjectRef:
    return ObjectRef(SERVICE_CIDR.kind, "", obj["metadata"]["name"], obj["metadata"]["uid"])


def _patch(obj: Json, finalizers: list[str]) -> Command:
    return PatchObject(_ref(obj), {"metadata": {"finalizers": finalizers or None}})


def _condition(obj: Json, condition: Json, now: Instant) -> list[Command]:
    """Return the command that sets `condition`, unless the object already has it."""
    stored: Json = next(iter((obj.get("status") or {}).get("conditions") or ()), {})
    if all(stored.get(key, "") == text for key, text in condition.items()):
        return []
    stamped = {**condition, "lastTransitionTime": format_timestamp(now)}
    return [ApplyStatus(_ref(obj), {"conditions": [stamped]}, MANAGER)]
