"""What is written to bind a claim to a volume, and to make a volume.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go: bind, provisionClaimOperation;
the volume looks as one made by a CSI driver's provisioner does.
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
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.plugins.volume_binding.pre_bind import BOUND_BY_CONTROLLER
from fairlead.engine.plugins.volume_lookup.in_tree_volume import BETA_ZONE, IN_TREE_KINDS, ZONE
from fairlead.engine.plugins.volume_lookup.volume_lookup import BIND_COMPLETED, class_name
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE

BOUND: Final = "Bound"
RELEASED: Final = "Released"
_YES: Final = "yes"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DRIVER_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DIRECTORY: Final = "/var/lib/fairlead"


def volume_ref(volume: PersistentVolume) -> ObjectRef:
    """The volume's identity."""
    return ObjectRef("PersistentVolume", "", volume.key, volume.metadata.uid)


def claim_ref(claim: PersistentVolumeClaim) -> ObjectRef:
    """The claim's identity."""
    meta = claim.metadata
    return ObjectRef("PersistentVolumeClaim", meta.namespace, meta.name, meta.uid)


def bind(claim: PersistentVolumeClaim, volume: PersistentVolume) -> list[Command]:
    """What comes next for both to name each other, and to say so.

    First the volume must name the claim; who else wanted it has lost then.
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


def let_go(volume: PersistentVolume) -> Command:
    """What becomes of a volume whose claim is gone."""
    # upstream: pv_controller.go: reclaimVolume
    if volume.spec.persistent_volume_reclaim_policy == "Delete":
        return DeleteObject(volume_ref(volume), why="claim deleted")
    return PatchStatus(volume_ref(volume), {"phase": RELEASED})


def give_class(claim: PersistentVolumeClaim, name: str) -> PatchObject:
    """Let a claim without a class have the default one."""
    return PatchObject(claim_ref(claim), {"spec": {"storageClassName": name}})


def give_up_node(claim: PersistentVolumeClaim) -> PatchObject:
    """Tell the scheduler that the volume cannot be made on the node it chose."""
    return PatchObject(claim_ref(claim), {"metadata": {"annotations": {SELECTED_NODE: None}}})


def provision(
    claim: PersistentVolumeClaim, of: StorageClass, node: Node | None, csi_node: CSINode | None
) -> CreateObject:
    """A volume for `claim`, reachable where `node` is; from everywhere if there is no node."""
    driver = driver_of(of)
    name = f"pvc-{claim.metadata.uid or claim.key.replace('/', '-')}"
    spec: Json = {
        "accessModes": list(claim.spec.access_modes),
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "1Gi")},
        "claimRef": _reference(claim),
        **_source(driver, name),
        "persistentVolumeReclaimPolicy": of.reclaim_policy,
        "storageClassName": class_name(claim),
        "volumeMode": claim.spec.volume_mode,
    }
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    if node is not None:
        spec |= _reachable_from(node, _topology_keys(driver, of, csi_node))
    annotations = {"pv.kubernetes.io/provisioned-by": driver}
    return CreateObject(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": annotations},
            "spec": spec,
        }
    )


def driver_of(of: StorageClass) -> str:
    """Who makes the volumes of a class: its provisioner, or the driver that took its place."""
    kind = IN_TREE_KINDS.get(of.provisioner)
    return of.provisioner if kind is None else kind.driver


def _source(driver: str, name: str) -> Json:
    """Where the data are: with a CSI driver, or in a directory, as local-path's provisioner has it.

    upstream: pkg/apis/core/validation/validation.go:ValidateCSIDriverName
    """
    if not _DRIVER_NAME.fullmatch(driver):
        return {"hostPath": {"path": f"{_DIRECTORY}/{name}"}}
    return {"csi": {"driver": driver, "volumeHandle": name}}


def _topology_keys(driver: str, of: StorageClass, csi_node: CSINode | None) -> list[str]:
    """The labels that tell where the driver's volumes are.

    The driver says so itself; else the class's topologies do; else volumes live in zones.
    """
    if csi_node is not None:
        for one in csi_node.spec.drivers:
            if one.name == driver and one.topology_keys:
                return list(one.topology_keys)
    terms = of.allowed_topologies
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
