"""Computes how a pod's ResourceClaims change when a simulation adds or removes the pod.

upstream: simulator/dynamicresources/snapshot/snapshot.go
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from fairlead.api.objects import Pod, ResourceClaim
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import (
    ClaimError,
    claims_of,
    is_for_pod,
)
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.related_objects import RelatedObjects


def reserved_claims(plugin: DynamicResources, pod: PodInfo, node: str) -> tuple[ResourceClaim, ...]:
    """Return copies of the claims of `pod`, allocated on `node` and reserved for `pod`.

    The pod must fit the node. The caller stores the copies.

    upstream: predicate_snapshot.go: modifyResourceClaimsForScheduledPod
    """
    state = CycleState()
    rejected = plugin.pre_filter(state, pod) or plugin.reserve(state, pod, node)
    assert rejected is None, rejected
    claims = plugin.bound_claims(state, pod)
    plugin.unreserve(state, pod, node)  # the caller stores the claims itself
    return claims


def released_claims(pod: Pod, related: RelatedObjects) -> Iterator[ResourceClaim]:
    """Yield copies of the claims of `pod`, with the reservation for `pod` removed.

    If `pod` owns a claim, or the claim is reserved for no other pod, the allocation is removed,
    too. Yields nothing if a claim of `pod` is missing, or if `pod` must not use it.

    upstream: snapshot.go: UnreservePodClaims
    """
    for claim in usable_claims(pod, related):
        status = claim.status
        others = tuple(one for one in status.reserved_for if one.uid != pod.metadata.uid)
        keeps_devices = others and not is_for_pod(claim, pod)
        allocation = status.allocation if keeps_devices else None
        yield replace(claim, status=replace(status, reserved_for=others, allocation=allocation))


def usable_claims(pod: Pod, related: RelatedObjects) -> tuple[ResourceClaim, ...]:
    """Return the claims of `pod`; () if a claim is missing or `pod` must not use one of them."""
    try:
        return claims_of(pod, related)
    except ClaimError:
        return ()
