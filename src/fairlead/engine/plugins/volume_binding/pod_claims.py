"""PodClaims: a pod's bound claims, and its claims that still need a volume.

A pod with an unbound claim is rejected. Claims whose class has the volumeBindingMode
WaitForFirstConsumer are an exception.
upstream: volume_binding.go: podHasPVCs, PreFilter; binder.go: GetPodVolumeClaims
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.objects import PersistentVolumeClaim, Volume
from fairlead.api.pods.volumes import claim_name, is_claimed, is_made_for
from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    WAIT_FOR_FIRST_CONSUMER,
    VolumeLookup,
    claim_not_found,
    claim_not_owned,
    is_bound,
)
from fairlead.engine.state.pod_info import PodInfo

UNBOUND_IMMEDIATE: Final = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_LOST: Final = "Lost"


class PodClaims(Struct, frozen=True):
    """A pod's claims, in the order of its volumes.

    `delayed` are unbound claims that get a volume once a node is chosen.
    """

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


def read_claims(lookup: VolumeLookup, pod: PodInfo) -> PodClaims | Status:
    """Return the claims of `pod`, or a status if the pod cannot run on any node yet."""
    claims: list[PersistentVolumeClaim] = []
    for volume in pod.pod.spec.volumes:
        if is_claimed(volume):
            found = _usable_claim(lookup, pod, volume)
            if isinstance(found, Status):
                return found
            claims.append(found)
    unbound = [claim for claim in claims if not is_bound(claim)]
    if not all(_is_delayed(lookup, claim) for claim in unbound):
        return UNBOUND_IMMEDIATE
    return PodClaims(tuple(filter(is_bound, claims)), tuple(unbound))


def _usable_claim(
    lookup: VolumeLookup, pod: PodInfo, volume: Volume
) -> PersistentVolumeClaim | Status:
    name, is_own = claim_name(pod.pod, volume), volume.persistent_volume_claim is None
    claim = lookup.claim(pod.namespace, name)
    if claim is None and is_own:
        return unresolvable(
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    if claim is None:
        return unresolvable(claim_not_found(name))
    if claim.status.phase == _LOST:
        lost = claim.spec.volume_name
        return unresolvable(
            f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{lost}"'
        )
    if claim.metadata.deletion_timestamp:
        return unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
    if is_own and not is_made_for(claim, pod.pod):
        return unresolvable(claim_not_owned(pod.namespace, name, pod.pod.metadata.name))
    return claim


def _is_delayed(lookup: VolumeLookup, claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim is bound only after a node is chosen; False if volumeName is set."""
    found = lookup.class_of(claim)
    if found is None or claim.spec.volume_name:
        return False
    return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
