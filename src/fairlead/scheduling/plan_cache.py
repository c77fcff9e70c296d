"""PlanCache: the plans of one profile's most recently seen shapes."""

from __future__ import annotations

from typing import Final

from fairlead.framework.plan import PluginSplit, ShapePlan
from fairlead.framework.runtime import Framework
from fairlead.state.pod_info import PodInfo

_NODES_TIMES_PLANS_MAX: Final = 20_000_000  # about 30 bytes each
_PLANS_MIN: Final = 64


class PlanCache:
    """Least recently used plans go first once the columns of all plans outgrow their bound."""

    def __init__(self, framework: Framework) -> None:
        """For the pods of `framework`'s profile."""
        self.framework = framework
        self.split = PluginSplit(framework)
        self._plans: dict[int, ShapePlan] = {}

    def plan_for(self, pod: PodInfo) -> ShapePlan:
        """The plan of `pod`'s shape, brought up to date."""
        shape_id = pod.shape.id
        plan = self._plans.pop(shape_id, None)
        if plan is None:
            self._make_room()
            self.framework.cluster.table.widen()
            plan = ShapePlan(self.framework, self.split, pod)
        self._plans[shape_id] = plan
        plan.refresh(pod)
        return plan

    def _make_room(self) -> None:
        nodes = max(self.framework.cluster.table.capacity, 1)
        bound = max(_NODES_TIMES_PLANS_MAX // nodes, _PLANS_MIN)
        while len(self._plans) >= bound:
            del self._plans[next(iter(self._plans))]
