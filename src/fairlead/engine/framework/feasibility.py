"""Feasibility: a profile's verdict on every node for one pod.

    PreFilter and Filter plugins that look no further than the node    from the plan of the shape
    those that look further (affinity, spread, volumes)                asked anew, where still open

Nobody's nominations are counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import Code, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.interface import PreFilterResult, Rows
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.plan.shape_plan import DEAD, ShapePlan
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo


@dataclass(slots=True)
class Feasibility:
    """The verdict on every node.

    `codes` follow `plan.rows` and index `plan.statuses` (0 fits, below 0 no node there). They are
    the plan's own array as long as nothing beyond the cached plugins had a say. `rejected` is set
    when PreFilter refused the pod as a whole; `unnamed` rejected nodes beside the plugins.
    """

    plan: ShapePlan
    state: CycleState
    codes: npt.NDArray[np.int32]
    restricting: tuple[str, ...]
    rejected: Status | None = None
    unnamed: tuple[str, ...] = ()
    _verdicts: list[Status] = field(default_factory=list)

    @property
    def statuses(self) -> list[Status]:
        """What the codes stand for: the plan's verdicts, and then those of this cycle alone."""
        return self._verdicts or self.plan.statuses

    @property
    def is_cached(self) -> bool:
        """Whether the plan's own codes and totals stand as they are."""
        return self.codes is self.plan.codes

    def positions(self) -> Rows:
        """Where in `plan.rows` the feasible nodes are, ascending."""
        if self.rejected is not None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.codes == 0)

    def count(self) -> int:
        """How many nodes are feasible."""
        if self.rejected is not None:
            return 0
        return len(self.codes) - int(np.count_nonzero(self.codes))

    def is_feasible(self, node: NodeInfo) -> bool:
        """Whether the pod fits `node`."""
        at = self.plan.position(node.row)
        return self.rejected is None and at is not None and self.codes[at] == 0

    def nodes(self) -> list[NodeInfo]:
        """The feasible nodes, in row order."""
        table = self.plan.table
        return [table.at(row) for row in self.plan.rows[self.positions()].tolist()]

    def without(self, gone: Rows) -> None:
        """Look no more at the nodes at the positions `gone`, whatever the verdict on them was."""
        self.codes = self.codes.copy()
        self.codes[gone] = DEAD

    def keep(self, positions: Rows) -> None:
        """Look at no other feasible nodes than those at `positions`."""
        self.judge(positions, {})

    def judge(self, positions: Rows, verdicts: Mapping[int, Status]) -> None:
        """No node but those at `positions` is feasible; of others there may be `verdicts`.

        What was feasible, and is not any more without a verdict, has none.
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
        """The first ERROR among the verdicts: a broken plugin fails the cycle as a whole."""
        if self.rejected is not None:
            return self.rejected if self.rejected.code is Code.ERROR else None
        if not self.plan.has_errors:
            return None
        verdicts = (status for status, _ in self.diagnosis().counts())
        return next((status for status in verdicts if status.code is Code.ERROR), None)

    def diagnosis(self) -> Diagnosis:
        """The verdicts as the failure handler and PostFilter see them."""
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


def ask_about_nodes(plans: PlanCache, pod: PodInfo) -> Feasibility:
    """What the plugins say of every node for `pod`."""
    plan = plans.plan_for(pod)
    found = Feasibility(plan, plan.state.clone(), plan.codes, tuple(plan.restricting))
    _pre_filter(plans, pod, found)
    if found.rejected is None:
        _filter_by_cluster(pod, found)
    return found


def _pre_filter(plans: PlanCache, pod: PodInfo, found: Feasibility) -> None:
    """Ask what is not cached, in configured order, and stop at the first rejection."""
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
    """Exclude every node that is not in `names` from this cycle."""
    plan = found.plan
    nodes = (plan.table.find(name) for name in names)
    kept = np.isin(plan.rows, [node.row for node in nodes if node is not None])
    found.codes = np.where(kept, found.codes, np.int32(DEAD))
    found.restricting += (plugin,)


def _filter_by_cluster(pod: PodInfo, found: Feasibility) -> None:
    """Filters whose answers depend on more than the node: asked anew, only where still open.

    Where every row is open they are asked for all, which those that keep their verdicts like.
    """
    skipped, plan = found.state.skipped_filters, found.plan
    for point in plan.split.cluster_filters:
        if point.name in skipped:
            continue
        if not np.count_nonzero(found.codes):
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
