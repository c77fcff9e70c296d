"""StoppingPod: an evicted pod that still stops while its replacement is scheduled.

Until the pod has stopped, it uses its node and its devices, and its volumes are attached. The
ResourceClaims that it owns stay allocated. A ResourceClaim that it only names stays allocated even
if no other pod uses the claim. The claims of its ephemeral volumes stay bound. The model gets
copies of the pod and of the claims that it owns. The copies have other names, because the
replacement and its claims take the original names.

upstream: pkg/controller/resourceclaim/controller.go: syncClaim
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import ObjectMeta, PersistentVolumeClaim, Pod, ResourceClaim
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.planner.pod_claim import Claim, ClaimChange, released_claims

_STOPPING: Final = "~stopping"  # no object of a cluster has a name that ends like this


class StoppingPod(Struct, frozen=True):
    """A terminating copy of a pod, and the claims that it holds."""

    pod: Pod
    claims: tuple[Claim, ...]


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
    changes = filter(_is_in_use, released_claims(pod, cluster))
    return StoppingPod(copy, tuple(_held(one, copy, meta) for one in changes))


def _is_in_use(change: ClaimChange) -> bool:
    """Return whether the model must keep the claim of `change` for the old pod while the pod stops.

    The result is True for a PersistentVolumeClaim. For a ResourceClaim, the result is True only if
    the claim is allocated and no other pod uses it: if another pod uses the claim, the claim stays
    allocated anyway.
    """
    claim, after = change.before, change.after
    if isinstance(claim, PersistentVolumeClaim):
        return True
    if claim.status.allocation is None:
        return False
    return not (isinstance(after, ResourceClaim) and after.status.reserved_for)


def _held(change: ClaimChange, copy: Pod, old: ObjectMeta) -> Claim:
    """Return the claim of `change`, held by `copy` instead of the pod with the metadata `old`.

    A claim that the pod owns gets another name. For an ephemeral volume, the name follows from the
    name of `copy`.
    """
    held, meta = change.before, copy.metadata
    if isinstance(held, ResourceClaim):
        consumers = tuple(
            replace(one, name=meta.name, uid=meta.uid) if one.uid == old.uid else one
            for one in held.status.reserved_for
        )
        held = replace(held, status=replace(held.status, reserved_for=consumers))
    if change.after is not None:
        return held
    owners = tuple(
        replace(one, name=meta.name, uid=meta.uid) if one.uid == old.uid else one
        for one in held.metadata.owner_references
    )
    name, uid = (f"{one}{_STOPPING}" for one in (held.metadata.name, held.metadata.uid))
    if isinstance(held, PersistentVolumeClaim):
        name = f"{meta.name}{held.metadata.name.removeprefix(old.name)}"
    owned = replace(held.metadata, name=name, uid=uid, owner_references=owners)
    return replace(held, metadata=owned)
