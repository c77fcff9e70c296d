"""The plugins that a 1.16 profile uses in place of, or in addition to, in-tree plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.node_affinity import NodeAffinity
from fairlead.engine.plugins.registry import Factory
from fairlead.engine.plugins.release_1_16.inter_pod_affinity_priority import (
    InterPodAffinityPriority,
)
from fairlead.engine.plugins.release_1_16.node_affinity_priority import NodeAffinityPriority
from fairlead.engine.plugins.release_1_16.node_condition import (
    CheckNodeCondition,
    CheckNodePressure,
)
from fairlead.engine.plugins.release_1_16.requested import (
    RequestedScore,
    Sums,
    balanced,
    least,
    most,
)


def _node_affinity(_handle: Handle, _args: Mapping[str, Any]) -> Plugin:
    return NodeAffinityPriority(NodeAffinity())


def _inter_pod_affinity(handle: Handle, _args: Mapping[str, Any]) -> Plugin:
    return InterPodAffinityPriority(handle.cluster.table, InterPodAffinity(handle))


def release_1_16(sums: Sums) -> Mapping[str, Factory]:
    """Return the factories of the plugins of 1.16, keyed by plugin name.

    `sums` computes the requests of a pod, and the total requests of the pods on a node.
    """
    return {
        "CheckNodeCondition": lambda _h, _a: CheckNodeCondition(),
        "CheckNodeMemoryPressure": lambda _h, _a: CheckNodePressure(
            "MemoryPressure", only_best_effort=True
        ),
        "CheckNodeDiskPressure": lambda _h, _a: CheckNodePressure("DiskPressure"),
        "CheckNodePIDPressure": lambda _h, _a: CheckNodePressure("PIDPressure"),
        "LeastRequestedPriority": lambda _h, _a: RequestedScore(
            "LeastRequestedPriority", least, sums
        ),
        "MostRequestedPriority": lambda _h, _a: RequestedScore("MostRequestedPriority", most, sums),
        "BalancedResourceAllocation": lambda _h, _a: RequestedScore(
            "BalancedResourceAllocation", balanced, sums
        ),
        "NodeAffinityPriority": _node_affinity,
        "InterPodAffinityPriority": _inter_pod_affinity,
    }
