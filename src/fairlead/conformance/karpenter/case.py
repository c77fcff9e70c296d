"""Converts a recorded case of Karpenter to objects: cluster, options, instance types of each pool.

The cloud provider of the recordings is fictitious; its labels and the form of its offerings are
defined here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.codec import decode, decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import ObjectMeta
from fairlead.api.timestamp import parse_timestamp
from fairlead.api.well_known_label import ZONE
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, NodeOverlay, NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    CORE_WELL_KNOWN_LABELS,
    RESERVED,
)
from fairlead.engine.autoscaling.karpenter.options import (
    MAX_INSTANCE_TYPES,
    RESPECT,
    STRICT,
    KarpenterOptions,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import combined
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts
from fairlead.engine.core.instant import Instant, seconds

RESERVATION_ID: Final = "example.com/reservation-id"
WELL_KNOWN: Final = CORE_WELL_KNOWN_LABELS | {
    "example.com/instance-family",
    "example.com/instance-size",
    "example.com/instance-cpu",
    "example.com/instance-gpu-name",
    RESERVATION_ID,
}
_UNSCHEDULABLE: Final = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]

# The lists of objects in a case: (kind, apiVersion, default namespace).
KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "pods": ("Pod", "v1", "default"),
    "nodes": ("Node", "v1", ""),
    "nodeClaims": ("NodeClaim", "karpenter.sh/v1", ""),
    "nodePools": ("NodePool", "karpenter.sh/v1", ""),
    "nodeOverlays": ("NodeOverlay", "karpenter.sh/v1alpha1", ""),
    "daemonSets": ("DaemonSet", "apps/v1", "default"),
    "pdbs": ("PodDisruptionBudget", "policy/v1", "default"),
    "namespaces": ("Namespace", "v1", ""),
    "storageClasses": ("StorageClass", "storage.k8s.io/v1", ""),
    "persistentVolumes": ("PersistentVolume", "v1", ""),
    "persistentVolumeClaims": ("PersistentVolumeClaim", "v1", "default"),
    "csiNodes": ("CSINode", "storage.k8s.io/v1", ""),
}
# (apiVersion, default namespace) of each kind.
_API_VERSIONS: Final[Mapping[str, tuple[str, str]]] = {
    kind: (version, namespace) for kind, version, namespace in KINDS.values()
}
_OWN_VIEWS: Final[Mapping[str, type[NodeClaim | NodePool | NodeOverlay]]] = {
    "NodeClaim": NodeClaim,
    "NodePool": NodePool,
    "NodeOverlay": NodeOverlay,
}


def read_options(case: Json) -> KarpenterOptions:
    """Return the Karpenter options of a case."""
    stated = case.get("options") or {}
    gates = stated.get("featureGates", {})
    return KarpenterOptions(
        preference_policy=stated.get("preferencePolicy", RESPECT),
        min_values_policy=stated.get("minValuesPolicy", STRICT),
        reserved_capacity=gates.get("ReservedCapacity", True),
        spot_to_spot_consolidation=gates.get("SpotToSpotConsolidation", False),
        node_overlay=gates.get("NodeOverlay", False),
        ignore_dra_requests=stated.get("ignoreDRARequests", True),
        max_instance_types=stated.get("maxInstanceTypes", MAX_INSTANCE_TYPES),
        unsupported_provisioners=frozenset(stated.get("unsupportedProvisioners", ())),
        unsupported_topology_keys=frozenset(stated.get("unsupportedTopologyKeys", ())),
        well_known_labels=WELL_KNOWN,
    )


def read_object(kind: str, manifest: Json) -> Any:
    """Return the object of `kind` that `manifest` describes in a recorded case.

    Missing fields get the defaults that the recorder applied. Raises ValueError if cases cannot
    contain objects of `kind`.
    """
    obj = without_nulls(manifest)
    if kind not in _API_VERSIONS:
        raise ValueError(f"unknown kind {kind!r}")
    api_version, namespace = _API_VERSIONS[kind]
    meta = {**({"namespace": namespace} if namespace else {}), **obj.get("metadata", {})}
    meta.setdefault("uid", f"u-{meta['name']}")
    obj = {**obj, "apiVersion": api_version, "kind": kind, "metadata": meta}
    if kind == "Pod":
        obj = _with_pod_defaults(obj)
    if kind == "Node":
        obj = _with_node_defaults(obj)
    view = _OWN_VIEWS.get(kind)
    return decode(obj) if view is None else decode_as(view, obj)


def _with_pod_defaults(pod: Json) -> Json:
    bound = bool(pod["spec"].get("nodeName"))
    status = {"phase": "Running" if bound else "Pending", **pod.get("status", {})}
    if not bound:
        status.setdefault("conditions", _UNSCHEDULABLE)
    return {**pod, "status": status}


def _with_node_defaults(node: Json) -> Json:
    status = dict(node.get("status", {}))
    status.setdefault("conditions", [{"type": "Ready", "status": "True"}])
    return {**node, "status": status}


def read_cluster(case: Json) -> tuple[KarpenterCluster, Instant]:
    """Return (cluster, start time) of a case.

    Raises ValueError if an object or the time is invalid.
    """
    cluster = KarpenterCluster()
    now = parse_timestamp(case["now"])
    for field, (kind, _, _) in KINDS.items():
        for stated in case.get(field) or ():
            cluster.put(read_object(kind, stated), now)
    cluster.namespaces.setdefault(
        "default", read_object("Namespace", {"metadata": {"name": "default"}})
    )
    keys = {node.node_name or node.name: node.key for node in cluster.nodes(now)}
    for name, ago in (case.get("nominated") or {}).items():
        cluster.nominate(keys.get(name, name), now - seconds(ago))
    for name in case.get("markedForDeletion") or ():
        cluster.mark((keys.get(name, name),))
    return cluster, now


class CaseTypes:
    """The instance types of a case, for each NodePool; a timeline can change their offerings."""

    def __init__(self, case: Json) -> None:
        """Read the instance types of `case`.

        A pool without an entry in `poolInstanceTypes` has all instance types.
        """
        self._stated: list[Json] = [dict(one) for one in case["instanceTypes"]]
        self._pools: Mapping[str, list[str]] = case.get("poolInstanceTypes") or {}
        self._types: dict[str, InstanceType] = {}
        self._tables: dict[tuple[str, ...] | None, InstanceTypeTable] = {}

    def table(self, pool: NodePool) -> InstanceTypeTable:
        """Return the instance types that the provider offers to `pool`."""
        names = self._pools.get(pool.name)
        key = None if names is None else tuple(names)
        found = self._tables.get(key)
        if found is None:
            types = self.types(pool)
            found = self._tables[key] = InstanceTypeTable(types, WELL_KNOWN)
        return found

    def types(self, pool: NodePool) -> list[InstanceType]:
        """Return the instance types of `pool`, in the order of the case's `instanceTypes`."""
        names = self._pools.get(pool.name)
        if not self._types:
            self._types = {one["name"]: read_instance_type(one) for one in self._stated}
        return [one for name, one in self._types.items() if names is None or name in names]

    def set_offering(self, change: Json) -> None:
        """Change the availability or the price of the offerings that `change` selects.

        `change` selects by `instanceType`, `zone` and `capacityType`. An absent or empty selector
        selects all offerings.
        """
        for stated in self._stated:
            if change.get("instanceType") not in (None, "", stated["name"]):
                continue
            stated["offerings"] = [_changed(one, change) for one in stated["offerings"]]
        self._types.clear()
        self._tables.clear()


def _changed(offering: Json, change: Json) -> Json:
    for field in ("zone", "capacityType"):
        if change.get(field) not in (None, "", offering[field]):
            return offering
    return {**offering, **{f: change[f] for f in ("available", "price") if f in change}}


def read_instance_type(entry: Json) -> InstanceType:
    """Return the InstanceType that `entry`, an item of the case's `instanceTypes`, describes."""
    return InstanceType(
        entry["name"],
        combined(
            requirement(one["key"], one["operator"], one.get("values") or ())
            for one in entry["requirements"]
        ),
        amounts(entry["capacity"]),
        amounts(entry.get("overhead") or {}),
        tuple(_offering(one) for one in entry.get("offerings") or ()),
    )


def _offering(stated: Json) -> Offering:
    reservation = stated.get("reservationID", "")
    is_reserved = stated["capacityType"] == RESERVED
    operator = "In" if is_reserved else "DoesNotExist"
    requirements = combined(
        (
            requirement(CAPACITY_TYPE, "In", (stated["capacityType"],)),
            requirement(ZONE, "In", (stated["zone"],)),
            requirement(RESERVATION_ID, operator, (reservation,) if is_reserved else ()),
        )
    )
    return Offering(
        requirements,
        stated["price"],
        stated.get("available", True),
        reservation,
        stated.get("reservationCapacity", 0),
    )


def shown_key(meta: ObjectMeta) -> str:
    """Return the pod's name; prepend `namespace/` unless the namespace is `default` or empty."""
    return meta.name if meta.namespace in ("", "default") else f"{meta.namespace}/{meta.name}"


def shown_pod(key: str) -> str:
    """Return `key`, which is `namespace/name`, without the namespace if that is `default`."""
    return key.removeprefix("default/")
