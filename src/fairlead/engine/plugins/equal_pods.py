"""EqualPods: which pods are equal to the plugins whose results are not cached in a plan.

For most pods, these plugins do nothing: the pods have neither constraints nor claims, and no term
of another pod concerns them. Then they do nothing for the next equal pod either, until something
changes that they read. Placed pods without affinity terms change nothing.

    key       equal for pods that the plugins cannot tell apart
    version   equal as long as nothing changes that the plugins read
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from fairlead.api.pods.facts import controller_of
from fairlead.engine.framework.extension_point import type_of
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_index.affinity_term import has_pod_affinity
from fairlead.engine.state.pod_info import PodInfo

# Plugins whose PreFilter and PreScore skip a pod, or not, by what `key` and `version` contain.
_KNOWN: Final = (InterPodAffinity, PodTopologySpread, DynamicResources)
# The position of the log of nodes, and the versions of all else that these plugins read.
Version = tuple[int, int, int, int]


class EqualPods:
    """Compares pods as the plugins do that are called in every cycle."""

    def __init__(self, cluster: Cluster) -> None:
        """Compare pods of `cluster`."""
        self._cluster = cluster
        self._table = cluster.table

    def key(self, pod: PodInfo) -> Hashable:
        """Return a key that is equal for pods that the plugins cannot tell apart."""
        meta = pod.pod.metadata
        pods = self._table.pod_index.pod_class_of(pod)
        return pod.shape.id, pods, controller_of(meta) if meta.owner_references else None

    def version(self) -> Version:
        """Return the version of all that the plugins read."""
        cluster, table = self._cluster, self._table
        return (
            table.node_log.position,
            cluster.related.version,
            cluster.devices.class_version,
            table.pod_index.term_changes,
        )


def are_comparable(plan: ShapePlan, pod: PodInfo) -> bool:
    """Return whether the plugins outside `plan` treat pods alike that have the key of `pod`.

    Filters that run for the pod are not considered. All scores must be known before the nodes are.
    """
    return (
        not plan.static.live
        and not has_pod_affinity(pod.shape.spec)
        and all(type_of(plugin) in _KNOWN for plugin in plan.split.cluster_pre_filters)
        and all(point.scores_alike(pod) for point in plan.split.cluster_scorers)
    )
