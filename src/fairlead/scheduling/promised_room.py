"""Room promised to others: on such nodes a pod must fit beside whoever was nominated there.

upstream: framework/runtime/framework.go: RunFilterPluginsWithNominatedPods, for all nodes at once.

The verdict on a promised node depends on the pod's shape and priority, the node, and who is
nominated there; it is kept until one of these changes, as long as no Filter looks beyond the node.
The node promised to the pod itself is judged anew each time, since the pod does not count as its
own rival.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.framework.cycle_state import CycleState
from fairlead.framework.plan import ShapePlan
from fairlead.framework.plan_cache import PlanCache, looks_beyond_the_node
from fairlead.state.pod_info import PodInfo

Codes = npt.NDArray[np.int32]
_KEPT_MAX: Final = 64


class PromisedVerdicts:
    """The verdicts for one shape and priority: `codes` of the plan by position."""

    def __init__(self, plan: ShapePlan) -> None:
        """Nothing is known yet; good for as long as `plan` is."""
        self.plan = plan
        self.codes: dict[int, int] = {}
        self._dirty: dict[str, None] = {}
        self._nominations = self._pods = self._nodes = -1

    def refresh(self, plans: PlanCache, pod: PodInfo, state: CycleState) -> None:
        """Judge anew every promised node about which something changed."""
        for name in self._changed(plans):
            self._dirty[name] = None
        own = plans.framework.nominator.node_of(pod.uid)
        for name in list(self._dirty):
            if name != own:
                del self._dirty[name]
                self._judge(plans, pod, state, name)

    def _changed(self, plans: PlanCache) -> Iterable[str]:
        nominator, table = plans.framework.nominator, self.plan.table
        named = nominator.log.since(self._nominations) if self._nominations >= 0 else None
        pods = table.pod_log.since(self._pods)
        nodes = table.node_log.since(self._nodes)
        self._nominations = nominator.log.position
        self._pods, self._nodes = table.pod_log.position, table.node_log.position
        if named is None or pods is None or nodes is None or nodes:
            self.codes.clear()
            return nominator.nodes()
        touched = [self._name_at(row) for row in pods if self.plan.position(row) in self.codes]
        return (*named, *touched)

    def _name_at(self, row: int) -> str:
        return self.plan.table.at(row).name

    def _judge(self, plans: PlanCache, pod: PodInfo, state: CycleState, name: str) -> None:
        node = self.plan.table.find(name)
        at = self.plan.position(node.row) if node is not None else None
        if node is None or at is None:
            return
        code = judge(plans, pod, self.plan, state, name)
        if code is None:
            self.codes.pop(at, None)
        else:
            self.codes[at] = code


def judge(
    plans: PlanCache, pod: PodInfo, plan: ShapePlan, state: CycleState, name: str
) -> int | None:
    """The code of the node called `name` for `pod`; None where nobody else was promised it."""
    node = plan.table.find(name)
    framework = plans.framework
    if node is None or not framework.nominator.rivals_on(name, pod):
        return None
    status = framework.run_filters_with_nominated(state, pod, node)
    return 0 if status is None else plan.code(status)


def count_promised_room(
    plans: PlanCache, pod: PodInfo, plan: ShapePlan, state: CycleState, codes: Codes
) -> Codes:
    """`codes` with the verdicts on promised nodes put in; the same array if there are none."""
    nominator = plans.framework.nominator
    if not nominator:
        return codes
    if looks_beyond_the_node(plan, state):
        found = _judge_all(plans, pod, plan, state, nominator.nodes())
    else:
        verdicts = _kept(plans, pod, plan)
        verdicts.refresh(plans, pod, state)
        found = verdicts.codes
        own = plan.table.find(nominator.node_of(pod.uid))
        if own is not None:
            own_position = plan.position(own.row)
            found = found.copy()
            if own_position is not None:
                found.pop(own_position, None)
            found.update(_judge_all(plans, pod, plan, state, [own.name]))
    if not found:
        return codes
    result = codes.copy()
    positions = np.fromiter(found.keys(), np.int64, len(found))
    judged = np.fromiter(found.values(), np.int32, len(found))
    result[positions] = np.where(result[positions] < 0, result[positions], judged)
    return result


def _judge_all(
    plans: PlanCache, pod: PodInfo, plan: ShapePlan, state: CycleState, names: Iterable[str]
) -> dict[int, int]:
    found: dict[int, int] = {}
    for name in names:
        node = plan.table.find(name)
        at = plan.position(node.row) if node is not None else None
        code = judge(plans, pod, plan, state, name) if at is not None else None
        if at is not None and code is not None:
            found[at] = code
    return found


def _kept(plans: PlanCache, pod: PodInfo, plan: ShapePlan) -> PromisedVerdicts:
    key = (pod.shape.id, pod.priority)
    verdicts = plans.promised.pop(key, None)
    if not isinstance(verdicts, PromisedVerdicts) or verdicts.plan is not plan:
        verdicts = PromisedVerdicts(plan)
    plans.promised[key] = verdicts
    while len(plans.promised) > _KEPT_MAX:
        del plans.promised[next(iter(plans.promised))]
    return verdicts
