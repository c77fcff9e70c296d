"""Feasibility: a profile's verdict for every node, for one pod.

    PreFilter and Filter plugins that depend on the node alone          cached in the shape's plan
    plugins that depend on more (affinity, spread, volumes)             called for the nodes left

Nominated pods are not counted here.
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
from fairlead.engine.framework.plan.shape_plan import DEAD, ShapePlan
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo


class Feasibility(Struct, eq=False):
    """The verdicts on one pod for every node.

    `codes[i]` is the index in `statuses` of the verdict on row `plan.rows[i]` (0: fits, negative:
    no node). It is the plan's own array unless an uncached plugin changed a verdict. `rejected` is
    set if PreFilter rejected the pod as a whole. `unnamed` are plugins that rejected nodes but
    appear in no status.
    """

    plan: ShapePlan
    state: CycleState
    codes: npt.NDArray[np.int32]
    restricting: tuple[str, ...]
    rejected: Status | None = None
    unnamed: tuple[str, ...] = ()
    _verdicts: list[Status] = []

    @property
    def statuses(self) -> list[Status]:
        """The statuses that `codes` refers to: the plan's, then those of this cycle."""
        return self._verdicts or self.plan.statuses

    @property
    def is_cached(self) -> bool:
        """True if the cached codes and totals of the plan apply to the pod unchanged."""
        return self.codes is self.plan.codes

    def positions(self) -> Rows:
        """Return the indexes in `plan.rows` of the feasible nodes, ascending."""
        if self.rejected is not None:
            return np.zeros(0, np.int64)
        if self.is_cached and self.plan.node_names is None:
            rows = self.plan.rows  # each row is at its own position
            if self.count() == len(rows):
                return rows
        return np.flatnonzero(self.codes == 0)

    def count(self) -> int:
        """Return the number of feasible nodes."""
        if self.rejected is not None:
            return 0
        if self.codes is self.plan.codes:
            return self.plan.count_feasible()
        return len(self.codes) - int(np.count_nonzero(self.codes))

    def is_feasible(self, node: NodeInfo) -> bool:
        """Return True if the pod fits `node`."""
        at = self.plan.position(node.row)
        return self.rejected is None and at is not None and self.codes[at] == 0

    def nodes(self) -> list[NodeInfo]:
        """Return the feasible nodes, in row order."""
        table = self.plan.table
        return [table.at(row) for row in self.plan.rows[self.positions()].tolist()]

    def without(self, gone: Rows) -> None:
        """Remove the nodes at the positions `gone`, whether or not the pod fits them."""
        self.codes = self.codes.copy()
        self.codes[gone] = DEAD

    def keep(self, positions: Rows) -> None:
        """Limit the feasible nodes to those at `positions`."""
        self.judge(positions, {})

    def judge(self, positions: Rows, verdicts: Mapping[int, Status]) -> None:
        """Limit the feasible nodes to `positions`; `verdicts` gives reasons for other positions.

        A node that was feasible and has no entry in `verdicts` ends up without a verdict.
        """
        codes = self.codes.copy()
        codes[codes == 0] = DEAD
        if verdicts:
            self._verdicts = list(self.statuses)
        for position, status in verdicts.items():
            codes[position] = len(self._verdicts)
            self._verdicts.append(status)
        codes[positions] = 0
        self.codes = codes

    def error(self) -> Status | None:
        """Return the first ERROR among the verdicts: a failing plugin fails the whole cycle."""
        if self.rejected is not None:
            return self.rejected if self.rejected.code is Code.ERROR else None
        if not self.plan.has_errors:
            return None
        verdicts = (status for status, _ in self.diagnosis().counts())
        return next((status for status in verdicts if status.code is Code.ERROR), None)

    def diagnosis(self) -> Diagnosis:
        """Return the verdicts as a Diagnosis, for the failure handler and PostFilter."""
        plan = self.plan
        return Diagnosis(
            table=plan.table,
            rows=plan.rows,
            codes=self.codes,
            statuses=self.statuses,
            restricting=self.restricting,
            pre_filter=self.rejected,
            unnamed=self.unnamed,
        )


def filter_nodes(plans: PlanCache, pod: PodInfo) -> Feasibility:
    """Run PreFilter and Filter for `pod` on every node."""
    plan = plans.plan_for(pod)
    found = Feasibility(plan, plan.state.clone(), plan.codes, tuple(plan.restricting))
    _pre_filter(plans, pod, found)
    if found.rejected is None:
        _filter_by_cluster(pod, found)
    return found


def _pre_filter(plans: PlanCache, pod: PodInfo, found: Feasibility) -> None:
    """Run the uncached PreFilters in configured order; stop at the first rejection."""
    plan, framework = found.plan, plans.framework
    split = plan.split
    plugins = split.pre_filters if plan.rejected else split.cluster_pre_filters
    for plugin in plugins:
        if plugin.name in split.local_names:
            answer: object = plan.rejected.get(plugin.name)
        else:
            answer = framework.run_pre_filter(found.state, pod, plugin)
        if isinstance(answer, Status):
            found.rejected = answer
            return
        if isinstance(answer, PreFilterResult) and answer.node_names is not None:
            _restrict(found, plugin.name, answer.node_names)


def _restrict(found: Feasibility, plugin: str, names: Iterable[str]) -> None:
    """Exclude every node not in `names` from this cycle."""
    plan = found.plan
    nodes = (plan.table.find(name) for name in names)
    kept = np.isin(plan.rows, [node.row for node in nodes if node is not None])
    found.codes = np.where(kept, found.codes, np.int32(DEAD))
    found.restricting += (plugin,)


def _filter_by_cluster(pod: PodInfo, found: Feasibility) -> None:
    """Run the Filters that depend on more than the node, only for nodes that are still feasible.

    If every row is feasible, they get all rows at once, so that plugins that cache by the row
    array can reuse their verdicts.
    """
    skipped, plan = found.state.skipped_filters, found.plan
    for point in plan.split.cluster_filters:
        if point.name in skipped:
            continue
        if found.count() == len(found.codes):
            codes = plan.ask(point, found.state, pod, plan.rows)
            found.codes = codes if np.count_nonzero(codes) else found.codes
            continue
        open_at = (found.codes == 0).nonzero()[0]
        if not len(open_at):
            return
        codes = plan.ask(point, found.state, pod, plan.rows[open_at])
        if np.count_nonzero(codes):
            found.codes = found.codes.copy()
            found.codes[open_at] = codes
