"""Commands that bind a claim to a volume, and commands that provision a volume.

A provisioned volume looks like a volume that the provisioner of a CSI driver created.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go: bind, provisionClaimOperation
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import (
    CSINode,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from fairlead.api.pods.volumes import BOUND
from fairlead.api.well_known_label import BETA_ZONE, ZONE
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.plugins.volume_binding.pre_bind import BOUND_BY_CONTROLLER
from fairlead.engine.plugins.volume_lookup.in_tree_volume import IN_TREE_KINDS
from fairlead.engine.plugins.volume_lookup.volume_lookup import BIND_COMPLETED, class_name
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE
from fairlead.engine.workloads.volumes.volume_index import AVAILABLE

RELEASED: Final = "Released"
FAILED: Final = "Failed"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_YES: Final = "yes"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DRIVER_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DELETABLE_PATH: Final = re.compile(r"/tmp/.+")  # noqa: S108 - the pattern that upstream uses
_DIRECTORY: Final = "/var/lib/fairlead"


def volume_ref(volume: PersistentVolume) -> ObjectRef:
    """Return the object reference of the volume."""
    return ObjectRef("PersistentVolume", "", volume.key, volume.metadata.uid)


def claim_ref(claim: PersistentVolumeClaim) -> ObjectRef:
    """Return the object reference of the claim."""
    meta = claim.metadata
    return ObjectRef("PersistentVolumeClaim", meta.namespace, meta.name, meta.uid)


def bind(claim: PersistentVolumeClaim, volume: PersistentVolume) -> list[Command]:
    """Return the next writes of a binding, or [] if `claim` and `volume` are both Bound.

    If the claimRef of `volume` does not refer to `claim` yet, only the write that sets the claimRef
    is returned. This write fails with a conflict if the volume has changed in the meantime. For
    example, the volume may have been bound to another claim.
    """
    reference = volume.spec.claim_ref
    if reference is None or reference.uid != claim.metadata.uid:
        return [_take(volume, claim)]
    commands: list[Command] = []
    if volume.status.phase != BOUND:
        commands.append(PatchStatus(volume_ref(volume), {"phase": BOUND}))
    if claim.spec.volume_name != volume.key or BIND_COMPLETED not in claim.metadata.annotations:
        annotations = {BIND_COMPLETED: _YES}
        if not claim.spec.volume_name:
            annotations[BOUND_BY_CONTROLLER] = _YES
        metadata = {"annotations": annotations}
        patch = {"metadata": metadata, "spec": {"volumeName": volume.key}}
        commands.append(PatchObject(claim_ref(claim), patch))
    if claim.status.phase != BOUND:
        status = {
            "phase": BOUND,
            "accessModes": list(volume.spec.access_modes),
            "capacity": dict(volume.spec.capacity),
        }
        commands.append(PatchStatus(claim_ref(claim), status))
    return commands


def _take(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PatchObject:
    version = volume.metadata.resource_version
    metadata: Json = {"resourceVersion": version} if version else {}
    if volume.spec.claim_ref is None:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: _YES}
    patch = {"metadata": metadata, "spec": {"claimRef": _reference(claim)}}
    return PatchObject(volume_ref(volume), patch)


def free(volume: PersistentVolume) -> PatchStatus:
    """Return the write that sets the phase of `volume`, which has no bound claim, to Available.

    upstream: pv_controller.go: syncVolume, updateVolumePhase
    """
    status: Json = {"phase": AVAILABLE}
    if volume.status.phase == FAILED:
        status["message"] = None
    return PatchStatus(volume_ref(volume), status)


def reclaim(volume: PersistentVolume, *, deletes: bool) -> list[Command]:
    """Return the next command for a volume whose claim was deleted, or [] if none is needed.

    The first command sets the volume to Released, because a finalizer protects a Bound volume from
    deletion. A second command is needed only for the reclaim policy Delete. This command deletes
    the volume, or sets it to Failed if no volume plugin can delete it. If `deletes` is False,
    external provisioners delete the volumes that they provisioned. Such volumes need no second
    command.

    upstream: pv_controller.go: syncVolume, reclaimVolume, deleteVolumeOperation,
    findDeletablePlugin
    """
    target, phase = volume_ref(volume), volume.status.phase
    if phase not in (RELEASED, FAILED):
        return [PatchStatus(target, {"phase": RELEASED})]
    is_to_go = volume.spec.persistent_volume_reclaim_policy == "Delete"
    if not is_to_go or volume.metadata.deletion_timestamp:
        return []
    is_provisioned = PROVISIONED_BY in volume.metadata.annotations
    problem = "" if is_provisioned else _deletion_problem(volume)
    if problem:
        failed = PatchStatus(target, {"phase": FAILED, "message": problem})
        return [] if phase == FAILED else [failed]
    if deletes or not is_provisioned:
        return [DeleteObject(target, why="claim deleted")]
    return []


def _deletion_problem(volume: PersistentVolume) -> str:
    """Return why upstream cannot delete `volume`, which no provisioner created; "" if it can."""
    # upstream: pkg/volume/hostpath/host_path.go:Delete
    if volume.spec.host_path is None:
        return (
            f'error getting deleter volume plugin for volume "{volume.key}": '
            "no volume plugin matched"
        )
    path = volume.spec.host_path.get("path", "")
    if _DELETABLE_PATH.search(path):
        return ""
    return f"host_path deleter only supports /tmp/.+ but received provided {path}"


def set_class(claim: PersistentVolumeClaim, name: str) -> PatchObject:
    """Return the patch that sets the default class `name` on a claim without a class."""
    return PatchObject(claim_ref(claim), {"spec": {"storageClassName": name}})


def remove_selected_node(claim: PersistentVolumeClaim) -> PatchObject:
    """Return the patch that removes selected-node, so that the scheduler chooses another node."""
    return PatchObject(claim_ref(claim), {"metadata": {"annotations": {SELECTED_NODE: None}}})


def provision(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    node: Node | None,
    csi_node: CSINode | None,
) -> CreateObject:
    """Return the command that creates a volume for `claim` in the topology of `node`.

    The topology consists of labels of `node`. `_topology_keys` returns the keys of these labels for
    the driver and `csi_node`. If `node` is None or has none of these labels, the volume is
    accessible from every node.
    """
    driver = driver_of(storage_class)
    name = f"pvc-{claim.metadata.uid or claim.key.replace('/', '-')}"
    spec: Json = {
        "accessModes": list(claim.spec.access_modes),
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "1Gi")},
        "claimRef": _reference(claim),
        **_source(driver, name),
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
        "storageClassName": class_name(claim),
        "volumeMode": claim.spec.volume_mode,
    }
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    if node is not None:
        spec |= _reachable_from(node, _topology_keys(driver, storage_class, csi_node))
    annotations = {PROVISIONED_BY: driver}
    return CreateObject(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": annotations},
            "spec": spec,
        }
    )


def driver_of(storage_class: StorageClass) -> str:
    """Return the provisioner of a class; the CSI driver for an in-tree provisioner."""
    kind = IN_TREE_KINDS.get(storage_class.provisioner)
    return storage_class.provisioner if kind is None else kind.driver


def _source(driver: str, name: str) -> Json:
    """Return the source of the volume `name`: the CSI driver `driver`, or a host path.

    The source is a host path if `driver` is not a valid name of a CSI driver. For example,
    rancher.io/local-path is not valid.

    upstream: pkg/apis/core/validation/validation.go:ValidateCSIDriverName
    """
    if not _DRIVER_NAME.fullmatch(driver):
        return {"hostPath": {"path": f"{_DIRECTORY}/{name}"}}
    return {"csi": {"driver": driver, "volumeHandle": name}}


def _topology_keys(driver: str, storage_class: StorageClass, csi_node: CSINode | None) -> list[str]:
    """Return the keys of the node labels that determine which nodes can access a volume.

    Returns the first of these three that is not empty: the topology keys of `driver` in `csi_node`,
    the keys in the class's allowedTopologies, the zone labels.
    """
    if csi_node is not None:
        for one in csi_node.spec.drivers:
            if one.name == driver and one.topology_keys:
                return list(one.topology_keys)
    terms = storage_class.allowed_topologies
    keys = dict.fromkeys(one.key for term in terms for one in term.match_label_expressions)
    return list(keys) or [ZONE, BETA_ZONE]


def _reachable_from(node: Node, keys: list[str]) -> Json:
    labels = node.metadata.labels
    expressions = [
        {"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels
    ]
    if not expressions:
        return {}
    terms = [{"matchExpressions": expressions}]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}


def _reference(claim: PersistentVolumeClaim) -> Json:
    meta = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }
