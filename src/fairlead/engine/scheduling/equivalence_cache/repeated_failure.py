"""RepeatedFailures: reuses the failure of a scheduling cycle for equal pods.

Many pending pods may differ only in their names, for example if a workload has more replicas than
fit. A change in the cluster that may make one of these pods schedulable wakes all of them. Between
their cycles, the data that Filters and preemption read stays the same. So all of them fail for the
same reasons.

A failure is kept only under two conditions. First, all plugins of the cycle depend only on nodes,
pods, the objects in `RelatedObjects`, and the DeviceClasses of resources. Second, preemption has
evaluated all nodes and found no candidate. Members of PodGroups and pods with a nomination are
always evaluated.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, cast

from fairlead.engine.framework.extension_point import type_of
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.scheduling.decision import Failure
from fairlead.engine.scheduling.equivalence_cache.equivalence_key import equivalence_key
from fairlead.engine.scheduling.preemption.default_preemption import DefaultPreemption
from fairlead.engine.state.pod_info import PodInfo

# Plugins whose results for a node depend on other nodes as well, but on nothing except nodes, pods
# and the objects in RelatedObjects. The same is true of DynamicResources for pods without claims.
# It runs for such a pod only if a DeviceClass is mapped to one of the pod's resources.
_OF_PODS: Final = (InterPodAffinity, PodTopologySpread)
_KEPT_MAX: Final = 1_024
# The positions of the logs of nodes, pods and nominations, and the versions of related objects,
# disruption budgets and DeviceClasses.
_State = tuple[int, int, int, int, int, int]


class RepeatedFailures:
    """Keeps one profile's last failure for each group of equal pods, until the cluster changes."""

    def __init__(self, framework: Framework) -> None:
        """Create an empty cache for the pods that `framework` schedules."""
        self._framework = framework
        self._state: _State | None = None
        self._kept: dict[Hashable, Failure] = {}

    def find(self, pod: PodInfo) -> Failure | None:
        """Return the stored failure of a pod equal to `pod`; None if no stored failure applies.

        A stored failure applies until the cluster's state (`_State`) changes. It never applies to
        pods with a nomination or to members of PodGroups.
        """
        if not self._kept:
            return None
        if self._state != self._current():
            self._kept.clear()
            return None
        return None if self._is_special(pod) else self._kept.get(equivalence_key(pod))

    def keep(self, pod: PodInfo, found: Feasibility, failure: Failure) -> None:
        """Keep `failure`, the result of the cycle of `pod`, if it also applies to equal pods."""
        if failure.post_filter_result is not None or failure.is_error or failure.commands:
            return
        if self._is_special(pod) or not self._depends_on_state(pod, found):
            return
        state = self._current()
        if self._state != state or len(self._kept) >= _KEPT_MAX:
            self._kept.clear()
            self._state = state
        self._kept[equivalence_key(pod)] = failure

    def _current(self) -> _State:
        cluster, nominator = self._framework.cluster, self._framework.nominator
        table, related = cluster.table, cluster.related
        return (
            table.node_log.position,
            table.pod_log.position,
            nominator.log.position,
            related.version,
            related.budgets.version,
            cluster.devices.class_version,
        )

    def _is_special(self, pod: PodInfo) -> bool:
        """Return whether `pod` has a nomination or belongs to a PodGroup."""
        if pod.pod.status.nominated_node_name or pod.pod.spec.scheduling_group is not None:
            return True
        return bool(self._framework.nominator.node_of(pod.uid))

    def _depends_on_state(self, pod: PodInfo, found: Feasibility) -> bool:
        """Return whether all plugins of the cycle depend only on the pod and on `_State`."""
        split, skipped = found.plan.split, found.state.skipped_filters
        has_claims = bool(pod.shape.spec.resource_claims)

        def is_known(plugin: object) -> bool:
            if issubclass(type_of(plugin), DynamicResources):
                return not has_claims and DynamicResources.name in skipped
            return type_of(plugin) in _OF_PODS

        return (
            all(is_known(point.plugin) for point in split.wider_filters)
            and all(map(is_known, split.cluster_pre_filters))
            and all(
                cast("DefaultPreemption", plugin).evaluates_every_node
                if issubclass(type_of(plugin), DefaultPreemption)
                else is_known(plugin)
                for plugin in self._framework.post_filters
            )
        )
