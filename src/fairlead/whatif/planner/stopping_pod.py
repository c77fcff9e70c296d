"""StoppingPod: an evicted pod that still stops while its replacement is scheduled.

Until the pod has stopped, it uses its node and its devices. Its ResourceClaims stay allocated:
those that it owns, and those that it only names and that no other pod uses. The copies of the pod
and of the claims that it owns have other names, because the replacement and its claims have these
names.

upstream: pkg/controller/resourceclaim/controller.go: syncClaim
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Pod, ResourceClaim
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.planner.pod_claim import ClaimChange, released_claims

_STOPPING: Final = "~stopping"  # no object of a cluster has a name that ends like this


class StoppingPod(Struct, frozen=True):
    """A terminating copy of a pod, and the ResourceClaims that it holds."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]


def stopping_pod(pod: Pod, cluster: Cluster, now: Instant) -> StoppingPod:
    """Return `pod`, which is in `cluster` and has a node, as it is after its eviction at `now`."""
    meta, uid = pod.metadata, f"{pod.metadata.uid or pod.key}{_STOPPING}"
    made = tuple(
        replace(one, resource_claim_name=f"{one.resource_claim_name}{_STOPPING}")
        for one in pod.status.resource_claim_statuses
        if one.resource_claim_name
    )
    copy = replace(
        pod,
        metadata=replace(
            meta,
            name=f"{meta.name}{_STOPPING}",
            uid=uid,
            deletion_timestamp=format_timestamp(now),
        ),
        status=replace(pod.status, resource_claim_statuses=made),
    )
    changes = filter(_has_devices, released_claims(pod, cluster))
    return StoppingPod(copy, tuple(_held(one, copy, meta.uid) for one in changes))


def _has_devices(change: ClaimChange) -> bool:
    """Return whether the claim of `change` has devices, and its pod is the last one to use them."""
    claim, after = change.before, change.after
    if not isinstance(claim, ResourceClaim) or claim.status.allocation is None:
        return False
    return not (isinstance(after, ResourceClaim) and after.status.reserved_for)


def _held(change: ClaimChange, copy: Pod, old_uid: str) -> ResourceClaim:
    """Return the claim of `change` as `copy` holds it instead of the pod with the uid `old_uid`."""
    claim, meta = change.before, copy.metadata
    assert isinstance(claim, ResourceClaim)
    consumers = tuple(
        replace(one, name=meta.name, uid=meta.uid) if one.uid == old_uid else one
        for one in claim.status.reserved_for
    )
    held = replace(claim, status=replace(claim.status, reserved_for=consumers))
    if change.after is not None:
        return held
    owners = tuple(
        replace(one, name=meta.name, uid=meta.uid) if one.uid == old_uid else one
        for one in claim.metadata.owner_references
    )
    name, uid = (f"{one}{_STOPPING}" for one in (claim.metadata.name, claim.metadata.uid))
    return replace(
        held, metadata=replace(claim.metadata, name=name, uid=uid, owner_references=owners)
    )
