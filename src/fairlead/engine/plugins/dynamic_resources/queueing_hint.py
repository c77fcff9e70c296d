"""QueueingHints of DynamicResources.

upstream: dynamicresources.go: EventsToRegister, isSchedulableAfter…
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import ResourceClaim
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import ClaimError, claims_of
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.related_objects import RelatedObjects

EVENTS: Final = frozenset(
    {
        EventKind.NODE_ADD,
        EventKind.NODE_LABEL,
        EventKind.NODE_ALLOCATABLE,
        EventKind.RESOURCE_CLAIM_ADD,
        EventKind.RESOURCE_CLAIM_UPDATE,
        EventKind.POD_CLAIM_MADE,
        EventKind.DEVICE_CLASS_ADD,
        EventKind.DEVICE_CLASS_UPDATE,
        EventKind.RESOURCE_SLICE_ADD,
        EventKind.RESOURCE_SLICE_UPDATE,
    }
)


def is_woken_by(pod: PodInfo, event: ClusterEvent, related: RelatedObjects) -> bool:
    """Return True for changes of the pod's own claims, and of claims that release devices."""
    match event.old, event.new:
        case old, ResourceClaim() as claim:
            before = old if isinstance(old, ResourceClaim) else None
            return _is_woken_by_claim(pod, before, claim, related)
        case _, PodInfo() as changed:
            return changed.id == pod.id and _claims(changed, related) is not None
        case _:
            return True


def _claims(pod: PodInfo, related: RelatedObjects) -> tuple[ResourceClaim, ...] | None:
    try:
        return claims_of(pod.pod, related)
    except ClaimError:
        return None


def _is_woken_by_claim(
    pod: PodInfo, before: ResourceClaim | None, claim: ResourceClaim, related: RelatedObjects
) -> bool:
    own = _claims(pod, related)
    if own is None:
        return False
    if before is not None and before.status.allocation and not claim.status.allocation:
        return True
    if not any(one.metadata.uid == claim.metadata.uid for one in own):
        return False
    return before is None or before.status != claim.status
