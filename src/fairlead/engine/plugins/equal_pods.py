"""EqualPods: recognises pods that the uncached plugins treat alike.

Plans (`ShapePlan`) cache the plugin results that depend only on a node and its pods. Plugins whose
results no plan caches are called uncached plugins here. Uncached plugins skip most pods, because
most pods have neither constraints nor claims, and match no affinity term of another pod. If the
uncached plugins skip a pod, they also skip all pods with an equal `key`, until `version` changes.

    key       if two pods have an equal key, the uncached plugins read equal data for both
    version   as long as it stays the same, the cluster data that the uncached plugins read has not
              changed
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

# If a pod has no affinity terms, `key` and `version` determine whether PreFilter and PreScore of
# these plugins skip the pod.
_KNOWN: Final = (InterPodAffinity, PodTopologySpread, DynamicResources)
# (position of the node log, version of related objects, of DeviceClasses, of placed affinity terms)
Version = tuple[int, int, int, int]


class EqualPods:
    """Compares pods by the data that the uncached plugins read.

    A plugin is called uncached if no plan (`ShapePlan`) caches its results.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._table = cluster.table

    def key(self, pod: PodInfo) -> Hashable:
        """Return a key such that the uncached plugins read equal data for pods with equal keys.

        The uncached plugins are those whose results no plan (`ShapePlan`) caches.
        """
        meta = pod.pod.metadata
        pods = self._table.pod_index.pod_class_of(pod)
        return pod.shape.id, pods, controller_of(meta) if meta.owner_references else None

    def version(self) -> Version:
        """Return the version of the cluster data that plugins without cached results read."""
        cluster, table = self._cluster, self._table
        return (
            table.node_log.position,
            cluster.related.version,
            cluster.devices.class_version,
            table.pod_index.term_changes,
        )


def are_comparable(plan: ShapePlan, pod: PodInfo) -> bool:
    """Return whether uncached plugins treat all pods whose key equals the key of `pod` alike.

    The key is `EqualPods.key`. A plugin is uncached if `plan` does not contain its results. Only
    PreFilter and Score are considered; the caller must check the uncached Filters that run for
    `pod`. Also returns False if normalisation makes a score depend on the set of feasible nodes.
    """
    return (
        not plan.static.live
        and not has_pod_affinity(pod.shape.spec)
        and all(type_of(plugin) in _KNOWN for plugin in plan.split.cluster_pre_filters)
        and all(point.scores_alike(pod) for point in plan.split.cluster_scorers)
    )
