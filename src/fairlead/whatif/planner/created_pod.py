"""create_pod: creates a new pod in a ClusterModel, with the claims that controllers create for it.

    before the pod   the missing claims of a StatefulSet's volumeClaimTemplates
    after the pod    the claims of the pod's ephemeral volumes and of its ResourceClaimTemplates

upstream: pkg/controller/statefulset, pkg/controller/volume/ephemeral/controller.go,
pkg/controller/resourceclaim/controller.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    PersistentVolumeClaim,
    Pod,
    PodResourceClaimStatus,
    ReplicaSet,
    ReplicationController,
    ResourceClaimTemplate,
    StatefulSet,
)
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM_TEMPLATE
from fairlead.engine.workloads.devices.resource_claims import claim_manifest
from fairlead.engine.workloads.volumes.claim_creation import ephemeral_claims
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.new_pod import NewPods
from fairlead.whatif.planner.pod_claim import with_volume

_CONTROLLERS: Final[Mapping[str, type[ReplicaSet | StatefulSet | ReplicationController]]] = {
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
    "ReplicationController": ReplicationController,
}


class CreatedPod(Struct, frozen=True):
    """A pod after admission, and the objects created for it.

    `claims` are the claims that belong only to this pod, and the volumes of these claims.
    `controller` is the controller of the pod if the controller is new as well.
    """

    pod: Pod
    claims: tuple[ApiObject, ...]
    controller: ApiObject | None = None


def create_pod(model: ClusterModel, source: NewPods, number: int, name: str = "") -> CreatedPod:
    """Create the pod `number` of `source` and its claims.

    The claims are put into `model`, and so is the pod's controller if it is new. The pod itself is
    not put into the model. Its name is `name`, or `source.name_of(number)` if `name` is "". Raises
    ApiError if admission refuses the pod or a claim.
    """
    controller = _controller(model, source)
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
        # If another pod left a claim of this name, the claim stays. The scheduler then rejects the
        # new pod, because the pod does not own the claim (controller.go: handleVolume).
        meta = command.manifest["metadata"]
        if model.store.find(PERSISTENT_VOLUME_CLAIM, meta["namespace"], meta["name"]) is None:
            claims += _put_claim(model, dict(command.manifest))
    return CreatedPod(pod, tuple(claims), controller)


def _controller(model: ClusterModel, source: NewPods) -> ApiObject | None:
    """Add the controller of `source` to `model` and return it; None if nothing was added."""
    if source.controller is None:
        return None
    view = _CONTROLLERS[source.controller["kind"]]
    found: ReplicaSet | StatefulSet | ReplicationController = decode_as(view, source.controller)
    if model.cluster.related.get(view, found.key) is not None:
        return None
    model.put(found)
    return found


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
    """Create a claim for each existing ResourceClaimTemplate that `pod` names.

    Yield (the entry for the status of `pod`, the claim) for each claim.
    """
    for wanted in pod.spec.resource_claims:
        name = wanted.resource_claim_template_name
        space = pod.metadata.namespace
        template = model.store.find(RESOURCE_CLAIM_TEMPLATE, space, name) if name else None
        if template is not None:
            manifest = claim_manifest(pod, wanted, decode_as(ResourceClaimTemplate, template))
            claim = model.create(manifest)
            yield PodResourceClaimStatus(wanted.name, claim.metadata.name), claim
