"""Commands that write finalizers, allocations and reservations to the claims of a placed pod.

If the pod is not bound after all, its reservations are removed; the allocations stay.

upstream: dynamicresources.go: PreBind, bindClaim, Unreserve
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import structs

from fairlead.api.codec import as_json
from fairlead.api.objects import ClaimAllocation, ClaimConsumer, ResourceClaim
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import ObjectRef, PatchObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status, error
from fairlead.engine.framework.interface import PreparationCommand
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import is_reserved_for
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_groups import group_key
from fairlead.engine.state.pod_info import PodInfo

FINALIZER: Final = "resource.kubernetes.io/delete-protection"

Writes = tuple[PreparationCommand, ...]


class ClaimBinder:
    """Builds the commands that write allocations and reservations of claims to the API."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._related = cluster.related
        self._ledger = cluster.devices

    def commands(
        self,
        claims: Sequence[ResourceClaim],
        pending: Sequence[ResourceClaim],
        assumed: Sequence[ClaimAllocation],
        pod: PodInfo,
    ) -> Writes | Status:
        """Return the commands that allocate and reserve `claims` for `pod`.

        `pending` are the claims without an allocation, and `assumed` are their new allocations, in
        the same order. Also records the new reservations in the device ledger. Returns an ERROR
        status if a claim was deleted or allocated elsewhere in the meantime.
        """
        keys = (claim.key for claim in pending)
        allocations = dict(zip(keys, assumed, strict=True))
        commands: list[PreparationCommand] = []
        for claim in claims:
            written = self._written(claim, pod, allocations.get(claim.key))
            if isinstance(written, Status):
                return written
            commands += written
        return tuple(commands)

    def releases(self, claims: Sequence[ResourceClaim], pod: PodInfo) -> Writes:
        """Return the commands that remove `pod` from status.reservedFor of `claims`."""
        shown = (self._related.get(ResourceClaim, claim.key) for claim in claims)
        return tuple(
            _release(one, pod)
            for one in shown
            if one is not None and one.status.allocation is not None and _names(one, pod)
        )

    def bound(
        self, claim: ResourceClaim, pod: PodInfo, allocation: ClaimAllocation | None
    ) -> ResourceClaim:
        """Return a copy of `claim` that is reserved for `pod`.

        The copy gets the allocation `allocation`. If `allocation` is None, the copy keeps the
        allocation of `claim`.
        """
        consumers = self._ledger.consumers(claim)
        if not is_reserved_for(claim, pod.pod, self._ledger):
            consumers = (*consumers, _consumer(pod))
        status = structs.replace(
            claim.status,
            allocation=allocation or claim.status.allocation,
            reserved_for=consumers,
        )
        return structs.replace(claim, status=status)

    def _written(
        self, claim: ResourceClaim, pod: PodInfo, allocation: ClaimAllocation | None
    ) -> Writes | Status:
        shown = self._related.get(ResourceClaim, claim.key)
        if shown is None or shown.metadata.deletion_timestamp:
            return error(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None and shown.status.allocation is not None:
            if not group_key(pod) or _devices(allocation) != _devices(shown.status.allocation):
                return error(f"claim {claim.key} got allocated elsewhere in the meantime")
            allocation = None  # another pod of the same PodGroup wrote the allocation
        if is_reserved_for(shown, pod.pod, self._ledger):
            return ()
        # Pods of the same PodGroup may write the claim before this pod does. Upstream's write then
        # fails with a conflict and is repeated with the newer claim (RetryOnConflict). Here, the
        # write contains the reservations of these pods, and no resourceVersion.
        is_written = len(self._ledger.consumers(shown)) > len(shown.status.reserved_for)
        self._ledger.assume_reservation(shown, _consumer(pod))
        fields: dict[str, Any] = {
            "reservedFor": [as_json(one) for one in self._ledger.consumers(shown)]
        }
        if allocation is None:
            version = "" if is_written else shown.metadata.resource_version
            return (PatchStatus(claim_ref(shown), fields, resource_version=version),)
        fields["allocation"] = as_json(with_timestamp(allocation, self._cluster.now))
        return (*_protection(shown), PatchStatus(claim_ref(shown), fields))


def _devices(allocation: ClaimAllocation) -> set[tuple[str, str, str, str]]:
    """Return (driver, pool, device, share ID) of each device in `allocation`."""
    return {(one.driver, one.pool, one.device, one.share_id) for one in allocation.devices.results}


def _consumer(pod: PodInfo) -> ClaimConsumer:
    return ClaimConsumer(resource="pods", name=pod.pod.metadata.name, uid=pod.uid)


def _names(claim: ResourceClaim, pod: PodInfo) -> bool:
    return any(one.uid == pod.uid for one in claim.status.reserved_for)


def _release(claim: ResourceClaim, pod: PodInfo) -> PatchStatus:
    others = [as_json(one) for one in claim.status.reserved_for if one.uid != pod.uid]
    version = claim.metadata.resource_version
    fields = {"reservedFor": others or None}
    return PatchStatus(claim_ref(claim), fields, resource_version=version, why="unreserved")


def with_timestamp(allocation: ClaimAllocation, now: Instant) -> ClaimAllocation:
    """Return `allocation` with `now` as its allocation timestamp."""
    return structs.replace(allocation, allocation_timestamp=format_timestamp(now))


def _protection(claim: ResourceClaim) -> Writes:
    """Return the patch that adds FINALIZER to the claim; () if the claim already has FINALIZER."""
    finalizers = claim.metadata.finalizers
    if FINALIZER in finalizers:
        return ()
    return (PatchObject(claim_ref(claim), {"metadata": {"finalizers": [*finalizers, FINALIZER]}}),)


def claim_ref(claim: ResourceClaim) -> ObjectRef:
    """Return an object reference to the claim."""
    meta = claim.metadata
    return ObjectRef("ResourceClaim", meta.namespace, meta.name, meta.uid)
