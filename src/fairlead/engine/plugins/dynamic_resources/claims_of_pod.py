"""A pod's claims: existing claims that its spec names, and claims generated from templates.

upstream: dynamicresources.go: foreachPodResourceClaim; resourceclaim/claim.go: Name, IsForPod
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.objects import Pod, PodResourceClaim, ResourceClaim
from fairlead.engine.state.devices.device_ledger import DeviceLedger
from fairlead.engine.state.related_objects import RelatedObjects

RESERVED_FOR_MAX: Final = 256
NOT_ENOUGH: Final = "cannot allocate all claims"
NOT_ON_THIS_NODE: Final = "resourceclaim not available on the node"
NOT_CREATED: Final = "ResourceClaim not created yet"


class ClaimError(Exception):
    """Raised if the pod cannot use one of its claims; the message is the reason."""


def claims_of(pod: Pod, related: RelatedObjects) -> tuple[ResourceClaim, ...]:
    """Return the claims of `pod`, in the order of its spec.

    Raises ClaimError if a claim does not exist or the pod must not use it.
    """
    return tuple(
        _usable(pod, name, related, is_own=is_own) for name, is_own in _claim_names(pod) if name
    )


def _claim_names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Yield each claim name in spec.resourceClaims, and whether the pod must own the claim.

    The name is "" if the pod's status says that the entry needs no claim. Raises ClaimError if an
    entry is invalid or its claim was not created yet.
    """
    for wanted in pod.spec.resource_claims:
        if wanted.resource_claim_name:
            yield wanted.resource_claim_name, False
        else:
            yield _generated_name(pod, wanted), True


def _generated_name(pod: Pod, wanted: PodResourceClaim) -> str:
    meta = pod.metadata
    if not wanted.resource_claim_template_name:
        problem = "none of the supported fields are set"
        raise ClaimError(
            f'pod "{meta.namespace}/{meta.name}", spec.resourceClaim "{wanted.name}": {problem}'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == wanted.name:
            return status.resource_claim_name
    raise ClaimError(f'pod "{meta.namespace}/{meta.name}": {NOT_CREATED}')


def _usable(pod: Pod, name: str, related: RelatedObjects, *, is_own: bool) -> ResourceClaim:
    namespace = pod.metadata.namespace
    key = f"{namespace}/{name}"
    claim = related.get(ResourceClaim, key)
    if claim is None:
        raise ClaimError(f'could not find ResourceClaim "{key}"')
    if claim.metadata.deletion_timestamp:
        raise ClaimError(f'resourceclaim "{name}" is being deleted')
    if is_own and not is_for_pod(claim, pod):
        owner = f"{namespace}/{pod.metadata.name}"
        raise ClaimError(f"ResourceClaim {key} was not created for pod {owner} (pod is not owner)")
    return claim


def is_for_pod(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether the claim belongs to this pod, and not to an earlier pod of the same name."""
    owners = claim.metadata.owner_references
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in owners)


def is_reserved_for(claim: ResourceClaim, pod: Pod, ledger: DeviceLedger) -> bool:
    """Return whether the API or an assumption in `ledger` reserves the claim for the pod."""
    return any(one.uid == pod.metadata.uid for one in ledger.consumers(claim))


def can_be_reserved(claim: ResourceClaim, ledger: DeviceLedger) -> bool:
    """Return whether one more pod can be added to status.reservedFor of the claim."""
    return len(ledger.consumers(claim)) < RESERVED_FOR_MAX
