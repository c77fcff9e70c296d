"""Node pools: the nodes that belong together, and a template for new nodes of a pool.

Managed node pools mark their nodes with a label (POOL_LABELS). Other nodes form a pool if they have
the same labels and taints (`NodeTraits`). Labels about one node or its place do not count, and
taints that are removed later do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.nodes.autoscaler_taint import (
    DELETION_CANDIDATE,
    DISRUPTED_TAINT,
    STARTUP_PREFIXES,
    TO_BE_DELETED,
    UNREGISTERED_TAINT,
)
from fairlead.api.nodes.readiness import is_ready_node
from fairlead.api.nodes.taint import CONDITION_TAINTS, OUT_OF_SERVICE
from fairlead.api.objects import Node, QuantityText
from fairlead.api.resource_name import is_extended_resource
from fairlead.api.well_known_label import (
    BETA_REGION,
    BETA_ZONE,
    HOSTNAME,
    MACHINE_FACTS,
    REGION,
    ZONE,
    region_and_zone,
)

EKS_NODE_GROUP: Final = "eks.amazonaws.com/nodegroup"
EKSCTL_NODE_GROUP: Final = "alpha.eksctl.io/nodegroup-name"
GKE_NODE_POOL: Final = "cloud.google.com/gke-nodepool"
AKS_AGENT_POOL: Final = "kubernetes.azure.com/agentpool"
KOPS_INSTANCE_GROUP: Final = "kops.k8s.io/instancegroup"

KARPENTER_POOL: Final = "karpenter.sh/nodepool"

POOL_LABELS: Final = (
    KARPENTER_POOL,
    EKS_NODE_GROUP,
    EKSCTL_NODE_GROUP,
    GKE_NODE_POOL,
    AKS_AGENT_POOL,
    "agentpool",
    KOPS_INSTANCE_GROUP,
)
"""The labels of Karpenter, EKS, eksctl, GKE, AKS (and AKS before 2021) and kops, by precedence."""

_ZONE_LABELS: Final = (ZONE, BETA_ZONE, "topology.ebs.csi.aws.com/zone")
_ZONE_SUFFIX: Final = "/zone"
# The zone's id and network node layers (upstream: cloud-provider-aws pkg/providers/v1/tags.go).
_AWS_PLACE: Final = "topology.k8s.aws/"
_KEPT: Final = ("capacity", "allocatable", "nodeInfo", "declaredFeatures")
_INDIVIDUAL: Final = frozenset((REGION, BETA_REGION, HOSTNAME))
_TRANSIENT_TAINTS: Final = CONDITION_TAINTS | {
    OUT_OF_SERVICE,
    TO_BE_DELETED,
    DELETION_CANDIDATE,
    DISRUPTED_TAINT,
    UNREGISTERED_TAINT,
}
# upstream, for the first one: karpenter pkg/scheduling/taints.go: KnownEphemeralTaints
_AGENT_PREFIXES: Final = ("readiness.k8s.io/", *STARTUP_PREFIXES)
# The end of the keys of taints that agents remove when they are ready, for example
# node.cilium.io/agent-not-ready, ebs.csi.aws.com/agent-not-ready and cni.istio.io/not-ready.
_NOT_READY: Final = "not-ready"
# The taints and labels of a machine that AWS is about to stop, for example a spot machine
# (aws-node-termination-handler pkg/node/node.go: TaintSpotItn, MarkWithEventID).
_AWS_INTERRUPTION: Final = "aws-node-termination-handler/"


def managed_pool(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return (key, value) of the first of POOL_LABELS in a node's `labels`, or None."""
    return _first_of(POOL_LABELS, labels)


def pool_labels(labels: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the POOL_LABELS by which at least one node states its pool (`managed_pool`).

    The result has the order of POOL_LABELS. `labels` contains the labels of each node. A cluster
    can have pools of several kinds, for example node groups of EKS beside NodePools of Karpenter.
    """
    found = {pool[0] for one in labels if (pool := managed_pool(one)) is not None}
    return tuple(key for key in POOL_LABELS if key in found)


class PoolNames(Struct, frozen=True):
    """Finds the pools of nodes: the first of `keys` that a node has as a label states its pool.

    `shared` are the values that state a pool under several of the `keys`.
    """

    keys: tuple[str, ...]
    shared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, keys: tuple[str, ...], nodes: Iterable[Mapping[str, str]]) -> PoolNames:
        """Return the PoolNames with `keys`, for a cluster whose nodes have the labels `nodes`."""
        pools = {pool for one in nodes if (pool := _first_of(keys, one)) is not None}
        counts = Counter(value for _, value in pools)
        return cls(keys, frozenset(value for value, count in counts.items() if count > 1))

    def name(self, labels: Mapping[str, str]) -> str:
        """Return the name of the pool of a node with `labels`; "" if the node has no pool.

        The name is the value of the label that states the pool. If this value is in `shared`, the
        name is `key=value`, in which `key` is the last part of the label's key. A label without a
        value, such as `node-role.kubernetes.io/worker`, states the pool `key`.
        """
        pool = _first_of(self.keys, labels)
        if pool is None:
            return ""
        key, value = pool
        last = key.rpartition("/")[2]
        if not value:
            return last
        return f"{last}={value}" if value in self.shared else value


def _first_of(keys: Iterable[str], labels: Mapping[str, str]) -> tuple[str, str] | None:
    for key in keys:
        if key in labels:
            return key, labels[key]
    return None


def zone_labels(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of the `labels` that state the zone of a node.

    The labels in _ZONE_LABELS always state the zone. Volume drivers repeat the zone in a label of
    their own, such as topology.gke.io/zone. Such a label counts only if its value equals the value
    of topology.kubernetes.io/zone. The two values differ on an Azure node that is in no zone. On
    such a node, cloud-provider-azure sets topology.kubernetes.io/zone to a fault domain, but the
    driver leaves topology.disk.csi.azure.com/zone empty.
    """
    zone = labels.get(ZONE, "")
    return tuple(
        key
        for key, value in labels.items()
        if key in _ZONE_LABELS or (zone and value == zone and key.endswith(_ZONE_SUFFIX))
    )


def place_labels(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of a node's `labels` in which AWS states the place of the machine.

    Such labels contain the id of the zone, or the network nodes above the machine.
    """
    return tuple(key for key in labels if key.startswith(_AWS_PLACE))


def labels_in_zone(labels: Mapping[str, str], zone: str) -> dict[str, str]:
    """Return `labels` of a node, changed as if the node were in `zone`.

    If `zone` is "", the node is in no zone. If `zone` differs from the zone in `labels`, the labels
    about the place of the machine are left out.
    """
    zones = zone_labels(labels)
    places = () if zone == labels.get(ZONE, "") else place_labels(labels)
    found = {key: value for key, value in labels.items() if key not in (*zones, *places)}
    return found | dict.fromkeys(zones or (ZONE,), zone) if zone else found


class NodeTraits(Struct, frozen=True):
    """The common properties of a pool's nodes: labels, and lasting taints as `key=value:effect`."""

    labels: frozenset[tuple[str, str]]
    taints: tuple[str, ...]


def node_traits(node: Node, besides: Container[str] = ()) -> NodeTraits:
    """Return the labels and taints of `node` that nodes of the same pool share.

    Labels with the keys `besides` are left out.

    If the value of a label names the node or its machine, the result has "" instead of the value.
    Examples: TopoLVM and k3s label each node with its own name. eksctl labels each node with the id
    of its instance.
    """
    own = node.metadata.labels
    left_out = _INDIVIDUAL.union(zone_labels(own), place_labels(own))
    names = {node.metadata.name, own.get(HOSTNAME, ""), _machine_id(node)}
    labels = frozenset(
        (key, "" if value in names else value)
        for key, value in own.items()
        if key not in left_out and key not in besides and not key.startswith(_AWS_INTERRUPTION)
    )
    taints = sorted(
        f"{one.key}={one.value}:{one.effect}"
        for one in node.spec.taints
        if is_lasting_taint(one.key)
    )
    return NodeTraits(labels, tuple(taints))


def _machine_id(node: Node) -> str:
    """Return the last part of the node's providerID; "" if this part is a number.

    A number is not unique: on Azure, each scale set numbers its own machines.
    """
    found = node.spec.provider_id.rpartition("/")[2]
    return "" if found.isdigit() else found


def is_in_service(node: Node) -> bool:
    """Return whether `node` is Ready and not cordoned."""
    return is_ready_node(node) and not node.spec.unschedulable


def name_of_node(node: Node) -> str:
    """Return the name of `node`.

    Before a choice among nodes, sort them by this key. The choice then does not depend on the order
    of the nodes in a file.
    """
    return node.metadata.name


def copy_order(node: Node) -> tuple[bool, str, str]:
    """Return a sort key; new nodes are copies of the node with the greatest key.

    The greatest key belongs to the newest node in service. If no node is in service, it belongs to
    the newest node.
    """
    return is_in_service(node), node.metadata.creation_timestamp, node.metadata.name


def is_lasting_taint(key: str) -> bool:
    """Return whether new nodes of a pool have a taint with this key if old nodes have it."""
    is_interruption = key.startswith(_AWS_INTERRUPTION)
    return not (key in _TRANSIENT_TAINTS or is_interruption or awaits_agent(key))


def awaits_agent(key: str) -> bool:
    """Return whether an agent of the node removes a taint with this key when the agent is ready.

    The result is False for node.kubernetes.io/not-ready, which the node lifecycle controller sets.
    """
    is_of_agent = key.startswith(_AGENT_PREFIXES) or key.endswith(_NOT_READY)
    return is_of_agent and key not in CONDITION_TAINTS


def own_labels(labels: Mapping[str, str], node: str, topology: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of the `labels` of `node` whose values name the node itself.

    Such keys are the hostname label, and keys in `topology` whose value is the node's name.
    `topology` contains the topology keys of the node's CSINode. A driver of local volumes labels
    each node with the node's own name.

    upstream: pkg/volume/csi/nodeinfomanager/nodeinfomanager.go: updateTopologyLabels
    """
    local = (one for one in topology if labels.get(one) == node and one not in MACHINE_FACTS)
    return tuple(dict.fromkeys((HOSTNAME, *local)))


def with_all_devices(
    allocatable: Mapping[str, QuantityText], capacity: Mapping[str, QuantityText]
) -> dict[str, QuantityText]:
    """Return `allocatable` with the `capacity` of each extended resource, such as nvidia.com/gpu.

    The allocatable amount of an existing node leaves out devices that are not healthy, and is 0
    while the device plugin starts. The devices of a new node are healthy.

    upstream: pkg/kubelet/cm/devicemanager/manager.go: GetCapacity
    """
    devices = {name: one for name, one in capacity.items() if is_extended_resource(name)}
    return {**allocatable, **devices}


def with_model_first(nodes: Sequence[Json]) -> list[Json]:
    """Return `nodes`, which belong to one group, with the group's model first.

    New nodes of the group are copies of the model. The model is the first node in service, or the
    first node if none is in service.

    upstream: cluster-autoscaler processors/nodeinfosprovider/mixed_nodeinfos_processor.go:
    isNodeGoodTemplateCandidate
    """
    in_service = (one for one in nodes if is_in_service(decode_as(Node, without_nulls(one))))
    model = next(in_service, nodes[0])
    return [model, *(one for one in nodes if one is not model)]


def other_zones(nodes: Sequence[Json]) -> tuple[Json, ...]:
    """Return a template for each zone of `nodes` other than the zone of `nodes[0]`.

    Each template has the properties of `nodes[0]`, except the labels that state zone and place.
    These labels come from the first node in the template's zone.
    """
    model = node_template(nodes[0])
    kept = _without_zone(model["metadata"]["labels"])
    found: dict[str, Json] = {}
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        zone = region_and_zone(labels)[1]
        if zone not in found:
            others = _without_zone(labels)
            own = {key: value for key, value in labels.items() if key not in others}
            found[zone] = {**model, "metadata": {"labels": {**kept, **own}}}
    return tuple(found.values())[1:]


def _without_zone(labels: Mapping[str, str]) -> dict[str, str]:
    left_out = {*zone_labels(labels), *place_labels(labels)}
    return {key: value for key, value in labels.items() if key not in left_out}


def node_template(node: Json) -> Json:
    """Return a node object without a name, with the labels, taints and size of `node`.

    Taints that new nodes of the pool do not have are left out (`is_lasting_taint`).
    """
    labels = {
        key: value
        for key, value in (node["metadata"].get("labels") or {}).items()
        if key != HOSTNAME
    }
    taints = [
        taint
        for taint in (node.get("spec") or {}).get("taints") or ()
        if is_lasting_taint(str(taint.get("key", "")))
    ]
    status = node.get("status") or {}
    kept = {key: status[key] for key in _KEPT if key in status}
    spec = {"taints": taints} if taints else {}
    template: Json = without_nulls({"metadata": {"labels": labels}, "spec": spec, "status": kept})
    return template
