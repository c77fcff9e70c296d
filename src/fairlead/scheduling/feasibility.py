"""find_nodes_that_fit: which nodes can take the pod, and why the others cannot.

upstream: pkg/scheduler/schedule_one.go: findNodesThatFitPod. Every node is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fairlead.core.status import Code, Status
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.diagnosis import Diagnosis, restricted_by
from fairlead.framework.interface import PreFilterResult, Rows
from fairlead.framework.plan import ShapePlan, filter_many
from fairlead.scheduling.plan_cache import PlanCache
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo


@dataclass(slots=True)
class Feasibility:
    """The verdict on every node.

    `codes` follow `plan.rows` and index `plan.statuses` (0 fits, below 0 no node there);
    `overrides` are the rows that nominated pods make infeasible or infeasible for another reason.
    `rejected` is set when PreFilter refused the pod as a whole.
    """

    plan: ShapePlan
    state: CycleState
    codes: npt.NDArray[np.int32]
    excluded: Status | None
    rejected: Status | None = None
    overrides: dict[int, Status] = field(default_factory=dict)

    @property
    def is_cached(self) -> bool:
        """Whether the plan's own codes and totals stand as they are."""
        return self.codes is self.plan.codes and not self.overrides

    def positions(self) -> Rows:
        """Where in `plan.rows` the feasible nodes are, ascending."""
        if self.rejected is not None:
            return np.zeros(0, np.int64)
        fits = self.codes == 0
        for row in self.overrides:
            fits[self._position(row)] = False
        return np.flatnonzero(fits)

    def count(self) -> int:
        """How many nodes are feasible."""
        if self.is_cached and self.rejected is None:
            return int(np.count_nonzero(self.codes == 0))
        return len(self.positions())

    def _position(self, row: int) -> int:
        return int(np.searchsorted(self.plan.rows, row))

    def is_feasible(self, node: NodeInfo) -> bool:
        """Whether the pod fits `node`."""
        at = self._position(node.row)
        rows = self.plan.rows
        if self.rejected is not None or at >= len(rows) or rows[at] != node.row:
            return False
        return self.codes[at] == 0 and node.row not in self.overrides

    def error(self) -> Status | None:
        """The first ERROR among the verdicts, which fails the cycle as a whole."""
        for status, _ in self.diagnosis().counts():
            if status.code is Code.ERROR:
                return status
        return None

    def diagnosis(self) -> Diagnosis:
        """The verdicts as the failure handler and PostFilter see them."""
        plan = self.plan
        return Diagnosis(
            table=plan.table,
            rows=plan.rows,
            codes=self.codes,
            statuses=plan.statuses,
            overrides=self.overrides,
            excluded=self.excluded,
            pre_filter=self.rejected,
        )


def find_nodes_that_fit(plans: PlanCache, pod: PodInfo) -> Feasibility:
    """All verdicts for `pod`."""
    plan = plans.plan_for(pod)
    state = plan.state.clone()
    found = Feasibility(plan, state, plan.codes, plan.excluded())
    _pre_filter(plans, pod, found)
    if found.rejected is None:
        _filter_by_cluster(plans, pod, found)
        _count_nominated(plans, pod, found)
    return found


def _pre_filter(plans: PlanCache, pod: PodInfo, found: Feasibility) -> None:
    """Ask what is not cached, in configured order, and stop at the first rejection."""
    plan, framework = found.plan, plans.framework
    if not plan.rejected and not plans.split.cluster_pre_filters:
        return
    plugins = framework.pre_filters if plan.rejected else plans.split.cluster_pre_filters
    for plugin in plugins:
        if plugin.name in plans.split.local_names:
            answer: object = plan.rejected.get(plugin.name)
        else:
            answer = framework.run_pre_filter(found.state, pod, plugin)
        if isinstance(answer, Status):
            found.rejected = answer
            return
        if isinstance(answer, PreFilterResult) and answer.node_names is not None:
            _restrict(found, plugin.name, answer.node_names)


def _restrict(found: Feasibility, plugin: str, names: Iterable[str]) -> None:
    """Exclude every node that is not in `names` from this cycle."""
    plan = found.plan
    nodes = (plan.table.find(name) for name in names)
    kept = np.isin(plan.rows, [node.row for node in nodes if node is not None])
    found.codes = np.where(kept, found.codes, np.int32(-1)).astype(np.int32)
    found.excluded = restricted_by([*plan.restricting, plugin])


def _filter_by_cluster(plans: PlanCache, pod: PodInfo, found: Feasibility) -> None:
    """Filters whose answers depend on more than the node: asked anew, only where still open."""
    skipped = found.state.skipped_filters
    for plugin in plans.split.cluster_filters:
        if plugin.name in skipped:
            continue
        open_at = np.flatnonzero(found.codes == 0)
        if not len(open_at):
            return
        rows = found.plan.rows[open_at]
        verdicts = filter_many(plans.framework, plugin, found.state, pod, rows)
        codes = found.plan.intern(plugin.name, verdicts)
        if codes.any():
            found.codes = found.codes.copy()
            found.codes[open_at] = codes


def _count_nominated(plans: PlanCache, pod: PodInfo, found: Feasibility) -> None:
    """On nodes promised to others, the pod must fit beside them as well."""
    framework = plans.framework
    for name in framework.nominator.nodes():
        if not framework.nominator.rivals_on(name, pod):
            continue
        node = found.plan.table.find(name)
        if node is None:
            continue
        at = found._position(node.row)
        rows = found.plan.rows
        if at >= len(rows) or rows[at] != node.row:
            continue
        status = framework.run_filters_with_nominated(found.state, pod, node)
        if status is not None:
            found.overrides[node.row] = status
