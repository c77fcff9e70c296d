"""Feasibility: a profile's verdict on every node, for one pod.

    plugins whose result depends only on the pod and the node   cached for pods with equal specs
    plugins that depend on more (affinity, spread, volumes)     called for the remaining nodes

A `ShapePlan` contains the cached results. The verdicts do not take nominated pods into account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.engine.core.status import Code, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.interface import PreFilterResult, Rows
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.framework.plan.static_results import NO_NODE
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo


class Feasibility(Struct, eq=False):
    """The verdicts on every node for one pod.

    `plan.rows[i]` is the row of a node: its index in the node table. The verdict on this node is
    `statuses[codes[i]]`.
    """

    plan: ShapePlan  # the cached results for pods with equal specs
    state: CycleState
    # Code 0 means that the pod fits. A negative code means that the row has no node or that the
    # node is excluded. The array may belong to a cache that changes it in the next cycle.
    codes: npt.NDArray[np.int32]
    restricting: tuple[str, ...]  # the plugins whose PreFilter limits the nodes by name
    rejected: Status | None = None  # set if PreFilter rejected the pod as a whole
    # `("Extender",)` if extenders removed nodes, otherwise (). Needed because the statuses of
    # extenders name no plugin.
    extender_rejectors: tuple[str, ...] = ()
    _verdicts: list[Status] = []

    @property
    def statuses(self) -> list[Status]:
        """The statuses to which `codes` refers.

        The list contains the statuses of `plan` (the cached results for the pod's spec), followed
        by the statuses that `judge` added in this cycle.
        """
        return self._verdicts or self.plan.statuses

    @property
    def is_cached(self) -> bool:
        """Whether `codes` is `plan.codes` itself. If so, the feasible nodes are those of `plan`."""
        return self.codes is self.plan.codes

    def positions(self) -> Rows:
        """Return the indexes in `plan.rows` of the feasible nodes, ascending.

        The result is a read-only array, for which plugins may cache results.
        """
        if self.rejected is not None:
            return np.zeros(0, np.int64)
        if self.is_cached:
            return self.plan.feasible_positions()
        found: Rows = (self.codes == 0).nonzero()[0]
        found.flags.writeable = False
        return found

    def count(self) -> int:
        """Return the number of feasible nodes."""
        if self.rejected is not None:
            return 0
        if self.codes is self.plan.codes:
            return self.plan.count_feasible()
        return len(self.codes) - int(np.count_nonzero(self.codes))

    def is_feasible(self, node: NodeInfo) -> bool:
        """Return whether the pod fits `node`."""
        at = self.plan.position(node.row)
        return self.rejected is None and at is not None and self.codes[at] == 0

    def nodes(self) -> list[NodeInfo]:
        """Return the feasible nodes, in row order."""
        table = self.plan.table
        return [table.at(row) for row in self.plan.rows_at(self.positions()).tolist()]

    def without(self, gone: Rows) -> None:
        """Exclude nodes, whether feasible or not. `gone` contains their indexes in `plan.rows`."""
        self.codes = self.codes.copy()
        self.codes[gone] = NO_NODE

    def keep(self, positions: Rows) -> None:
        """Limit the feasible nodes to the nodes at `positions` (indexes in `plan.rows`)."""
        self.judge(positions, {})

    def judge(self, positions: Rows, verdicts: Mapping[int, Status]) -> None:
        """Limit the feasible nodes to those at `positions`; set `verdicts` for other nodes.

        A position is an index into `plan.rows`. `verdicts` maps positions of rejected nodes to
        their verdicts. Feasible nodes that neither argument contains are excluded (NO_NODE).
        """
        codes = self.codes.copy()
        codes[codes == 0] = NO_NODE
        if verdicts:
            self._verdicts = list(self.statuses)
        for position, status in verdicts.items():
            codes[position] = len(self._verdicts)
            self._verdicts.append(status)
        codes[positions] = 0
        self.codes = codes

    def error(self) -> Status | None:
        """Return the first ERROR verdict, which fails the whole cycle, or None."""
        if self.rejected is not None:
            return self.rejected if self.rejected.code is Code.ERROR else None
        if not self.plan.has_errors:
            return None
        verdicts = (status for status, _ in self.diagnosis().counts())
        return next((status for status in verdicts if status.code is Code.ERROR), None)

    def diagnosis(self) -> Diagnosis:
        """Return the verdicts as a Diagnosis, for failure messages and PostFilter."""
        plan = self.plan
        return Diagnosis(
            table=plan.table,
            rows=plan.rows,
            codes=self.codes,
            statuses=self.statuses,
            restricting=self.restricting,
            pre_filter=self.rejected,
            extender_rejectors=self.extender_rejectors,
            code_counts=None if self._verdicts else plan.code_counts,
        )


def filter_nodes(plans: PlanCache, pod: PodInfo) -> Feasibility:
    """Run PreFilter and Filter for `pod` on every node."""
    plan = plans.plan_for(pod)
    found = run_pre_filters(plans, pod, plan)
    if found.rejected is None:
        _filter_by_cluster(pod, found)
    return found


def run_pre_filters(plans: PlanCache, pod: PodInfo, plan: ShapePlan) -> Feasibility:
    """Run the PreFilter plugins for `pod` and return the result.

    The result has the verdicts of `plan`, but excludes the nodes that a PreFilter plugin excludes.
    If a PreFilter plugin rejects the pod, `rejected` of the result is set.
    """
    found = Feasibility(plan, plan.state.clone(), plan.codes, tuple(plan.restricting))
    _pre_filter(plans, pod, found)
    return found


def _pre_filter(plans: PlanCache, pod: PodInfo, found: Feasibility) -> None:
    """Run, in configured order, the PreFilter plugins whose results are not cached.

    Stops at the first rejection. A cached rejection takes effect at the place of its plugin in this
    order.
    """
    plan, framework = found.plan, plans.framework
    split, rejected = plan.split, plan.rejected
    for plugin in split.pre_filters if rejected else split.cluster_pre_filters:
        if rejected and plugin.name in split.local_names:
            answer: object = rejected.get(plugin.name)
        else:
            answer = framework.run_pre_filter(found.state, pod, plugin)
        if answer is None:
            continue
        if isinstance(answer, Status):
            found.rejected = answer
            return
        if isinstance(answer, PreFilterResult) and answer.node_names is not None:
            _restrict(found, plugin.name, answer.node_names)


def _restrict(found: Feasibility, plugin: str, names: Iterable[str]) -> None:
    """Exclude from this cycle all nodes that are not in `names`."""
    plan = found.plan
    nodes = (plan.table.find(name) for name in names)
    kept = np.isin(plan.rows, [node.row for node in nodes if node is not None])
    found.codes = np.where(kept, found.codes, np.int32(NO_NODE))
    found.restricting += (plugin,)


def _filter_by_cluster(pod: PodInfo, found: Feasibility) -> None:
    """Run the Filter plugins without cached results, on the nodes that are still feasible.

    If all rows are feasible, each plugin gets the array `plan.rows`, not a copy. A plugin that
    keeps its own verdicts for this array can then reuse these verdicts.
    """
    skipped, plan = found.state.skipped_filters, found.plan
    for point in plan.split.cluster_filters:
        if point.name in skipped:
            continue
        if found.count() == len(found.codes):
            codes = plan.run_filter(point, found.state, pod, plan.rows)
            found.codes = codes if np.count_nonzero(codes) else found.codes
            continue
        open_at = found.positions()
        if not len(open_at):
            return
        codes = plan.run_filter(point, found.state, pod, plan.rows_at(open_at))
        if np.count_nonzero(codes):
            found.codes = found.codes.copy()
            found.codes[open_at] = codes
