"""PlanCache: the plans (`ShapePlan`) of one profile, for the most recently used pod shapes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from weakref import WeakValueDictionary

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import ShapeRelevance
from fairlead.engine.framework.plan.plan_matrix import PlanMatrix
from fairlead.engine.framework.plan.plugin_split import PluginSplit
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.framework.plan.static_results import StaticResults
from fairlead.engine.framework.points import FilterPoint, ScorePoint
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

_NODES_TIMES_PLANS_MAX: Final = 20_000_000  # about 30 bytes for each node and plan
_PLANS_MIN: Final = 64
_SHAPES_MANY: Final = 4  # with at least this many other plans, a plan joins a matrix
_PLANS_MAX: Final = 4_096  # for each plan, its shape and plugin state take another 5 KB


class PlanCache:
    """Caches plans (`ShapePlan`); drops the least recently used plans if there are too many.

    `with_nominated` caches the verdicts that take nominated pods into account. The verdicts of all
    Filters together have the key (id of the `Shape`, priority). The verdicts of the leading Filters
    have the key (id of the `Shape`, priority, "leading"). The leading Filters are those before the
    first Filter that depends on other nodes.
    """

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self._shape_relevant = [p for p in framework.pre_filters if isinstance(p, ShapeRelevance)]
        self._splits: dict[tuple[str, ...], PluginSplit] = {}
        self.with_nominated: dict[Hashable, object] = {}
        self._plans: dict[int, ShapePlan] = {}
        self._shared: WeakValueDictionary[Hashable, StaticResults] = WeakValueDictionary()
        self._matrices: dict[tuple[str, ...], PlanMatrix] = {}

    def plan_for(self, pod: PodInfo) -> ShapePlan:
        """Return the plan for the `Shape` of `pod`, up to date; create it if there is none.

        The plan contains the cached verdicts and scores for all pods with this `Shape`.
        """
        shape_id = pod.shape.id
        plan = self._plans.pop(shape_id, None)
        if plan is None:
            self._evict()
            self.framework.cluster.table.widen()
            plan = ShapePlan(self.framework, self._split_for(pod.shape), pod, self._shared)
            plan.refresh(pod)
        else:
            plan.is_reused = True
            plan.refresh(pod)
            if plan.matrix is None and len(self._plans) >= _SHAPES_MANY:
                self._join(plan)
        self._plans[shape_id] = plan
        return plan

    def kept_plan(self, pod: PodInfo) -> ShapePlan | None:
        """Return the plan for the `Shape` of `pod` without updating it for changed pods.

        The plan contains the cached verdicts and scores for all pods with this `Shape`. Returns
        None if there is no plan, or if Node objects have changed since its last update.
        """
        plan = self._plans.get(pod.shape.id)
        return plan if plan is not None and plan.has_current_nodes else None

    def _join(self, plan: ShapePlan) -> None:
        """Add `plan` to the matrix of plans with the same ROW plugins, if possible."""
        if plan.node_names is not None:
            return
        points: tuple[FilterPoint | ScorePoint, ...] = (*plan.row_filters, *plan.row_scorers)
        if any(point.shapes is None for point in points):
            return
        key = tuple(point.name for point in points)
        matrix = self._matrices.get(key)
        if matrix is None:
            table = self.framework.cluster.table
            matrix = self._matrices[key] = PlanMatrix(table, plan.row_filters, plan.row_scorers)
        matrix.add(plan)

    def _split_for(self, shape: Shape) -> PluginSplit:
        idle = tuple(plugin.name for plugin in self._shape_relevant if not plugin.concerns(shape))
        found = self._splits.get(idle)
        if found is None:
            found = self._splits[idle] = PluginSplit(self.framework, idle)
        return found

    def _evict(self) -> None:
        nodes = max(self.framework.cluster.table.capacity, 1)
        bound = min(max(_NODES_TIMES_PLANS_MAX // nodes, _PLANS_MIN), _PLANS_MAX)
        while len(self._plans) >= bound:
            evicted = self._plans.pop(next(iter(self._plans)))
            if evicted.matrix is not None:
                evicted.matrix.remove(evicted)


def looks_beyond_the_node(plan: ShapePlan, state: CycleState) -> bool:
    """Return whether a Filter that runs in this cycle depends on more than the node and its pods.

    The results of such a Filter and of the Filters after it are not cached.
    """
    return bool(filters_beyond_the_node(plan, state))


def filters_beyond_the_node(plan: ShapePlan, state: CycleState) -> list[object]:
    """Return the plugins whose Filter runs in this cycle and depends on more than the node."""
    skipped = state.skipped_filters
    return [point.plugin for point in plan.split.wider_filters if point.name not in skipped]
