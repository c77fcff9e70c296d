"""Builders for volumes, claims and CSI objects; see `fairlead.testing.builders`.

By default, a claim requests 1Gi and has the access mode ReadWriteOnce and the class `fast`. A
volume satisfies such a claim and is Available. A class has a provisioner and the binding mode
WaitForFirstConsumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from fairlead.testing.built_object import built

DRIVER: Final = "csi.example.com"
FAST: Final = "fast"
_STAMP: Final = "2026-01-01T00:00:00Z"


def make_claim_volumes(*names: str) -> Json:
    """Return a pod spec, for `make_pod`, that uses the claims `names`."""
    volumes = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
        for i, name in enumerate(names)
    ]
    return {"volumes": volumes}


def make_claim(  # noqa: PLR0913 - a builder takes what a case varies
    name: str,
    *,
    namespace: str = "default",
    size: str | None = "1Gi",
    of_class: str | None = FAST,
    modes: Iterable[str] = ("ReadWriteOnce",),
    volume: str = "",
    bound: bool = False,
    node: str = "",
    phase: str = "",
    terminating: bool = False,
    made_for: str = "",
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> PersistentVolumeClaim:
    """Return a claim whose volumeName is `volume`, or an unbound claim if `volume` is "".

    If `bound` is set, the binding is complete. `phase` defaults to Bound or Pending, according to
    `bound`. `node` is the claim's selected node. If `size` or `of_class` is None, the field is left
    out. `modes` are the access modes. If `terminating` is set, the claim has a deletionTimestamp.
    `made_for` is the uid of the pod that owns the claim as an ephemeral volume.
    """
    notes = dict(annotations or {})
    notes |= {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    notes |= {"volume.kubernetes.io/selected-node": node} if node else {}
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    metadata |= {"annotations": notes}
    if terminating:
        metadata["deletionTimestamp"] = _STAMP
    if made_for:
        metadata["ownerReferences"] = [{"kind": "Pod", "uid": made_for, "controller": True}]
    own: Json = {"accessModes": list(modes), "volumeName": volume}
    if size is not None:
        own["resources"] = {"requests": {"storage": size}}
    if of_class is not None:
        own["storageClassName"] = of_class
    status = {"phase": phase or ("Bound" if bound else "Pending")}
    obj = {"metadata": metadata, "spec": own | dict(spec or {}), "status": status}
    return built(PersistentVolumeClaim, "v1", obj)


def make_volume(  # noqa: PLR0913 - a builder takes what a case varies
    name: str,
    *,
    size: str = "1Gi",
    of_class: str = FAST,
    modes: Iterable[str] = ("ReadWriteOnce",),
    claim: str = "",
    claim_uid: str | None = None,
    reach: Mapping[str, Iterable[str]] | None = None,
    labels: Mapping[str, str] | None = None,
    phase: str = "",
    terminating: bool = False,
    driver: str = DRIVER,
    handle: str = "",
    spec: Mapping[str, Any] | None = None,
) -> PersistentVolume:
    """Return a volume; `claim` is `namespace/name` of its claim, "" if the volume has no claim.

    `claim_uid` defaults to the uid that `make_claim` sets. If `claim_uid` is "", the volume is
    reserved for the claim, but not bound to it. `phase` defaults to Bound for a volume that is
    bound to a claim, otherwise to Available. `reach` maps the key of a node label to a list of
    values. A node can access the volume if the list of each key contains the node's value of this
    label. If `reach` is None, all nodes can access the volume. `modes` are the volume's access
    modes. If `driver` is not "", the volume is a CSI volume. Its `handle` defaults to the name of
    the volume.
    """
    metadata: Json = {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})}
    if terminating:
        metadata["deletionTimestamp"] = _STAMP
    own: Json = {"capacity": {"storage": size}, "accessModes": list(modes)}
    own |= {"storageClassName": of_class}
    if driver:
        own["csi"] = {"driver": driver, "volumeHandle": handle or name}
    if claim:
        namespace, _, claim_name = claim.rpartition("/")
        uid = f"uid-{claim_name}" if claim_uid is None else claim_uid
        own["claimRef"] = {"namespace": namespace, "name": claim_name, "uid": uid}
    if reach is not None:
        expressions = [
            {"key": key, "operator": "In", "values": list(values)} for key, values in reach.items()
        ]
        terms = [{"matchExpressions": expressions}]
        own["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    status = {"phase": phase or ("Bound" if claim and claim_uid != "" else "Available")}
    obj = {"metadata": metadata, "spec": own | dict(spec or {}), "status": status}
    return built(PersistentVolume, "v1", obj)


def make_storage_class(
    name: str = FAST,
    *,
    provisioner: str = DRIVER,
    waits: bool = True,
    topologies: Iterable[Mapping[str, Iterable[str]]] = (),
    is_default: bool = False,
    reclaim: str = "Delete",
) -> StorageClass:
    """Return a StorageClass with the binding mode WaitForFirstConsumer or Immediate.

    If `waits` is set, the mode is WaitForFirstConsumer. `topologies` are the allowed topologies;
    each maps node labels to allowed values. `reclaim` is the reclaim policy.
    """
    terms = [
        {"matchLabelExpressions": [{"key": k, "values": list(v)} for k, v in term.items()]}
        for term in topologies
    ]
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return built(
        StorageClass,
        "storage.k8s.io/v1",
        {
            "metadata": {"name": name, "annotations": notes},
            "provisioner": provisioner,
            "reclaimPolicy": reclaim,
            "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
            "allowedTopologies": terms,
        },
    )


def make_csi_node(
    name: str,
    *,
    migrated: Iterable[str] = (),
    topology_keys: Iterable[str] = (),
    **limits: int | None,
) -> CSINode:
    """Return a CSINode; `limits` has volume limits by driver.

    In the name of a driver, `_` stands for a dot. A limit of None means no limit. `migrated`
    contains the names of the in-tree plugins that are migrated to CSI on the node. Every driver
    gets the same `topology_keys`.
    """
    drivers = [
        {
            "name": driver.replace("_", "."),
            "allocatable": {} if limit is None else {"count": limit},
            "topologyKeys": list(topology_keys),
        }
        for driver, limit in limits.items()
    ]
    listed = ",".join(migrated)
    notes = {"storage.alpha.kubernetes.io/migrated-plugins": listed} if listed else {}
    metadata = {"name": name, "annotations": notes}
    return built(CSINode, "storage.k8s.io/v1", {"metadata": metadata, "spec": {"drivers": drivers}})


def make_csi_driver(name: str = DRIVER, *, tells_capacity: bool) -> CSIDriver:
    """Return a CSI driver, which publishes storage capacity if `tells_capacity` is set."""
    return built(
        CSIDriver,
        "storage.k8s.io/v1",
        {"metadata": {"name": name}, "spec": {"storageCapacity": tells_capacity}},
    )


def make_capacity(
    name: str,
    *,
    capacity: str | None = None,
    maximum: str | None = None,
    topology: Mapping[str, Any] | None = None,
    of_class: str = FAST,
) -> CSIStorageCapacity:
    """Return a CSIStorageCapacity for the class `of_class`, on the nodes that `topology` matches.

    `topology` is a label selector. `capacity` and `maximum` (the maximum size of a volume) are
    quantities. If an argument is None, its field is left out.
    """
    obj: Json = {"metadata": {"name": name, "namespace": "kube-system"}}
    obj["storageClassName"] = of_class
    said = {"capacity": capacity, "maximumVolumeSize": maximum, "nodeTopology": topology}
    obj |= {key: value for key, value in said.items() if value is not None}
    return built(CSIStorageCapacity, "storage.k8s.io/v1", obj)


def make_attachment(
    name: str, node: str, volume: str, *, attacher: str = DRIVER
) -> VolumeAttachment:
    """Return an attachment of `volume` to `node`."""
    source = {"persistentVolumeName": volume}
    spec = {"attacher": attacher, "nodeName": node, "source": source}
    return built(VolumeAttachment, "storage.k8s.io/v1", {"metadata": {"name": name}, "spec": spec})
