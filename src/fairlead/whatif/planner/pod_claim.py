"""The changes of a pod's PersistentVolumeClaims and ResourceClaims when a planner moves the pod.

    deleted   the claims that the pod owns disappear: the claims of its ephemeral volumes, and the
              claims from a ResourceClaimTemplate. A ResourceClaim that the pod only names is not
              deleted, but it is no longer reserved for the pod. The ResourceClaim loses its devices
              if it is reserved for no other pod
    created   the new pod owns new claims of the same names, without volumes and devices

A new claim has the spec of the claim that it replaces. If its StorageClass binds claims immediately
and can provision volumes, the new claim has a volume that every node can reach. Otherwise, the
scheduler finds or chooses the volume.

upstream: pkg/controller/volume/ephemeral/controller.go, pkg/controller/resourceclaim/controller.go
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import (
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
    Pod,
    PodResourceClaimStatus,
    ResourceClaim,
    ResourceClaimStatus,
    StorageClass,
)
from fairlead.api.pods.volumes import BOUND, claim_name
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.plugins.volume_binding.find_volumes import NO_PROVISIONER
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    VolumeLookup,
)
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE
from fairlead.engine.workloads.devices.resource_claims import owner_of
from fairlead.engine.workloads.volumes.claim_creation import ephemeral_claims
from fairlead.engine.workloads.volumes.command import provision
from fairlead.engine.workloads.volumes.volume_index import default_class

Claim = PersistentVolumeClaim | ResourceClaim

_OF_BINDING: Final = "pv.kubernetes.io/"


class ClaimChange(Struct, frozen=True):
    """A claim before and after a change; `after` is None if the claim is deleted."""

    before: Claim
    after: Claim | None

    @property
    def made(self) -> ObjectChanged | ObjectDeleted:
        """The stimulus that makes the change."""
        return ObjectDeleted(self.before) if self.after is None else ObjectChanged(self.after)


def has_claims(pod: PodInfo) -> bool:
    """Return whether the deletion of `pod` may change claims."""
    spec, status = pod.pod.spec, pod.pod.status
    return bool(
        spec.resource_claims
        or status.extended_resource_claim_status
        or (pod.shape.has_volumes and any(one.ephemeral is not None for one in spec.volumes))
    )


def released_claims(pod: Pod, cluster: Cluster) -> Iterator[ClaimChange]:
    """Yield the changes that the deletion of `pod` causes in claims."""
    for claim in _owned_claims(pod, cluster):
        yield ClaimChange(claim, None)
    for wanted in pod.spec.resource_claims:
        key = f"{pod.metadata.namespace}/{wanted.resource_claim_name}"
        named = cluster.related.get(ResourceClaim, key) if wanted.resource_claim_name else None
        if named is None or owner_of(named) == pod.metadata.uid:
            continue
        left = tuple(one for one in named.status.reserved_for if one.uid != pod.metadata.uid)
        if len(left) < len(named.status.reserved_for):
            allocation = named.status.allocation if left else None
            status = replace(named.status, allocation=allocation, reserved_for=left)
            yield ClaimChange(named, replace(named, status=status))


def _owned_claims(pod: Pod, cluster: Cluster) -> Iterator[Claim]:
    """Yield the claims that `pod` owns."""
    meta = pod.metadata
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            key = f"{meta.namespace}/{claim_name(pod, volume)}"
            found = cluster.related.get(PersistentVolumeClaim, key)
            owners = () if found is None else found.metadata.owner_references
            if found is not None and any(owner.uid == meta.uid for owner in owners):
                yield found
    keys = [f"{meta.namespace}/{one.resource_claim_name}" for one in _made_claims(pod)]
    special = cluster.devices.special_claim_of(meta.uid)
    for key in dict.fromkeys((*keys, *([special] if special else ()))):
        claim = cluster.related.get(ResourceClaim, key)
        if claim is not None and owner_of(claim) == meta.uid:
            yield claim


def _made_claims(pod: Pod) -> tuple[PodResourceClaimStatus, ...]:
    """Return the claims that were created for `pod` from templates."""
    made = pod.status.resource_claim_statuses
    return tuple(one for one in made if one.resource_claim_name)


def new_claims(
    pod: Pod, claims: Sequence[Claim], cluster: Cluster
) -> Iterator[Claim | PersistentVolume]:
    """Yield the claims of the new `pod`.

    The new claims replace `claims`, the claims of the old pod. A claim of an ephemeral volume is
    also yielded if it is missing in `claims` and in `cluster`. If a claim is bound immediately, its
    volume is also yielded.
    """
    made = {one.resource_claim_name for one in _made_claims(pod)}
    yield from _unlisted_claims(pod, {claim.key for claim in claims}, cluster)
    for claim in claims:
        meta = claim.metadata
        if isinstance(claim, ResourceClaim) and meta.name not in made:
            continue
        owner = OwnerReference(
            api_version="v1",
            kind="Pod",
            name=pod.metadata.name,
            uid=pod.metadata.uid,
            controller=True,
        )
        uid = f"{pod.metadata.uid}-{meta.name}"
        owned = replace(meta, uid=uid, owner_references=(owner,), finalizers=())
        if isinstance(claim, ResourceClaim):
            yield replace(claim, metadata=owned, status=ResourceClaimStatus())
        else:
            kept = {
                key: value
                for key, value in meta.annotations.items()
                if key != SELECTED_NODE and not key.startswith(_OF_BINDING)
            }
            unbound = replace(
                claim,
                metadata=replace(owned, annotations=kept),
                spec=replace(claim.spec, volume_name=""),
                status=PersistentVolumeClaimStatus(phase="Pending"),
            )
            yield from with_volume(unbound, cluster)


def _unlisted_claims(
    pod: Pod, known: Container[str], cluster: Cluster
) -> Iterator[PersistentVolumeClaim | PersistentVolume]:
    """Yield the new claims of the ephemeral volumes of `pod`.

    If such a claim is bound immediately, its PersistentVolume is yielded, too. Claims whose keys
    are in `known` or that are in the dump are left out.
    """
    for command in ephemeral_claims(pod):
        claim = decode_as(PersistentVolumeClaim, dict(command.manifest))
        if claim.key not in known and cluster.related.get(PersistentVolumeClaim, claim.key) is None:
            if claim.spec.storage_class_name is None:
                default = default_class(cluster.related.all_of(StorageClass))
                name = None if default is None else default.metadata.name
                claim = replace(claim, spec=replace(claim.spec, storage_class_name=name))
            uid = f"{pod.metadata.uid}-{claim.metadata.name}"
            claim = replace(claim, metadata=replace(claim.metadata, uid=uid))
            yield from with_volume(claim, cluster)


def with_volume(
    claim: PersistentVolumeClaim, cluster: Cluster
) -> Iterator[PersistentVolumeClaim | PersistentVolume]:
    """Yield `claim` as the scheduler will find it, and its volume if it is bound immediately.

    upstream: pkg/controller/volume/persistentvolume/pv_controller.go: syncUnboundClaim
    """
    found = VolumeLookup(cluster.related).class_of(claim)
    is_delayed = found is None or found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    if found is None or is_delayed or found.provisioner in NO_PROVISIONER or claim.spec.volume_name:
        yield claim
        return
    volume = decode_as(PersistentVolume, dict(provision(claim, found, None, None).manifest))
    bound = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    yield replace(volume, status=PersistentVolumeStatus(phase=BOUND))
    yield replace(
        claim,
        metadata=replace(claim.metadata, annotations=bound),
        spec=replace(claim.spec, volume_name=volume.metadata.name),
        status=PersistentVolumeClaimStatus(phase=BOUND),
    )
