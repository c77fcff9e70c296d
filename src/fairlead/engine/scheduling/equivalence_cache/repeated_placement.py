"""RepeatedPlacements: reuses the common parts of the scheduling cycles of equal pods.

The pods of a workload are equal except for their names. A plan (`engine.framework.feasibility`)
caches the results of some plugins. The other plugins do nothing for most pods. Most pods have
neither constraints nor claims, and no affinity term of another pod matches them. Pods with the same
scheduling-relevant spec share a `Shape`. The cycle of the second pod of a shape finds out whether
the plugins without cached results do nothing. If these plugins do nothing, the cycles of the
following equal pods only bring the plan up to date and choose one of the best nodes.

    pods 1 and 2  PreFilter, Filter, PreScore, Score of all plugins; `keep`
    other pods    `find`: refresh the plan, best nodes, tie-break

`keep` stores one entry for all equal pods. If placed pods have anti-affinity to these pods, the
entry also contains the nodes that InterPodAffinity accepts.

An entry is valid until there is a change in the data that the plugins without cached results read.
These data are nodes, related objects, DeviceClasses, and the affinity terms of placed pods.

A node is left out if the pod and the pods that are nominated to the node do not fit together
(`nominated_pods`). All plugins run for pods that have a nomination or belong to a PodGroup.
Upstream also reuses the results of a cycle, but only if no further equal pod fits the node on which
the last pod was placed (framework/runtime/batch.go: GetNodeHint).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from msgspec import Struct

from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.extension_point import type_of
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Mask
from fairlead.engine.framework.plan.highest_totals import HighestTotals
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources
from fairlead.engine.plugins.equal_pods import EqualPods, Version, are_comparable
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.volume_binding.plugin import VolumeBinding
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.scheduling.nominated_pods import best_beside_nominated
from fairlead.engine.state.pod_info import PodInfo

# Plugins that use the CycleState when a pod is bound, but each only its own data. If PreFilter of
# such a plugin skips a pod, the plugin stores no data and does nothing when the pod is bound.
_READERS: Final = (DynamicResources, VolumeBinding)
_KEPT_MAX: Final = 1_024


class _Kept(Struct, frozen=True, eq=False):
    """The common part of the cycles of equal pods.

    `accepted` finds the best of the nodes that InterPodAffinity accepts. `accepted` is None if
    InterPodAffinity does not run for these pods. `only_bind_runs` is set if the Reserve, Permit and
    PreBind plugins have nothing to do for these pods.
    """

    state: CycleState
    accepted: HighestTotals | None
    only_bind_runs: bool


class RepeatedPlacements:
    """Keeps, for one profile, the common parts of the scheduling cycles of equal pods."""

    def __init__(self, plans: PlanCache) -> None:
        """Start without entries; `plans` are the plans of the profile."""
        framework = plans.framework
        self._plans = plans
        self._equal = EqualPods(framework.cluster)
        self._nominator = framework.nominator
        self._table = framework.cluster.table
        binding = (*framework.reserve, *framework.permit, *framework.pre_bind)
        self._shares_state = all(type_of(plugin) in _READERS for plugin in binding)
        self._binding = {plugin.name for plugin in binding}
        self._version: Version | None = None
        self._kept: dict[Hashable, _Kept] = {}

    def find(self, pod: PodInfo, tie_break: TieBreak) -> Placement | None:
        """Return the placement of `pod` if `keep` has stored an entry for equal pods, else None.

        Also returns None if the entry cannot be used now, if no node fits, or if a plugin fails.
        `tie_break` is used only if the result is not None.
        """
        if not self._kept or self._is_special(pod):
            return None
        if self._version != self._equal.version():
            self._kept.clear()
            return None
        kept = self._kept.get(self._equal.key(pod))
        if kept is None:
            return None
        plan = self._plans.plan_for(pod)
        if plan.rejected or plan.has_errors or plan.score_error or plan.first_broken(plan.codes):
            return None
        accepted = kept.accepted
        if self._nominator:
            if accepted is not None or plan.node_names is not None:
                return None
            accepted = best_beside_nominated(self._plans, pod, plan, kept.state)
        return self._choose(kept, plan, accepted, tie_break)

    def _choose(
        self,
        kept: _Kept,
        plan: ShapePlan,
        accepted: HighestTotals | None,
        tie_break: TieBreak,
    ) -> Placement | None:
        """Choose one of the nodes with the best score in `plan`.

        If `accepted` is not None, only the nodes that it accepts are considered. Returns None if no
        node is feasible.
        """
        feasible = plan.count_feasible(None if accepted is None else accepted.mask)
        if not feasible:
            return None
        best = plan.best_positions() if accepted is None else accepted.find(plan.total)
        node = self._table.at(plan.row(int(best[tie_break.pick(len(best))])))
        state = kept.state if self._shares_state else kept.state.clone()
        via = "single" if feasible == 1 else "score"
        return Placement(node, state, via, feasible, len(best), kept.only_bind_runs)

    def keep(self, pod: PodInfo, found: Feasibility) -> None:
        """Store results of the cycle of `pod` if the cycles of equal pods can use them.

        `found` contains the verdicts of this cycle. At least one node must be feasible. Nothing is
        stored for the first pod with a certain spec (`Shape`), because there may be no second pod
        with this spec.
        """
        plan, skipped = found.plan, found.state.skipped_filters
        if not plan.is_reused or self._is_special(pod) or not are_comparable(plan, pod):
            return
        running = [point for point in plan.split.cluster_filters if point.name not in skipped]
        if not all(type_of(point.plugin) is InterPodAffinity for point in running):
            return
        accepted = None
        if running:
            if plan.node_names is not None:
                return
            # In the cycle of `pod`, the plugin evaluated only nodes that were still feasible.
            mask: Mask = plan.run_filter(running[0], found.state, pod, plan.rows) == 0
            accepted = HighestTotals(self._table.pod_log, mask)
        version = self._equal.version()
        if self._version != version or len(self._kept) >= _KEPT_MAX:
            self._kept.clear()
            self._version = version
        only_bind_runs = self._shares_state and self._binding <= skipped.keys()
        self._kept[self._equal.key(pod)] = _Kept(found.state.clone(), accepted, only_bind_runs)

    def _is_special(self, pod: PodInfo) -> bool:
        """Return whether `pod` has a nomination or belongs to a PodGroup."""
        if pod.pod.status.nominated_node_name or pod.pod.spec.scheduling_group is not None:
            return True
        return bool(self._nominator.node_of(pod.uid))
