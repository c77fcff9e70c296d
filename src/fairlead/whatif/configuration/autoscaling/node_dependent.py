"""The CSINodes and ResourceSlices of the nodes that a simulated autoscaler adds.

A new node gets copies of the CSINode and ResourceSlices (its *dependents*) of an existing node. For
Cluster Autoscaler, this is a node of the same group. For Karpenter, it is a node of the same
instance type, if possible in the same NodePool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from fairlead.api.objects import Node
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.apiserver.kind import CSI_NODE, NODE, RESOURCE_SLICE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.engine.autoscaling.node_dependents import (
    NO_DEPENDENTS,
    DependentsOfTypes,
    NodeDependents,
    dependents_of_nodes,
)
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import is_in_service
from fairlead.whatif.snapshot.samples import samples

_NOTE = (
    "New nodes have the volume limits (CSINode) and devices (ResourceSlices) of an existing node: "
    "{0}. {1} before the node exists."
)
_AUTOSCALER = "Cluster Autoscaler does not know the volume limits"


def with_group_dependents(
    config: ClusterAutoscalerConfig, initial: Iterable[Manifest]
) -> tuple[ClusterAutoscalerConfig, tuple[str, ...]]:
    """Return (`config` with the CSINode and ResourceSlices for new nodes of each group, notes).

    These objects are copied from one node of the group that has a CSINode or ResourceSlices. A node
    in service is preferred. If the instance types of that node and the group's template differ,
    only the CSINode is copied, because the devices of the template's type are unknown. If objects
    are copied, a note names the nodes from which they are copied.
    """
    known, nodes = _read(initial)
    if not known:
        return config, ()
    groups = tuple(replace(one, dependents=_of_group(one, nodes, known)) for one in config.groups)
    copied = [f"{one.id} {one.dependents.like}" for one in groups if one.dependents.objects]
    notes = (_NOTE.format(", ".join(copied), _AUTOSCALER),) if copied else ()
    return replace(config, groups=groups), notes


def with_type_dependents(
    config: KarpenterConfig, initial: Iterable[Manifest]
) -> tuple[KarpenterConfig, tuple[str, ...]]:
    """Return (`config` with the CSINode and ResourceSlices for new nodes, notes).

    The objects are copied from an existing node that has a CSINode or ResourceSlices. The first
    choice is a node with the NodePool and instance type of the new node. The second choice is a
    node with only the instance type. If neither exists, only the CSINode is copied, from a node of
    the NodePool. Among nodes of equal choice, nodes in service are preferred.
    """
    known, nodes = _read(initial)
    by_type: dict[tuple[str, str], NodeDependents] = {}
    by_pool: dict[str, NodeDependents] = {}
    for node in nodes:
        own = known.get(node.metadata.name)
        if own is None:
            continue
        labels = node.metadata.labels
        pool, instance_type = labels.get(NODE_POOL, ""), labels.get(INSTANCE_TYPE, "")
        if instance_type:
            by_type.setdefault((pool, instance_type), own)
            by_type.setdefault(("", instance_type), own)
        if pool:
            by_pool.setdefault(pool, own)
    if not by_type and not by_pool:
        return config, ()
    copied = sorted({own.like for own in (*by_type.values(), *by_pool.values())})
    note = _NOTE.format(", ".join(copied), "Karpenter does not know them")
    return replace(config, dependents=DependentsOfTypes(by_type, by_pool)), (note,)


def _read(initial: Iterable[Manifest]) -> tuple[dict[str, NodeDependents], list[Node]]:
    """Return (dependents by node, nodes).

    Nodes in service come before the other nodes; both are sorted by name. If there are no
    dependents, no nodes are returned. Raises InputError for a dependent with a field of the wrong
    type.
    """
    initial = samples(initial)
    dependents = [one for one in initial if one.kind is CSI_NODE or one.kind is RESOURCE_SLICE]
    for one in dependents:
        one.require_right_types()
    known = dependents_of_nodes([one.value for one in dependents])
    if not known:
        return {}, []
    nodes = [one.node for one in initial if one.kind is NODE]
    return known, sorted(nodes, key=lambda node: (not is_in_service(node), node.metadata.name))


def _of_group(
    group: NodeGroupSpec, nodes: Sequence[Node], known: Mapping[str, NodeDependents]
) -> NodeDependents:
    for node in nodes:
        own = known.get(node.metadata.name)
        if own is not None and group.owns(node):
            is_same = node.metadata.labels.get(INSTANCE_TYPE) == group.node_labels.get(
                INSTANCE_TYPE
            )
            return own if is_same else own.without_devices()
    return NO_DEPENDENTS
