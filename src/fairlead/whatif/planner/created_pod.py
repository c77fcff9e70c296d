"""create_pod: creates a new pod in a ClusterModel, with the claims that controllers create for it.

    before the pod   the claims of a StatefulSet's volumeClaimTemplates, unless they exist
    after the pod    the claims of its ephemeral volumes and of its ResourceClaimTemplates

upstream: pkg/controller/statefulset, pkg/controller/volume/ephemeral/controller.go,
pkg/controller/resourceclaim/controller.go
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    PersistentVolumeClaim,
    Pod,
    PodResourceClaimStatus,
    ResourceClaimTemplate,
)
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM_TEMPLATE
from fairlead.engine.workloads.devices.resource_claims import claim_manifest
from fairlead.engine.workloads.volumes.claim_creation import ephemeral_claims
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.new_pod import NewPods
from fairlead.whatif.planner.pod_claim import with_volume


class CreatedPod(Struct, frozen=True):
    """A pod after admission, and the objects created for it: its own claims and their volumes."""

    pod: Pod
    claims: tuple[ApiObject, ...]


def create_pod(model: ClusterModel, source: NewPods, number: int, name: str = "") -> CreatedPod:
    """Create the pod `number` of `source` and its claims, and put the claims into `model`.

    The pod itself is not put into the model. Its name is `name`, or `source.name_of(number)` if
    `name` is "".
    Raises ApiError if admission refuses the pod or a claim.
    """
    claims: list[ApiObject] = []
    for manifest in source.claims(number):
        # A claim of an earlier pod of this name is used again
        # (stateful_pod_control.go: createPersistentVolumeClaims).
        meta = manifest["metadata"]
        if model.store.find(PERSISTENT_VOLUME_CLAIM, meta["namespace"], meta["name"]) is None:
            claims += _put_claim(model, manifest)
    manifest = source.pod(number)
    if name:
        manifest = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
    pod = model.create(manifest)
    assert isinstance(pod, Pod)
    statuses = []
    for status, claim in _resource_claims(model, pod):
        model.put(claim)
        statuses.append(status)
        claims.append(claim)
    if statuses:
        pod = replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses)))
    for command in ephemeral_claims(pod):
        # A claim of this name that another pod left stays, and the scheduler rejects the pod, which
        # does not own the claim (controller.go: handleVolume).
        meta = command.manifest["metadata"]
        if model.store.find(PERSISTENT_VOLUME_CLAIM, meta["namespace"], meta["name"]) is None:
            claims += _put_claim(model, dict(command.manifest))
    return CreatedPod(pod, tuple(claims))


def _put_claim(model: ClusterModel, manifest: Json) -> list[ApiObject]:
    claim = model.create(manifest)
    assert isinstance(claim, PersistentVolumeClaim)
    found = list(with_volume(claim, model.cluster))
    for one in found:
        model.put(one)
    return list(found)


def _resource_claims(
    model: ClusterModel, pod: Pod
) -> Iterator[tuple[PodResourceClaimStatus, ApiObject]]:
    """Create a claim for each ResourceClaimTemplate that `pod` names and that exists."""
    for wanted in pod.spec.resource_claims:
        name = wanted.resource_claim_template_name
        space = pod.metadata.namespace
        template = model.store.find(RESOURCE_CLAIM_TEMPLATE, space, name) if name else None
        if template is not None:
            manifest = claim_manifest(pod, wanted, decode_as(ResourceClaimTemplate, template))
            claim = model.create(manifest)
            yield PodResourceClaimStatus(wanted.name, claim.metadata.name), claim
