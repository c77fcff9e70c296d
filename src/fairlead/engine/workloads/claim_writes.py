"""What the controller of ResourceClaims writes.

upstream: pkg/controller/resourceclaim/controller.go: handleClaim, syncClaim
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fairlead.api.codec import as_json
from fairlead.api.objects import (
    ClaimConsumer,
    Pod,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
)
from fairlead.engine.core.command import ObjectRef, PatchObject, PatchStatus

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"


def owner_of(claim: ResourceClaim) -> str:
    """The uid of the pod that controls the claim, "" if none does."""
    owners = claim.metadata.owner_references
    return next((one.uid for one in owners if one.controller and one.kind == "Pod"), "")


def made_for(pod: Pod, wanted: PodResourceClaim, template: ResourceClaimTemplate) -> dict[str, Any]:
    """The claim that `wanted` of `pod` stands for, as `template` has it."""
    meta = pod.metadata
    described = template.spec.get("metadata", {})
    kept = {"labels": described["labels"]} if "labels" in described else {}
    notes = {**described.get("annotations", {}), POD_CLAIM_NAME: wanted.name}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{meta.name}-{wanted.name}-",
            "namespace": meta.namespace,
            **kept,
            "annotations": notes,
            "ownerReferences": [owner],
        },
        "spec": template.spec.get("spec", {}),
    }


def status_of_pod(pod: Pod, made: dict[str, str]) -> PatchStatus:
    """Tell `pod` the names of the claims that were made for it, by its own names for them."""
    meta = pod.metadata
    statuses = [
        {"name": name, "resourceClaimName": claim} if claim else {"name": name}
        for name, claim in made.items()
    ]
    return PatchStatus(
        ObjectRef("Pod", meta.namespace, meta.name, meta.uid), {"resourceClaimStatuses": statuses}
    )


def reduced(claim: ResourceClaim, left: Sequence[ClaimConsumer]) -> PatchStatus:
    """`claim` reserved for `left` only, and deallocated if that is nobody."""
    fields: dict[str, Any] = {"reservedFor": [as_json(one) for one in left] or None}
    if not left:
        fields |= {"allocation": None, "devices": None}
    version = claim.metadata.resource_version
    return PatchStatus(claim_ref(claim), fields, resource_version=version)


def unprotected(claim: ResourceClaim) -> PatchObject:
    """Let the claim go when it is deleted."""
    finalizers = [one for one in claim.metadata.finalizers if one != FINALIZER]
    return PatchObject(claim_ref(claim), {"metadata": {"finalizers": finalizers or None}})


def claim_ref(claim: ResourceClaim) -> ObjectRef:
    """The claim's identity."""
    meta = claim.metadata
    return ObjectRef("ResourceClaim", meta.namespace, meta.name, meta.uid)
